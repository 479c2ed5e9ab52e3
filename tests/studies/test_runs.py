"""The recipe of the studies: the paper's, and equal in everything but what is compared."""

from dataclasses import replace
from math import sqrt
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from keystride.errors import UserError
from keystride.studies.anticipation import AnticipationStudy
from keystride.studies.critics import PAPER_GOAL_WEIGHT, CriticsStudy, multi, single
from keystride.studies.runs import (
    QUICK,
    Size,
    finish_runs,
    fixed_widths,
    paper_task,
    progress_line,
    single_critic,
    size_warning,
    wait_until_free,
)
from keystride.task.rewards import followed_widths
from keystride.training.config import differences, plain_config, resolved_stages, write_config

SIZE = Size()


def test_fixed_widths_do_not_follow_the_error() -> None:
    for reached in (0.01, 0.3, 5.0):
        widths = followed_widths(fixed_widths(0.8), np.full(5, reached))
        assert widths == pytest.approx([0.8, 0.4, 0.4, 1.2, 0.8 * sqrt(12)])


def test_the_single_critic_sums_the_papers_three_rewards() -> None:
    (group,) = single_critic(20.0)
    assert dict(group.rewards) == {"goal": 20.0, "style": 0.5, "regularization": 0.1}
    assert group.advantage_weight == pytest.approx(sqrt(0.5**2 + 0.5**2 + 0.1**2))
    assert PAPER_GOAL_WEIGHT == 0.5


def test_episodes_are_drawn_as_the_paper_draws_them() -> None:
    task = paper_task(SIZE, 0.8, (75, 100))
    assert (task.goals, task.tail_steps, task.reference_start, task.randomize) == ("position", (50, 50), 0.8, "nothing")
    ranges = task.ranges
    assert (ranges.interval_steps, ranges.radius, ranges.count) == ((75, 100), (0.5, 1.0), (1, 5))
    assert (ranges.random_share[0], ranges.random_ramp) == (0.0, 3_000_000)
    assert (ranges.leap_share, ranges.posture_share, ranges.everyday_share) == (0.0, 0.0, 0.0)


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


def test_runs_of_the_anticipation_study_differ_in_what_is_seen_alone() -> None:
    study = AnticipationStudy(Path("out"), replace(SIZE, steps=10), (0.8, 0.6, 0.4))
    ours, theirs = study.config("all", 0), study.config("next", 0)
    assert set(differences(plain_config(ours), plain_config(theirs))) == {"name", "task.see"}
    stages = resolved_stages(ours)
    assert [stage.until for stage in stages] == [3, 6, 10]
    widths = [followed_widths(stage.config.task.goal_widths, np.full(5, 1.0))[0] for stage in stages]
    assert widths == pytest.approx([0.8, 0.6, 0.4])


def test_a_run_with_other_settings_is_not_taken_for_one_of_the_study(tmp_path: Path) -> None:
    study = CriticsStudy(tmp_path, QUICK)
    config = study.config(multi(), (25, 50), 0)
    write_config(replace(config, learner=replace(config.learner, steps=5)), config.folder)
    with pytest.raises(UserError, match=r"learner\.steps was 5, now 6144.*choose another --out"):
        finish_runs([config])


def test_a_run_is_waited_for_while_the_processes_of_a_killed_study_save_it(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = Thread(target=wait_until_free, args=(tmp_path,))
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
    waiting.join(60.0)
    assert not waiting.is_alive()


def test_a_study_too_small_to_learn_says_so() -> None:
    assert size_warning(SIZE) == ()
    assert "say nothing about the method" in size_warning(QUICK)[0]


def test_progress_is_a_bar_with_the_time_left() -> None:
    assert progress_line(0.5, "run 2 of 4", 600.0) == f"[{'#' * 15}{'.' * 15}] 50%: run 2 of 4, about 10 min left"
    assert progress_line(0.0, "run 1 of 4") == f"[{'.' * 30}] 0%: run 1 of 4"
