"""Mirror images of observations and actions. That a mirrored world looks mirrored is tested with the environment."""

import numpy as np
import pytest

from keystride.robot.go2 import GO2
from keystride.task.observations import SignedOrder, action_mirror, goal_mirror, state_mirror

MIRRORS = {"state": (state_mirror(GO2), 46), "goal": (goal_mirror(GO2), 24), "action": (action_mirror(GO2), 12)}


def mirrored(values: np.ndarray, signed_order: SignedOrder) -> np.ndarray:
    order, sign = signed_order
    return values[..., order] * sign


@pytest.mark.parametrize("name", MIRRORS)
def test_mirroring_twice_changes_nothing(name: str) -> None:
    mirror, size = MIRRORS[name]
    values = np.random.default_rng(0).normal(size=(3, size))
    assert np.allclose(mirrored(mirrored(values, mirror), mirror), values)


def test_a_step_to_the_left_becomes_one_to_the_right() -> None:
    """Velocity y and roll rate change sign, forward velocity, gravity z and height do not."""
    state = np.zeros(46)
    state[[0, 1, 3, 32, 33]] = [1.0, 2.0, 3.0, -1.0, 0.3]
    seen = mirrored(state, MIRRORS["state"][0])
    assert seen[[0, 1, 3, 32, 33]].tolist() == [1.0, -2.0, -3.0, -1.0, 0.3]


def test_left_and_right_legs_swap() -> None:
    """The front left thigh becomes the front right one; abduction changes its sign."""
    action = np.zeros(12)
    action[0], action[1] = 0.5, 0.7
    swapped = mirrored(action, MIRRORS["action"][0])
    assert (swapped[3], swapped[4]) == (-0.5, 0.7)
    assert not swapped[:3].any()


def test_time_and_presence_of_a_keyframe_stay() -> None:
    goal = np.zeros(24)
    goal[18:] = np.arange(1.0, 7.0)
    assert np.array_equal(mirrored(goal, MIRRORS["goal"][0]), goal)
