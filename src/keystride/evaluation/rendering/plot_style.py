"""The common style of all figures, and functions that save them to files or embed them in pages."""

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
    "svg.hashsalt": "keystride",  # makes files reproducible
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
    """Provide a figure in the common style; sizes are in inches. It does without pyplot, which would look for a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure atomically, as PNG, SVG or PDF by file extension; raise ValueError for any other."""
    kind = path.suffix.lower().lstrip(".") or "png"
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"{path}: the name of a figure must end in .png, .svg or .pdf")
    with open_atomically(path) as file, _styled():
        figure.savefig(file, format=kind, dpi=150)


def as_svg(figure: Any) -> str:
    """Return the figure as an SVG element for an HTML page, without the XML header."""
    buffer = io.StringIO()
    with _styled():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def arrows(axes: Any, places: Floats, yaw: Floats, length: float, colour: str, **kwargs: Any) -> None:
    """Draw headings as arrows at places (n, 2 or more), with a length in data units."""
    style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.004, "zorder": 3, **kwargs}
    axes.quiver(places[:, 0], places[:, 1], length * np.cos(yaw), length * np.sin(yaw), color=colour, **style)
