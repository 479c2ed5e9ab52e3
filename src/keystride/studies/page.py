"""Write the report of a study: an HTML page, the data as JSON, and the figures as PNG files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from keystride import __version__
from keystride.evaluation.rendering.report import Picture, figure_html, html_page, table_html
from keystride.evaluation.tables import Table
from keystride.files import write_atomically
from keystride.plotting import save_figure


@dataclass(frozen=True)
class StudyReport:
    """The results of a study."""

    name: str  # of its files
    title: str
    setup: tuple[str, ...]  # paragraphs
    findings: tuple[str, ...]  # paragraphs
    tables: tuple[Table, ...]
    pictures: Mapping[str, Picture]  # by file name
    data: Mapping[str, Any]


def write_study_report(report: StudyReport, out: Path) -> list[Path]:
    """Write NAME.html, NAME.json and the figures, and return their paths."""
    page, data = out / f"{report.name}.html", out / f"{report.name}.json"
    write_atomically(page, study_page(report))
    content = {
        "study": report.name,
        "keystride_version": __version__,
        "setup": report.setup,
        "findings": report.findings,
        **report.data,
    }
    write_atomically(data, json.dumps(content, indent=1, allow_nan=False) + "\n")
    pictures = [out / f"{report.name}-{name}.png" for name in report.pictures]
    for path, picture in zip(pictures, report.pictures.values(), strict=True):
        save_figure(picture.figure, path)
    return [page, data, *pictures]


def study_page(report: StudyReport) -> str:
    """Return the HTML page."""
    tables = "".join(f"<h2>{escape(table.title)}</h2>{table_html(table)}" for table in report.tables)
    return html_page(
        report.title,
        f"{_paragraphs(report.setup)}<h2>Findings</h2>{_paragraphs(report.findings)}{tables}"
        f"<h2>Figures</h2>{''.join(map(figure_html, report.pictures.values()))}",
    )


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
