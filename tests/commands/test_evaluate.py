"""`keystride evaluate`: tables, JSON, report, and what it refuses."""

import json
from pathlib import Path

import pytest

from keystride.commands.main import main


def test_evaluate_prints_tables_and_writes_rows_and_a_report(
    standing_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", f"{tmp_path}/rows.json", "--out", f"{tmp_path}/report"]
    arguments = ["--policy", str(standing_path), "--suite", "anticipation", "--episodes", "3", *files]
    assert main(["evaluate", *arguments]) == 0
    printed = capsys.readouterr()
    assert "Anticipation: two consecutive goals" in printed.out
    assert "0.334 ± 0.116" in printed.out
    assert "--next-policy" in printed.out
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    keys = {"suite", "scenario", "goal", "metric", "mean", "std", "episodes", "falls", "paper"}
    assert all(keys <= row.keys() for row in rows)
    assert len(rows) == 3 * 2 * 3 + 2  # scenarios, goals, distance, height and met; motors of this suite and of all
    assert "<svg" in (tmp_path / "report" / "report.html").read_text()


def test_evaluate_reprints_its_rows(standing_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", "--policy", str(standing_path), "--suite", "matching", "--episodes", "3", "--json", "-"]
    main(arguments)
    first = capsys.readouterr().out
    main([*arguments, "--threads", "1"])
    assert capsys.readouterr().out == first
    assert json.loads(first)["episodes"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--episodes", "0"], "--episodes must be at least 1"),
        (["--library", "/nowhere/at/all"], "/nowhere/at/all: no motion library"),
        (["--next-policy", "go3"], "no policy 'go3'"),
    ],
)
def test_evaluates_mistakes_are_one_line(
    arguments: list[str], message: str, standing_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--policy", str(standing_path), "--suite", "matching", *arguments]) == 2
    err = capsys.readouterr().err
    assert f"error: {message}" in err
    assert "Traceback" not in err
