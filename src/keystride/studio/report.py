"""The result of a pass: a table of errors, charts as SVG without a plotting library, and a report page.

Charts and tables take their colours from the custom properties of the page they are on (`keystride.colours`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

import numpy as np

from keystride import colours
from keystride.evaluation.episodes import METRICS, THRESHOLDS
from keystride.evaluation.recording import Recording, ghost_poses
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT
from keystride.robot.description import LEG_JOINTS, Floats

REPORT_HEADINGS = ("", "time", "distance", "roll", "pitch", "yaw", "posture", "height", "")
ERROR_FORMATS = {"distance_m": "{:.2f} m", "height_m": "{:.2f} m"}
DEGREES = "{:.1f}°"

CHART_WIDTH, CHART_HEIGHT, SQUARE_HEIGHT = 320, 140, 190
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 38, 8, 20, 20
ASKED, DID, MET, MISSED = "var(--ks-asked)", "var(--ks-head)", "var(--ks-good)", "var(--ks-bad)"
JOINT_LINE_COLOURS = ("var(--ks-series-1)", "var(--ks-series-2)", "var(--ks-series-3)")

REPORT_CSS = """body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:var(--ks-text)}
table{border-collapse:collapse;width:100%}td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid var(--ks-line)}
.met{color:var(--ks-good)}.missed,.over{color:var(--ks-bad)}.charts{display:grid;grid-template-columns:1fr 1fr;gap:1em}"""


def headline(recording: Recording) -> str:
    """Return one sentence: how many keyframes were met, and whether the robot fell."""
    met, count = int(recording.met.sum()), len(recording.met)
    fall = "" if recording.fell_at is None else f"; the robot fell at {recording.fell_at:.2f} s"
    return f"{met} of {count} keyframes met{fall}"


def table(recording: Recording) -> str:
    """Return HTML with one row per keyframe: errors above their threshold are highlighted, a dash is an open component."""
    cells = "".join(f"<th>{name}</th>" for name in REPORT_HEADINGS)
    rows = "".join(_row(recording, k) for k in range(len(recording.met)))
    return f'<table class="ks-errors"><tr>{cells}</tr>{rows}</table>'


def report_page(recording: Recording) -> str:
    """Return the whole report of a pass, without motion, as a single HTML file."""
    title = escape(recording.title)
    drawings = "".join(f"<div>{drawing}</div>" for drawing in charts(recording))
    style = colours.report_css() + REPORT_CSS
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><p>Policy: {escape(recording.policy)}. {escape(headline(recording))}.</p>{table(recording)}"
        f"<p>Met means within {escape(str(THRESHOLDS))}, by a robot that has not fallen.</p>"
        f'<div class="charts">{drawings}</div></html>\n'
    )


def _row(recording: Recording, k: int) -> str:
    cells = f"<td>{k + 1}</td><td>{recording.steps[k] * CONTROL_DT:.2f} s</td>"
    for metric, error in zip(METRICS, recording.errors[k].tolist(), strict=True):
        over = error - getattr(THRESHOLDS, metric)
        title = f' class="over" title="{_cell(metric, over)} over"' if over > 0 else ""
        cells += f"<td{title}>{_cell(metric, error)}</td>"
    word = "met" if recording.met[k] else "missed"
    return f'<tr>{cells}<td class="{word}">{word}</td></tr>'


def _cell(metric: str, error: float) -> str:
    if np.isnan(error):
        return "-"
    return ERROR_FORMATS.get(metric, DEGREES).format(error)


# The charts.


def charts(recording: Recording) -> list[str]:
    legs = [leg_chart(recording, leg) for leg in range(len(recording.robot.legs))]
    return [path_chart(recording), height_chart(recording), yaw_chart(recording), *legs]


def path_chart(recording: Recording) -> str:
    """Draw the path from above, x to the right."""
    rows = _asking(recording, "position")
    goals, place = recording.goals.position[0, rows, :2], recording.poses[:, :2]
    asked = np.concatenate([np.zeros((1, 2)), goals])
    lines = [PlotLine(asked[:, 0], asked[:, 1], ASKED, faint=True), PlotLine(place[:, 0], place[:, 1], DID)]
    dots = [Dot(x, y, _verdict(recording, k)) for k, (x, y) in zip(rows, goals.tolist(), strict=True)]
    return drawing("path from above (m)", lines, dots, square=True)


def height_chart(recording: Recording) -> str:
    rows = [k for k in _asking(recording, "position") if recording.goals.height[0, k]]
    dots = [_dot(recording, k, float(recording.goals.position[0, k, 2])) for k in rows]
    return drawing("base height (m)", [PlotLine(recording.times, recording.poses[:, 2], DID)], dots)


def yaw_chart(recording: Recording) -> str:
    yaw = np.degrees(recording.angles[:, 2])
    dots = [_dot(recording, k, _nearest_turn(recording, k, yaw)) for k in _asking(recording, "yaw")]
    return drawing("yaw (°)", [PlotLine(recording.times, yaw, DID)], dots)


def leg_chart(recording: Recording, leg: int) -> str:
    """Draw the joints of a leg, their targets as faint lines, and dots where a keyframe asks for a posture."""
    joints = np.arange(3 * leg, 3 * leg + 3)
    targets, did = np.degrees(recording.joint_targets[:, joints]), np.degrees(recording.poses[:, 7 + joints])
    lines = [PlotLine(recording.times[:-1], targets[:, i], JOINT_LINE_COLOURS[i], faint=True) for i in range(3)]
    lines += [PlotLine(recording.times, did[:, i], JOINT_LINE_COLOURS[i]) for i in range(3)]
    wanted = np.degrees(ghost_poses(recording)[:, 7 + joints])
    dots = [_dot(recording, k, float(angle)) for k in _asking(recording, "posture") for angle in wanted[k]]
    return drawing(f"{recording.robot.leg_names[leg]} {', '.join(LEG_JOINTS)} (°)", lines, dots)


def _asking(recording: Recording, component: str) -> list[int]:
    return np.flatnonzero(recording.goals.presence[0, :, COMPONENTS.index(component)]).tolist()


def _verdict(recording: Recording, k: int) -> str:
    return MET if recording.met[k] else MISSED


def _dot(recording: Recording, k: int, value: float) -> "Dot":
    return Dot(float(recording.steps[k]) * CONTROL_DT, value, _verdict(recording, k))


def _nearest_turn(recording: Recording, k: int, yaw: Floats) -> float:
    """Return the target in degrees, in the turn nearest to the robot's yaw: 190 beside 180, rather than -170."""
    target = float(np.degrees(recording.goals.angles[0, k, 2]))
    there = float(yaw[min(int(recording.steps[k]), len(yaw) - 1)])
    return target + 360.0 * round((there - target) / 360.0)


