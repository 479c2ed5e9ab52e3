"""How a robot sees goals: hand arithmetic in NumPy, and the same figures from torch."""

import numpy as np
import pytest

from keystride import geometry
from keystride.keyframes import goals as g
from keystride.keyframes.goals import (
    COMPONENTS,
    Goals,
    empty_goals,
    goal_errors,
    goal_observation,
    next_only,
    visible,
    with_components,
)

POSITION, ROLL, PITCH, YAW, POSTURE = range(len(COMPONENTS))
LEVEL = np.zeros(3)


def one_goal(**values: object) -> Goals:
    """One environment, one keyframe; components are present where a value is given."""
    goals = empty_goals(1, 1)
    for name, value in values.items():
        getattr(goals, name)[0, 0] = value
    return goals


def errors(goals: Goals, position: object = LEVEL, angles: object = LEVEL, joints: object = 0.0) -> np.ndarray:
    orientation = geometry.from_roll_pitch_yaw(np.array([angles], dtype=float))
    return goal_errors(goals, np.array([position], dtype=float), orientation, np.full((1, 12), joints))[0, 0]


def test_two_metres_to_the_north_are_two_metres_ahead_of_a_robot_facing_north():
    goals = one_goal(position=[1.0, 3.0, 0.4], presence=[1, 0, 0, 0, 0], height=True)
    error = errors(goals, position=[1.0, 1.0, 0.3], angles=[0, 0, np.pi / 2])
    np.testing.assert_allclose(error[:3], [2.0, 0.0, 0.1], atol=1e-12)
    np.testing.assert_array_equal(error[3:], 0.0)


def test_what_is_level_ahead_is_below_a_robot_with_its_nose_up():
    goals = one_goal(position=[1.0, 0.0, 0.3], presence=[1, 0, 0, 0, 0], height=True)
    error = errors(goals, position=[0.0, 0.0, 0.3], angles=[0, -np.pi / 6, 0])
    np.testing.assert_allclose(error[:3], [np.cos(np.pi / 6), 0.0, -0.5], atol=1e-12)


def test_a_position_without_height_asks_nothing_of_the_height():
    goals = one_goal(position=[1.0, 0.0, 9.0], presence=[1, 0, 0, 0, 0], height=False)
    np.testing.assert_allclose(errors(goals, position=[0.0, 0.0, 0.3])[:3], [1.0, 0.0, 0.0], atol=1e-12)


def test_from_170_degrees_to_minus_170_it_is_20_to_the_left():
    goals = one_goal(angles=np.radians([0.0, 0.0, -170.0]), presence=[0, 0, 0, 1, 0])
    error = errors(goals, angles=np.radians([0.0, 0.0, 170.0]))
    np.testing.assert_allclose(np.degrees(error[3:6]), [0.0, 0.0, 20.0], atol=1e-9)


def test_posture_errors_are_what_each_joint_has_left():
    goals = one_goal(posture=np.arange(12.0), presence=[0, 0, 0, 0, 1])
    np.testing.assert_allclose(errors(goals, joints=0.5)[6:], np.arange(12.0) - 0.5)


@pytest.mark.parametrize("component", range(len(COMPONENTS)))
def test_only_present_components_have_errors(component: int):
    presence = np.arange(len(COMPONENTS)) == component
    goals = one_goal(position=[1.0, 2.0, 3.0], angles=0.7, posture=0.9, presence=presence, height=True)
    error = errors(goals)
    parts = {POSITION: slice(0, 3), ROLL: slice(3, 4), PITCH: slice(4, 5), YAW: slice(5, 6), POSTURE: slice(6, 18)}
    assert np.all(error[parts[component]] != 0.0)
    assert np.count_nonzero(error) == error[parts[component]].size


def test_a_keyframe_is_visible_until_one_second_after_its_time():
    goals = one_goal(step=100, presence=[0, 0, 0, 1, 0])
    seen = [bool(visible(goals, np.array([now]))[0, 0]) for now in (0, 100, 150, 151)]
    assert seen == [True, True, True, False]


def test_an_unused_row_is_never_visible():
    assert not visible(empty_goals(1, 3), np.array([0])).any()


def test_the_next_goal_aware_baseline_sees_one_keyframe_and_only_until_it_is_due():
    goals = empty_goals(1, 3)
    goals.step[0] = [10, 20, 0]
    goals.presence[0, :2, YAW] = True
    seen = [next_only(goals, np.array([now]))[0].tolist() for now in (0, 10, 11, 21)]
    assert seen == [[True, False, False], [True, False, False], [False, True, False], [False, False, False]]


def test_the_token_is_error_then_seconds_then_presence():
    goals = one_goal(position=[1.0, 0.0, 0.1], presence=[1, 0, 0, 0, 0])
    goals.height[:] = True
    upright = np.array([[1.0, 0.0, 0.0, 0.0]])
    token = goal_observation(goals, np.array([[0.4]]), np.zeros((1, 3)), upright, np.zeros((1, 12)))[0, 0]
    assert token.shape == (g.GOAL_SIZE,)
    np.testing.assert_allclose(token[[0, 2, 18]], [1.0, 0.1 * g.HEIGHT_GAIN, 0.4])
    np.testing.assert_array_equal(token[19:], [1, 0, 0, 0, 0])


def test_rows_can_be_taken_and_put_back():
    goals = empty_goals(3, 2)
    part = goals[np.array([2])]
    part.step[:] = 7
    goals[np.array([0])] = part
    assert goals.step.tolist() == [[7, 7], [0, 0], [0, 0]]


def test_torch_sees_what_numpy_sees():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    goals = empty_goals(4, 3)
    goals.position[:], goals.angles[:] = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3, 3))
    goals.presence[:], goals.height[:] = rng.random((4, 3, 5)) < 0.5, rng.random((4, 3)) < 0.5
    state = [rng.normal(size=(4, 3)), geometry.normalize(rng.normal(size=(4, 4))), rng.normal(size=(4, 12))]
    tensors = Goals(*(torch.as_tensor(value) for value in vars(goals).values()))
    expected = goal_errors(goals, *state)
    np.testing.assert_allclose(goal_errors(tensors, *map(torch.as_tensor, state)).numpy(), expected, atol=1e-12)


def test_components_that_are_taken_out_leave_zeros_even_where_they_were_nan():
    goals = empty_goals(1, 2)
    goals.presence[:], goals.height[:] = True, True
    goals.position[:], goals.angles[:], goals.posture[:] = 1.0, np.nan, 2.0
    presence = np.zeros((1, 2, 5), dtype=bool)
    presence[0, 0, [0, 4]] = True  # position and posture of the first keyframe
    kept = with_components(goals, presence)
    np.testing.assert_array_equal(kept.position[0], [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(kept.angles, np.zeros((1, 2, 3)))
    np.testing.assert_array_equal(kept.posture[0, :, 0], [2, 0])
    np.testing.assert_array_equal(kept.height, [[True, False]])
