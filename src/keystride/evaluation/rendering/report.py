"""Write the tables and figures of an evaluation as one HTML page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from keystride.colours import css_variables
from keystride.evaluation.rendering import figures
from keystride.evaluation.setting import SuiteOutcome
from keystride.evaluation.tables import Table, TableCell, suite_table
from keystride.plotting import as_svg

SUITE_NOTES = {
    "matching": "Full poses: position, roll, pitch, yaw and posture, starting from a slightly perturbed stance.",
    "generalization": "Up to five keyframes per episode, sampled as in training. Dotted lines: thresholds for meeting a keyframe.",
    "anticipation": "Position goals due after 1 s and another 0.5 s (slow turn: 1 s). Boxes show the middle half of the episodes.",
    "style": "Segments of two seconds: the policy on keyframes from clips, and the clips themselves. The Fréchet distance of "
    "the clips is that between two random samples of them, the lowest possible value.",
    "everyday": "Scripts as people write them, starting from slightly perturbed stances. Drift: the largest distance from where "
    "the robot stood one second after the last keyframe.",
    "motors": "Over all joints and control steps before the end of an episode or a fall; 1 is the motor's rated speed.",
    "robustness": "The same episodes, half with keyframes from clips and half with random ones; pushes every 1 to 2 s.",
}

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Picture:
    caption: str
    figure: Any


def evaluation_page(
    about: str,
    outcomes: Mapping[str, SuiteOutcome],
    shown: Iterable[Picture] = (),
    curve: Mapping[str, Any] | None = None,
) -> str:
    """Return the page. `about` is a line on what was measured, `shown` are pictures in addition to those of the suites."""
    sections = [_section(suite, outcome) for suite, outcome in outcomes.items()]
    extra = "".join(map(figure_html, shown))
    if extra:
        sections.insert(0, f"<h2>Position goals</h2>{extra}")
    if curve is not None:
        hours, steps = curve["hours"], curve["steps"] / 1e6
        caption = f"{steps:.1f} million control steps, {hours:.1f} hours"
        sections.append("<h2>Learning</h2>" + figure_html(Picture(caption, figures.learning_curve(curve))))
    return html_page(
        "Keystride evaluation",
        f"<p>{escape(about)}</p>"
        "<p>Mean ± standard deviation over all episodes, including those with a fall. The paper's result is below each in grey; "
        "ours is green where it is at least as good.</p>"
        f"{''.join(sections)}",
    )


def html_page(title: str, body: str) -> str:
    """Return a self-contained page with this body, which is HTML."""
    style = css_variables() + (files("keystride.evaluation.rendering") / "report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"<h1>{escape(title)}</h1>{body}</body></html>"
    )


def _section(suite: str, outcome: SuiteOutcome) -> str:
    table = suite_table(suite, outcome.rows)
    pictures = "".join(figure_html(picture) for picture in _pictures(suite, outcome))
    return f"<h2>{escape(table.title)}</h2><p>{escape(SUITE_NOTES[suite])}</p>{table_html(table)}{pictures}"


def _pictures(suite: str, outcome: SuiteOutcome) -> list[Picture]:
    if suite in ("matching", "generalization"):
        return [Picture("Errors at keyframes.", figures.histograms(outcome.rollouts))]
    if suite == "anticipation":
        return [
            Picture(
                "The turn from above; arrows show the heading at the first goal.",
                figures.anticipation_figure(outcome.rollouts),
            )
        ]
    if suite == "robustness":
        return [Picture("Errors and falls under each factor.", figures.robustness_figure(outcome.rows))]
    return []


def figure_html(picture: Picture) -> str:
    return f"<figure>{as_svg(picture.figure)}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def table_html(table: Table) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    body = "".join(f"<tr>{''.join(map(_cell, line))}</tr>" for line in table.lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: TableCell) -> str:
    paper = f"<small>{escape(cell.paper)}</small>" if cell.paper else ""
    mark = ' class="better"' if cell.better else ""
    return f"<td><span{mark}>{escape(cell.ours)}</span>{paper}</td>"
