from dataclasses import replace
from math import pi

import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.errors import keyframe_errors, met
from keystride.keyframes.goals import Goals, empty_goals
from keystride.robot.go2 import GO2

LEVEL = np.array([[1.0, 0.0, 0.0, 0.0]])
STANCE = GO2.stance[None]


def full_goal() -> Goals:
    goals = empty_goals(1, 1)
    goals.presence[:], goals.height[:] = True, True
    goals.posture[:] = GO2.stance
    return goals


def errors_of(goals: Goals, position: tuple[float, float, float], orientation: np.ndarray = LEVEL) -> np.ndarray:
    return keyframe_errors(goals, np.array([position]), orientation, STANCE)[0, 0]


def test_distance_is_the_norm_in_space() -> None:
    assert errors_of(full_goal(), (2.0, 3.0, 6.0))[0] == pytest.approx(7.0)


def test_without_a_height_distance_is_over_the_ground() -> None:
    goals = replace(full_goal(), height=np.zeros((1, 1), dtype=bool))
    assert errors_of(goals, (3.0, 4.0, 123.0))[0] == pytest.approx(5.0)


def test_distance_does_not_depend_on_how_the_robot_is_turned() -> None:
    turned = geometry.from_roll_pitch_yaw(np.array([[0.3, -0.4, 2.0]]))
    assert errors_of(full_goal(), (2.0, 3.0, 6.0), turned)[0] == pytest.approx(7.0)


def test_angles_go_the_shorter_way_round() -> None:
    goals = full_goal()
    goals.angles[0, 0] = [0.0, 0.0, pi - 0.01]
    there = geometry.from_roll_pitch_yaw(np.array([[0.2, -0.1, -pi + 0.01]]))
    assert errors_of(goals, (0, 0, 0), there)[1:4] == pytest.approx(np.degrees([0.2, 0.1, 0.02]))


def test_posture_is_the_root_mean_square_over_the_joints() -> None:
    goals = full_goal()
    goals.posture[0, 0] += 0.1
    assert errors_of(goals, (0, 0, 0))[4] == pytest.approx(np.degrees(0.1))
    goals.posture[0, 0] = GO2.stance
    goals.posture[0, 0, 5] += 0.12
    assert errors_of(goals, (0, 0, 0))[4] == pytest.approx(np.degrees(0.12) / np.sqrt(12))


def test_what_a_keyframe_leaves_open_has_no_error() -> None:
    goals = full_goal()
    goals.presence[0, 0] = [True, False, False, True, False]
    assert np.isnan(errors_of(goals, (1, 0, 0))).tolist() == [False, True, True, False, True, False]


def test_met_looks_at_every_component_there_is_and_at_no_other() -> None:
    nan = np.nan
    rows = np.array(
        [
            [0.15, 10.0, 10.0, 15.0, 10.0, 0.05],  # exactly at every threshold
            [0.16, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, nan, nan, 15.1, nan, nan],
            [0.1, nan, nan, nan, nan, nan],
            [nan, nan, nan, nan, nan, nan],  # asks for nothing
        ]
    )
    assert met(rows).tolist() == [True, False, False, True, False]


def test_a_height_is_judged_on_its_own() -> None:
    goals = full_goal()
    goals.position[0, 0, 2] = 0.45
    missed = errors_of(goals, (0.0, 0.0, 0.35))
    assert missed[5] == pytest.approx(0.1)
    assert missed[0] < 0.15
    assert not met(missed)
    assert met(errors_of(goals, (0.1, 0.0, 0.42)))
    open_height = replace(goals, height=np.zeros((1, 1), dtype=bool))
    assert np.isnan(errors_of(open_height, (0.0, 0.0, 0.35))[5])
