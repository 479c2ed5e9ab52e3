import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from keystride.errors import FileError
from keystride.policy.curve import read_curve


def curve(tmp_path: Path, rows: list[dict[str, Any]], until: int | None = None, end: str = "") -> dict[str, Any]:
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + end)
    return read_curve(file, until)


def test_a_resumed_run_replaces_what_it_repeats_and_adds_its_hours(tmp_path: Path) -> None:
    rows = [
        {"steps": 100, "seconds": 1800, "met": 0.1},
        {"steps": 200, "seconds": 3600, "met": 0.2},  # killed: the checkpoint was at 100
        {"steps": 200, "seconds": 900, "met": 0.3},
        {"steps": 300, "seconds": 1800, "met": 0.4},
    ]
    found = curve(tmp_path, rows, end='{"steps": 400, "sec')
    assert found["training"] == {"steps": [100, 200, 300], "met": [0.1, 0.3, 0.4]}
    assert (found["steps"], found["hours"]) == (300, 1.5)


def test_what_came_after_the_policy_is_left_out(tmp_path: Path) -> None:
    rows = [{"steps": n, "seconds": 36 * n, "met": 0.5} for n in (100, 200, 300)]
    found = curve(tmp_path, rows, until=200)
    assert (found["steps"], found["hours"], found["training"]["steps"]) == (200, 2.0, [100, 200])


def test_many_rows_become_means_and_evaluations_all_stay(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"steps": n, "seconds": n, "reward/goal": float(n % 2)} for n in range(1, 401)]
    rows[6]["evaluation/dataset/position"] = 0.25
    found = curve(tmp_path, rows)
    assert found["training"]["steps"] == list(range(2, 401, 2))
    assert found["training"]["reward/goal"] == [0.5] * 200
    assert found["evaluation"] == {"steps": [7], "minutes": [0.0], "dataset/position": [0.25]}


def test_a_figure_that_is_missing_for_a_while_is_null(tmp_path: Path) -> None:
    rows = [{"steps": 1, "seconds": 1}, {"steps": 2, "seconds": 2, "survival": 1.0}]
    assert curve(tmp_path, rows)["training"]["survival"] == [None, 1.0]


def test_a_run_without_rows_has_an_empty_curve(tmp_path: Path) -> None:
    assert curve(tmp_path, []) == {
        "steps": 0,
        "hours": 0.0,
        "training": {"steps": []},
        "evaluation": {"steps": [], "minutes": []},
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"steps": 1, "seconds": 1}\n' * 200_001, "more than 200000 rows"),
        (gzip.compress(b'{"steps": 1, "seconds": 1}\n'), "not text in UTF-8"),
        (b" " * 2_000_000, "a line that is too long"),
    ],
    ids=["rows", "packed", "line"],
)
def test_metrics_without_end_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_bytes(content)
    with pytest.raises(FileError, match=rf"metrics\.jsonl: .*{reason}"):
        read_curve(metrics)
