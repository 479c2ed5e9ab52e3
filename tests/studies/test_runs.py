"""The settings that the runs of both studies share, and how runs are continued."""

from dataclasses import replace
from math import sqrt
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from keystride.errors import UserError
from keystride.studies.anticipation import AnticipationStudy
from keystride.studies.critics import CriticsStudy, multi
from keystride.studies.runs import (
    QUICK,
    Size,
    finish_runs,
    fixed_widths,
    paper_task,
    progress_line,
    size_warning,
    wait_until_free,
)
from keystride.task.rewards import followed_widths
from keystride.training.config import write_config

SIZE = Size()


def test_fixed_widths_do_not_follow_the_error() -> None:
    for reached in (0.01, 0.3, 5.0):
        widths = followed_widths(fixed_widths(0.8), np.full(5, reached))
        assert widths == pytest.approx([0.8, 0.4, 0.4, 1.2, 0.8 * sqrt(12)])


def test_episodes_are_drawn_as_the_paper_draws_them() -> None:
    task = paper_task(SIZE, 0.8, (75, 100))
    assert (task.goals, task.tail_steps, task.reference_start, task.randomize) == ("position", (50, 50), 0.8, "nothing")
    ranges = task.ranges
    assert (ranges.interval_steps, ranges.radius, ranges.count) == ((75, 100), (0.5, 1.0), (1, 5))
    assert (ranges.random_share[0], ranges.random_ramp) == (0.0, Size().steps // 2)
    assert (ranges.leap_share, ranges.posture_share, ranges.everyday_share) == (0.0, 0.0, 0.0)


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


def test_the_robot_is_an_argument_of_both_studies() -> None:
    critics = CriticsStudy(Path("out"), SIZE, robot="other.yaml")
    anticipation = AnticipationStudy(Path("out"), SIZE, robot="other.yaml")
    assert {critics.config(multi(), (25, 50), 0).robot, anticipation.config("all", 0).robot} == {"other.yaml"}
