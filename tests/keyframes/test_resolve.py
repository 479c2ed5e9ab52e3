"""From scripts to goals in the world, and the window that feeds long scripts to a policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystride.keyframes.goals import VISIBLE_STEPS_AFTER, Goals, empty_goals, used, visible
from keystride.keyframes.postures import posture
from keystride.keyframes.resolve import finished, resolve, script_goals, spots, stack, window
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2


def walk(*keyframes: Keyframe) -> Script:
    return Script(keyframes=keyframes)


def yaws(*steps: int) -> Goals:
    return resolve(walk(*(Keyframe(time=step * 0.02, yaw=step) for step in steps)), GO2)


def test_a_keyframe_becomes_a_row_in_metres_and_radians():
    goals = resolve(walk(Keyframe(time=0.5, position=(1, 2, 0.3), roll=10, yaw=-90, posture="sit")), GO2)
    assert goals.step.tolist() == [[25]]
    assert goals.presence.tolist() == [[[True, True, False, True, True]]]
    assert goals.height.tolist() == [[True]]
    np.testing.assert_allclose(goals.position[0, 0], [1.0, 2.0, 0.3])
    np.testing.assert_allclose(goals.angles[0, 0], [np.radians(10), 0.0, -np.pi / 2])
    np.testing.assert_array_equal(goals.posture[0, 0], posture("sit", GO2).joints)


def test_a_position_of_two_figures_has_no_height():
    goals = resolve(walk(Keyframe(time=0.5, position=(1, 2))), GO2)
    assert not goals.height[0, 0]
    np.testing.assert_array_equal(goals.position[0, 0], [1.0, 2.0, 0.0])


def test_relative_offsets_add_up_along_the_last_yaw():
    goals = resolve(
        walk(
            Keyframe(time=1, position=(1, 0), relative=True),  # from the start, along its heading
            Keyframe(time=2, yaw=90),
            Keyframe(time=3, position=(1, 0), relative=True),  # now ahead is +y
            Keyframe(time=4, position=(0, 1, 0.3), relative=True, yaw=180),  # left is -x; its own yaw comes after it
            Keyframe(time=5, position=(1, 0), relative=True),  # ahead is -x
            Keyframe(time=6, position=(5, 5)),  # absolute again
            Keyframe(time=7, position=(1, 0), relative=True),
        ),
        GO2,
    )
    expected = [[1, 0], [0, 0], [1, 1], [0, 1], [-1, 1], [5, 5], [4, 5]]
    np.testing.assert_allclose(goals.position[0, :, :2], expected, atol=1e-12)
    assert goals.position[0, 3, 2] == 0.3  # z is the height over the ground, also here


def test_the_start_moves_and_turns_everything():
    script = walk(Keyframe(time=1, position=(1, 0, 0.3), yaw=170), Keyframe(time=2, pitch=5))
    goals = script_goals(script, np.array([[10.0, 20.0, 9.0]]), np.array([np.pi / 2]), robot=GO2)
    np.testing.assert_allclose(goals.position[0], [[10.0, 21.0, 0.3], [0.0, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(np.degrees(goals.angles[0]), [[0.0, 0.0, -100.0], [0.0, 5.0, 0.0]], atol=1e-9)


def test_one_script_for_many_robots():
    position, yaw = np.arange(10.0).reshape(5, 2), np.linspace(0, 1, 5)
    goals = script_goals(walk(Keyframe(time=1, position=(0, 0))), position, yaw, robot=GO2)
    np.testing.assert_array_equal(goals.position[:, 0, :2], position)


def test_many_scripts_are_padded_with_unused_rows():
    long = walk(Keyframe(time=1, yaw=1), Keyframe(time=2, yaw=2))
    goals = script_goals([walk(Keyframe(time=1, yaw=1)), long], robot=GO2)
    assert goals.step.shape == (2, 2)
    assert used(goals).tolist() == [[True, False], [True, True]]


@given(script=...)
@settings(max_examples=25)
def test_absent_components_hold_zeros_wherever_the_robot_starts(script: Script):
    goals = script_goals(script, np.array([[3.0, 4.0]]), np.array([1.0]), robot=GO2)
    assert not goals.position[~goals.presence[..., 0]].any()
    assert not goals.angles[~goals.presence[..., 1:4]].any()
    assert not goals.posture[~goals.presence[..., 4]].any()
    assert used(goals).all()


@given(script=...)
@settings(max_examples=25)
def test_the_last_spot_is_the_last_position_and_yaw(script: Script):
    goals, end = resolve(script, GO2), spots(script)[-1]
    placed = goals.position[0][goals.presence[0, :, 0]]
    turned = goals.angles[0][goals.presence[0, :, 3]]
    np.testing.assert_allclose([end.x, end.y], placed[-1, :2] if len(placed) else [0, 0])
    np.testing.assert_allclose(end.yaw, turned[-1, 2] if len(turned) else 0.0)


def test_a_window_holds_the_first_that_have_not_expired():
    goals = yaws(10, 20, 30, 100)
    assert window(goals, np.array([0]), 2).step.tolist() == [[10, 20]]
    assert window(goals, np.array([10 + VISIBLE_STEPS_AFTER]), 2).step.tolist() == [[10, 20]]
    assert window(goals, np.array([11 + VISIBLE_STEPS_AFTER]), 2).step.tolist() == [[20, 30]]
    late = window(goals, np.array([31 + VISIBLE_STEPS_AFTER]), 2)
    assert late.step.tolist() == [[100, 0]]
    assert used(late).tolist() == [[True, False]]


def test_a_window_wider_than_the_script_is_padded():
    assert used(window(yaws(10), np.array([0]), 3)).tolist() == [[True, False, False]]


def test_each_robot_has_its_own_clock():
    goals = stack([yaws(10, 100), yaws(10, 100)])
    assert window(goals, np.array([0, 99]), 1).step.tolist() == [[10], [100]]
    assert finished(goals, np.array([150, 151])).tolist() == [False, True]


@given(
    steps=st.lists(st.sets(st.integers(0, 300), min_size=1, max_size=8), min_size=1, max_size=4),
    now=st.integers(0, 400),
    keyframes=st.integers(1, 5),
)
def test_a_window_is_the_front_of_what_is_visible(steps: list[set[int]], now: int, keyframes: int):
    goals = stack([yaws(*sorted(one)) for one in steps])
    clock = np.full(len(steps), now)
    fed = window(goals, clock, keyframes)
    assert fed.step.shape == (len(steps), keyframes)
    for row in range(len(steps)):
        expected = goals.angles[row][visible(goals, clock)[row]][:keyframes]
        np.testing.assert_array_equal(fed.angles[row][used(fed)[row]], expected)
        assert not fed.angles[row][~used(fed)[row]].any()


def test_an_empty_batch_of_goals_has_an_empty_window():
    assert not used(window(empty_goals(2, 4), np.zeros(2, dtype=int), 3)).any()


def test_stacking_nothing_is_refused():
    with pytest.raises(ValueError, match="empty"):
        stack([])
