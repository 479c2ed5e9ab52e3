"""Both studies from the command to the page, on sizes that take seconds; nothing is learned."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from keystride.commands.main import main
from keystride.learner.checkpoint import checkpoints

ITERATION = 8 * 48  # control steps
SIZES = ["--robots", "8", "--seeds", "1", "--processes", "1", "--episodes", "4"]
SIZES += ["--evaluation-robots", "4", "--evaluation-steps", "80"]


def arguments(study: str, out: Path, iterations: int, *others: str) -> list[str]:
    steps = str(iterations * ITERATION)  # evaluated at the start and at the end alone
    return ["study", study, "--out", str(out), "--steps", steps, "--evaluate-steps", steps, *SIZES, *others]


def data(out: Path, study: str) -> dict[str, Any]:
    return json.loads((out / f"{study}.json").read_text())


def metrics(out: Path, run: str) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "runs" / run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("anticipation")
    assert main(arguments("anticipation", out, 3)) == 0
    return out


def test_critics_are_searched_trained_and_compared_once(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    command = arguments("critics", tmp_path, 1, "--horizons", "25", "50", "--weights", "20")
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "searching goal weights of the single critic: 0.5, 20" in printed
    assert "[##############################] 100%: " in printed
    found = data(tmp_path, "critics")
    assert set(found["search"]["weights"]) == {"0.5", "20"}
    errors = {w: sum(kind["mean_m"] for kind in kinds.values()) for w, kinds in found["search"]["weights"].items()}
    assert f"{found['search']['chosen']:g}" == min(errors, key=lambda weight: errors[weight])
    assert found["arms"][0]["method"] == "multi-critic"
    for arm in found["arms"]:
        assert arm["curves"][0]["steps"] == [0, ITERATION]
        assert (arm["final"]["random"]["episodes"], arm["samples_to_threshold"]) == (4, [None])
        assert arm["final"]["random"]["std_m"] > 0.0
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        "multi-25-50-seed0",
        "single-0.5-25-50-seed0",
        "single-20-25-50-seed0",
    }
    page = (tmp_path / "critics.html").read_text()
    assert page.count("<svg") == 1
    assert "Findings" in page
    assert "(chosen)" in page
    assert (tmp_path / "critics-curves.png").read_bytes().startswith(b"\x89PNG")
    rows = metrics(tmp_path, "multi-25-50-seed0")
    assert {row["width/position"] for row in rows if "width/position" in row} == {0.8}
    assert main(command) == 0
    assert data(tmp_path, "critics") == found
    assert metrics(tmp_path, "multi-25-50-seed0") == rows


def test_both_sights_run_the_papers_scenarios(unbroken: Path) -> None:
    ours, theirs = data(unbroken, "anticipation")["arms"]
    assert (ours["sees"], theirs["sees"]) == ("all", "next")
    cells = {(cell["scenario"], cell["goal"]): cell for cell in theirs["scenarios"]}
    assert list(cells) == [(name, goal) for name in ("straight", "turn", "slow turn") for goal in (1, 2)]
    assert cells["turn", 2]["paper_m"] == [0.7271, 0.1528]
    assert cells["turn", 2]["episodes"] == 4
    assert [row["width/position"] for row in metrics(unbroken, "all-seed0")[1:]] == pytest.approx([0.8, 0.6, 0.4])
    assert "sees only the next goal" in (unbroken / "anticipation.html").read_text()
    assert (unbroken / "anticipation-turn-seed0.png").is_file()


def test_a_study_that_was_killed_ends_as_if_nothing_had_happened(unbroken: Path, tmp_path: Path) -> None:
    command = arguments("anticipation", tmp_path, 3)
    process = subprocess.Popen([sys.executable, "-m", "keystride", *command], stdout=subprocess.DEVNULL)
    while not checkpoints(tmp_path / "runs" / "all-seed0" / "checkpoints") and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    first = metrics(tmp_path, "all-seed0")[0]
    assert main(command) == 0
    assert metrics(tmp_path, "all-seed0")[0] == first  # went on inside the run, at its first checkpoint
    assert data(tmp_path, "anticipation")["arms"] == data(unbroken, "anticipation")["arms"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["critics", "--seeds", "0"], "--seeds must be at least 1"),
        (["critics", "--horizons", "50", "25"], "--horizons"),
        (["anticipation", "--widths", "0.4", "-1"], "--widths"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["study", *words, "--out", str(tmp_path)]) == 2
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
