"""The result of a pass: a table of errors, charts, and a report page.

Charts and tables take their colours from the custom properties of the page they are on (`keystride.colours`).
"""

from html import escape

import numpy as np

from keystride import colours
from keystride.evaluation.episodes import METRICS, THRESHOLDS
from keystride.evaluation.recording import Recording
from keystride.evaluation.rendering.plot import draw_panels
from keystride.keyframes.goals import CONTROL_DT
from keystride.plotting import as_svg

REPORT_HEADINGS = ("", "time", "distance", "roll", "pitch", "yaw", "posture", "height", "")
ERROR_FORMATS = {"distance_m": "{:.2f} m", "height_m": "{:.2f} m"}
DEGREES = "{:.1f}°"

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


def charts(recording: Recording) -> list[str]:
    """Return one SVG element per panel of the plot, in the colours of the page. Takes about half a second."""
    return [as_svg(figure, colours.CSS_COLOURS) for figure in draw_panels(recording)]


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
