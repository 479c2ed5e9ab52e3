import json
from pathlib import Path

from matplotlib.figure import Figure

from keystride.evaluation.rendering.report import Picture
from keystride.evaluation.tables import Table, TableCell
from keystride.studies.page import StudyReport, study_page, write_study_report


def report() -> StudyReport:
    table = Table("Errors <m>", ("method", "distance"), ((TableCell("one"), TableCell("0.1")),))
    return StudyReport(
        "critics",
        "Critics & goals",
        ("Two <runs>.",),
        ("One wins.",),
        (table,),
        {"curves": Picture("c", Figure())},
        {"seeds": 2},
    )


def test_page_data_and_figures_are_written(tmp_path: Path) -> None:
    paths = write_study_report(report(), tmp_path)
    assert [path.name for path in paths] == ["critics.html", "critics.json", "critics-curves.png"]
    assert all(path.is_file() for path in paths)
    data = json.loads(paths[1].read_text())
    assert (data["study"], data["seeds"], data["findings"]) == ("critics", 2, ["One wins."])


def test_text_is_escaped() -> None:
    page = study_page(report())
    assert "Two &lt;runs&gt;." in page
    assert "Errors &lt;m&gt;" in page
    assert "<runs>" not in page
