import numpy as np
import pytest

from keystride.evaluation.episodes import NEVER_FELL, EpisodeRollout, Trace
from keystride.evaluation.results import Subject, rows_of_all_goals, rows_of_goal
from keystride.keyframes.goals import empty_goals
from keystride.robot.go2 import GO2

SUBJECT = Subject("matching", "walk", "go2-pose")


def rollout() -> EpisodeRollout:
    """Three still robots at x = 0; keyframes at x = 1, 2, 3 and, for the first two, at 0.1; the last has fallen."""
    goals = empty_goals(3, 2)
    goals.step[:] = [1, 2]
    goals.position[:, 0, 0], goals.position[:, 1, 0] = [1.0, 2.0, 3.0], 0.1
    goals.presence[..., 0] = True
    goals.presence[2, 1] = False
    position, orientation, joints = np.zeros((4, 3, 3)), np.zeros((4, 3, 4)), np.tile(GO2.stance, (4, 3, 1))
    orientation[..., 0] = 1.0
    trace = Trace(position, orientation, joints, np.zeros_like(joints), np.zeros_like(position), joints[:3])
    return EpisodeRollout(goals, trace, end=np.array([3, 3, 3]), fell=np.array([NEVER_FELL, NEVER_FELL, 1]))


def test_mean_and_deviation_over_all_episodes_the_fallen_included() -> None:
    distance, met = rows_of_goal(SUBJECT, rollout(), 1, {"distance_m": (0.5, 0.1)})
    assert distance.metric == "distance_m"
    assert distance.goal == "1"
    assert distance.mean == pytest.approx(2.0)
    assert distance.std == pytest.approx(np.sqrt(2 / 3))
    assert (distance.episodes, distance.falls) == (3, 1)
    assert (distance.paper, distance.paper_std) == (0.5, 0.1)
    assert met.metric == "met_share"
    assert met.mean == 0.0
    assert met.paper is None


def test_all_goals_are_those_that_were_asked_for() -> None:
    distance, met = rows_of_all_goals(SUBJECT, rollout())
    assert distance.mean == pytest.approx((1 + 2 + 3 + 0.1 + 0.1) / 5)  # the sixth row holds no keyframe
    assert met.mean == pytest.approx(2 / 5)
    assert distance.paper is None


def test_a_row_has_the_keys_that_readers_of_the_file_rely_on() -> None:
    row = rows_of_goal(SUBJECT, rollout(), 2)[0].as_dict()
    assert {"suite", "scenario", "goal", "metric", "mean", "std", "episodes", "falls", "paper"} <= row.keys()