# Drawing a chart.


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
    """The visible range of both axes."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int = CHART_HEIGHT

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0]) * (CHART_WIDTH - MARGIN_LEFT - MARGIN_RIGHT)
        up = (y - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - MARGIN_TOP - MARGIN_BOTTOM)
        return MARGIN_LEFT + across, self.height - MARGIN_BOTTOM - up


def drawing(title: str, lines: Sequence[PlotLine], dots: Sequence[Dot], *, square: bool = False) -> str:
    """Return a chart as SVG. `square` draws both axes to the same scale; otherwise x starts at zero."""
    window = _square(lines) if square else _around(lines, dots)
    parts = [*_axes(window), *(_curve(line, window) for line in lines), *(_mark(dot, window) for dot in dots)]
    return (
        f'<svg viewBox="0 0 {CHART_WIDTH} {window.height}" width="100%" font-family="sans-serif" font-size="10">'
        f'<text x="{MARGIN_LEFT}" y="12" fill="currentColor" font-weight="600">{escape(title)}</text>{"".join(parts)}</svg>'
    )


def axis_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between the ends, about `most` of them."""
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
    look = 'stroke-width="1" opacity=".45" stroke-dasharray="3 2"' if line.faint else 'stroke-width="1.6"'
    return f'<polyline points="{points}" fill="none" style="stroke:{line.colour}" {look}/>'


def _mark(dot: Dot, window: Window) -> str:
    x, y = window.at(dot.x, dot.y)
    look = f'style="fill:{dot.colour}" stroke="currentColor" stroke-opacity=".5"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" {look}/>'
