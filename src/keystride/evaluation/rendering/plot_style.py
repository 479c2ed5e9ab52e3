"""One style for all figures: fonts, lines, and how a figure becomes a file or a part of a page."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from keystride.colours import FRAME, GRID, INK, SERIES, SOFT
from keystride.files import open_atomically
from keystride.robot.description import Floats

MATPLOTLIB_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": FRAME,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "white",
    "svg.hashsalt": "keystride",  # the same figure gives the same file
}


@contextmanager
def _styled() -> Iterator[None]:
    import matplotlib as mpl
    from cycler import cycler

    style: Any = {**MATPLOTLIB_STYLE, "axes.prop_cycle": cycler(color=SERIES)}
    with mpl.rc_context(style):
        yield


@contextmanager
def styled_figure(width: float, height: float) -> Iterator[Any]:
    """A figure in our style, closed afterwards; inches. Without pyplot, which would look for a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def save_figure(figure: Any, path: Path) -> None:
    """PNG, SVG or PDF by the name's ending; ValueError for another. Whole or not at all."""
    kind = path.suffix.lower().lstrip(".") or "png"
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"{path}: a picture ends in .png, .svg or .pdf")
    with open_atomically(path) as file, _styled():
        figure.savefig(file, format=kind, dpi=150)


def as_svg(figure: Any) -> str:
    """For a page: without the XML head."""
    buffer = io.StringIO()
    with _styled():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def arrows(axes: Any, places: Floats, yaw: Floats, length: float, colour: str, **kwargs: Any) -> None:
    """Headings at places (n, 2 or more), as arrows of a length in the axes' own unit."""
    style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.004, "zorder": 3, **kwargs}
    axes.quiver(places[:, 0], places[:, 1], length * np.cos(yaw), length * np.sin(yaw), color=colour, **style)
