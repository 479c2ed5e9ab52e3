"""The common style of all figures, and functions that save them to files or embed them in pages."""

import io
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride.colours import FRAME, GRID, INK, SERIES, SOFT
from keystride.files import open_atomically

MATPLOTLIB_STYLE = {
    "font.family": ["DejaVu Sans", "sans-serif"],
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
    "text.parse_math": False,  # labels come from scripts: a dollar sign is a dollar sign
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "white",
    "svg.hashsalt": "keystride",  # makes files reproducible
}
NO_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure gives the same file
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_settings_lock = threading.RLock()  # matplotlib's settings are global to the process


@contextmanager
def _styled(**settings: Any) -> Iterator[None]:
    import matplotlib as mpl
    from cycler import cycler

    style: Any = {**MATPLOTLIB_STYLE, "axes.prop_cycle": cycler(color=SERIES), **settings}
    with _settings_lock, mpl.rc_context(style):
        yield


@contextmanager
def styled_figure(width: float, height: float, margins: Mapping[str, float] | None = None) -> Iterator[Any]:
    """Provide a figure in the common style; sizes are in inches. It does without pyplot, which would look for a display.

    With `margins`, as for `subplots_adjust`, a figure is drawn three times as fast as with margins fitted to its labels.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with _styled():
        figure = Figure(figsize=(width, height), layout="constrained" if margins is None else None)
        FigureCanvasAgg(figure)
        if margins is not None:
            figure.subplots_adjust(**margins)
        yield figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure atomically, as PNG, SVG or PDF by file extension; raise ValueError for any other."""
    kind = path.suffix.lower().lstrip(".") or "png"
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"{path}: the name of a figure must end in .png, .svg or .pdf")
    with open_atomically(path) as file, _styled():
        figure.savefig(file, format=kind, dpi=150, metadata=NO_DATE.get(kind))


def as_svg(figure: Any, css_colours: Mapping[str, str] | None = None) -> str:
    """Return the figure as an SVG element for an HTML page, with text as text and a transparent background.

    `css_colours` maps colours of the figure to CSS values that replace them, for pages with a dark and a light scheme.
    """
    buffer = io.StringIO()
    with _styled(**{"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata=NO_METADATA, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # A style element would apply to the whole page.
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = text.replace("<svg", '<svg style="stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto"', 1)
    for colour, value in (css_colours or {}).items():
        text = text.replace(colour, value)
    return text


def arrows(
    axes: Any, places: NDArray[np.float64], yaw: NDArray[np.float64], length: float, colour: str, **kwargs: Any
) -> None:
    """Draw headings as arrows at places (n, 2 or more), with a length in data units."""
    style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.004, "zorder": 3, **kwargs}
    axes.quiver(places[:, 0], places[:, 1], length * np.cos(yaw), length * np.sin(yaw), color=colour, **style)
