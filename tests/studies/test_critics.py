"""The critics study: its settings, and the command from training to the page, at sizes that take seconds and teach nothing."""

import json
import shutil
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keystride.commands.main import main
from keystride.learner.config import CPU
from keystride.studies.critics import (
    PAPER_GOAL_WEIGHT,
    Arm,
    CriticsStudy,
    critics_findings,
    critics_table,
    curves_figure,
    multi,
    single,
)
from keystride.studies.measures import (
    Curve,
    Errors,
)
from keystride.studies.runs import (
    Size,
    single_critic,
)
from keystride.training.config import differences, plain_config

ITERATION = 8 * CPU.horizon  # control steps
SIZES = ["--robots", "8", "--seeds", "1", "--processes", "1", "--episodes", "4"]
SIZES += ["--evaluation-robots", "4", "--evaluation-steps", "80"]


def arguments(study: str, out: Path, iterations: int, *others: str) -> list[str]:
    steps = str(iterations * ITERATION)  # evaluated at the start and at the end alone
    return ["study", study, "--out", str(out), "--steps", steps, "--evaluate-steps", steps, *SIZES, *others]


def data(out: Path, study: str) -> dict[str, Any]:
    return json.loads((out / f"{study}.json").read_text())


def metrics(out: Path, run: str) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "runs" / run / "metrics.jsonl").read_text().splitlines()]


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
    copy = tmp_path / "copy"  # the results that were kept are all that the tables need, wherever they are
    shutil.copytree(tmp_path / "results", copy / "results")
    again = arguments("critics", copy, 1, "--horizons", "25", "50", "--weights", "20")
    assert main(again) == 0
    assert data(copy, "critics") == found
    assert not (copy / "runs").exists()
    assert not [path for path in (copy / "results").iterdir() if str(tmp_path) in path.read_text()]
    (copy / "results" / "multi-25-50-seed0.json").write_text('{"episodes": 4}')
    assert main(again) == 2
    assert "multi-25-50-seed0.json: settings: " in capsys.readouterr().err


SIZE = Size()


def test_the_single_critic_sums_the_papers_three_rewards() -> None:
    (group,) = single_critic(20.0)
    assert dict(group.rewards) == {"goal": 20.0, "style": 0.5, "regularization": 0.1}
    assert group.advantage_weight == pytest.approx(sqrt(0.5**2 + 0.5**2 + 0.1**2))
    assert PAPER_GOAL_WEIGHT == 0.5


def test_runs_of_the_critics_study_differ_in_critics_horizon_and_seed_alone() -> None:
    study = CriticsStudy(Path("out"), SIZE)
    one = study.config(multi(), (25, 50), 0)
    assert [group.name for group in one.learner.ppo.groups] == ["goal", "style", "regularization"]
    assert {group.lam for group in one.learner.ppo.groups} == {None}
    assert (one.learner.ppo.clone, one.learner.network.next_goal_time_column, one.library) == (0.0, None, ())
    other = study.config(single(20.0), (25, 50), 0)
    assert set(differences(plain_config(one), plain_config(other))) == {"name", "learner.ppo.groups"}
    longer = study.config(multi(), (50, 75), 1)
    assert set(differences(plain_config(one), plain_config(longer))) == {
        "name",
        "learner.seed",
        "task.ranges.interval_steps",
    }


def curve(*distance: float) -> Curve:
    steps = np.arange(len(distance), dtype=np.float64) * 1e6
    return Curve(steps, np.array(distance), np.exp(-(np.array(distance) ** 2)), np.ones(len(distance)))


def errors(*by_seed: list[float]) -> Errors:
    return Errors(tuple(np.array(values) for values in by_seed), falls=1, episodes=4)


def test_tables_findings_and_figure_follow_from_the_arms() -> None:
    near, far = {"dataset": errors([0.1], [0.2]), "random": errors([0.3], [0.4])}, {"dataset": errors([0.8], [0.9])}
    far["random"] = far["dataset"]
    arms = [
        Arm(method, horizon, (curve(1.0, last), curve(0.9, last)), found)
        for horizon in ((25, 50), (50, 75))
        for method, last, found in ((multi(), 0.2, near), (single(0.5), 0.8, far))
    ]
    line = critics_table(arms).lines[0]
    assert [cell.ours for cell in line[1:]] == [
        "0.88, 0.86",
        "0.150 ± 0.050",
        "0.350 ± 0.050",
        "0.200, 0.300",
        "2 of 8",
    ]
    assert critics_table(arms).lines[1][1].ours == "not reached, not reached"
    error, samples = critics_findings(arms)
    for sentence in (error, samples):
        assert "better with every seed at 25-50 steps, 50-75 steps. This supports the paper's claim." in sentence
    panels = curves_figure(arms).axes
    assert len(panels) == 6
    assert [text.get_text() for text in panels[0].get_legend().get_texts()] == [
        "25-50 steps apart",
        "50-75 steps apart",
    ]
    assert panels[2].lines[0].get_ydata() == pytest.approx([0.95, 0.2])
