"""The anticipation study: its settings, and the command from training to the page, at sizes that take seconds and teach nothing."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride.commands.main import main
from keystride.learner.checkpoint import checkpoints
from keystride.studies.anticipation import AnticipationStudy
from keystride.studies.runs import (
    Size,
)
from keystride.task.rewards import followed_widths
from keystride.training.config import differences, plain_config, resolved_stages

from .test_critics import arguments, data, metrics


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("anticipation")
    assert main(arguments("anticipation", out, 3)) == 0
    return out


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


SIZE = Size()


def test_runs_of_the_anticipation_study_differ_in_what_is_seen_alone() -> None:
    study = AnticipationStudy(Path("out"), replace(SIZE, steps=10), (0.8, 0.6, 0.4))
    ours, theirs = study.config("all", 0), study.config("next", 0)
    assert set(differences(plain_config(ours), plain_config(theirs))) == {"name", "task.see"}
    stages = resolved_stages(ours)
    assert [stage.until for stage in stages] == [3, 6, 10]
    widths = [followed_widths(stage.config.task.goal_widths, np.full(5, 1.0))[0] for stage in stages]
    assert widths == pytest.approx([0.8, 0.6, 0.4])
