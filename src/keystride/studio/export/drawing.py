"""Small line drawings as SVG, in the colour of the text around them: for a dark panel and a white page alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

import numpy as np

from keystride.robot.description import Floats

CHART_WIDTH, CHART_HEIGHT, SQUARE_HEIGHT = 320, 140, 190
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 38, 8, 20, 20


@dataclass(frozen=True)
class PlotLine:
    x: Floats
    y: Floats
    colour: str
    faint: bool = False


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    colour: str


@dataclass(frozen=True)
class Window:
    """The part of the plane that is shown."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int = CHART_HEIGHT

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0]) * (CHART_WIDTH - MARGIN_LEFT - MARGIN_RIGHT)
        up = (y - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - MARGIN_TOP - MARGIN_BOTTOM)
        return MARGIN_LEFT + across, self.height - MARGIN_BOTTOM - up


def drawing(title: str, lines: Sequence[PlotLine], dots: Sequence[Dot], *, square: bool = False) -> str:
    """Square: both axes to the same scale. Otherwise x starts at zero."""
    window = _square(lines) if square else _around(lines, dots)
    parts = [*_axes(window), *(_curve(line, window) for line in lines), *(_mark(dot, window) for dot in dots)]
    return (
        f'<svg viewBox="0 0 {CHART_WIDTH} {window.height}" width="100%" font-family="sans-serif" font-size="10">'
        f'<text x="{MARGIN_LEFT}" y="12" fill="currentColor" font-weight="600">{escape(title)}</text>{"".join(parts)}</svg>'
    )


def axis_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between the ends, about as many as asked for."""
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(unit * power for unit in (1, 2, 5, 10) if unit * power >= 0.999 * rough)
    return [round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1)]


def _around(lines: Sequence[PlotLine], dots: Sequence[Dot]) -> Window:
    y = np.concatenate([*(line.y for line in lines), [dot.y for dot in dots]])
    margin = max(0.06 * float(np.ptp(y)), 0.02)
    last = max(float(line.x[-1]) for line in lines)
    return Window((0.0, max(last, 0.1)), (float(y.min()) - margin, float(y.max()) + margin))


def _square(lines: Sequence[PlotLine]) -> Window:
    ratio = (SQUARE_HEIGHT - MARGIN_TOP - MARGIN_BOTTOM) / (CHART_WIDTH - MARGIN_LEFT - MARGIN_RIGHT)
    points = np.concatenate([np.stack([line.x, line.y], axis=1) for line in lines])
    low, high = points.min(axis=0), points.max(axis=0)
    centre, size = (low + high) / 2, np.maximum(1.15 * (high - low), 0.4)
    wide = max(size[0], size[1] / ratio)
    x, y = ((float(c - s / 2), float(c + s / 2)) for c, s in zip(centre, (wide, wide * ratio), strict=True))
    return Window(x, y, SQUARE_HEIGHT)


def _axes(window: Window) -> Iterable[str]:
    (left, bottom), (right, top) = window.at(window.x[0], window.y[0]), window.at(window.x[1], window.y[1])
    for value in axis_ticks(*window.x, 6):
        x = window.at(value, 0.0)[0]
        yield _rule(f"M{x:.1f} {top:.1f}V{bottom:.1f}") + _number(x, bottom + 12, value, "middle")
    for value in axis_ticks(*window.y, 4):
        y = window.at(0.0, value)[1]
        yield _rule(f"M{left:.1f} {y:.1f}H{right:.1f}") + _number(left - 4, y + 3, value, "end")


def _rule(path: str) -> str:
    return f'<path d="{path}" stroke="currentColor" opacity=".12"/>'


def _number(x: float, y: float, value: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" opacity=".6">{value:g}</text>'


def _curve(line: PlotLine, window: Window) -> str:
    points = " ".join("{:.1f},{:.1f}".format(*window.at(x, y)) for x, y in zip(line.x, line.y, strict=True))
    style = 'stroke-width="1" opacity=".45" stroke-dasharray="3 2"' if line.faint else 'stroke-width="1.6"'
    return f'<polyline points="{points}" fill="none" stroke="{line.colour}" {style}/>'


def _mark(dot: Dot, window: Window) -> str:
    x, y = window.at(dot.x, dot.y)
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{dot.colour}" stroke="currentColor" stroke-opacity=".5"/>'
