"""Every reward against hand arithmetic."""

from math import exp, sqrt

import numpy as np
import pytest

from keystride.keyframes.goals import COMPONENTS
from keystride.robot.go2 import GO2
from keystride.task import rewards
from keystride.task.config import GoalWidths

ALL = np.ones((1, 1, 5), dtype=bool)
DUE = np.ones((1, 1), dtype=bool)


def test_kernel_falls_to_one_over_e_at_its_width():
    assert rewards.kernel(np.array([[3.0, 4.0]]), 5.0) == pytest.approx(exp(-1))


def test_kernel_is_one_inside_its_tolerance():
    assert rewards.kernel(np.array([[3.0, 4.0]]), 1.0, 5.0) == 1.0


def test_action_rate_is_the_plain_difference():
    action, previous = np.full((1, 12), 1.0), np.full((1, 12), -1.0)
    assert rewards.action_rate(action, previous, 8.0) == pytest.approx(exp(-((2 * sqrt(12) / 8) ** 2)))


def test_base_acceleration_is_horizontal_and_divided_by_the_time():
    before, after = np.array([[0.0, 0.0, 0.0]]), np.array([[0.16, 0.0, 5.0]])  # 8 m/s^2 over 20 ms; z does not count
    assert rewards.base_horizontal_acceleration(after, before, 0.02, 8.0) == pytest.approx(exp(-1))


def test_joint_acceleration_has_a_tolerance():
    before, after = np.zeros((1, 12)), np.zeros((1, 12))
    after[0, 0] = 3.2  # 160 rad/s^2, 150 beyond the tolerance of 10
    assert rewards.joint_acceleration(after, before, 0.02, 150.0, 10.0) == pytest.approx(exp(-1))
    assert rewards.joint_acceleration(after / 16, before, 0.02, 150.0, 10.0) == 1.0


def test_soft_limits_count_what_lies_outside():
    lower, upper = rewards.soft_limits(GO2, 0.9)
    angles = (GO2.lower + GO2.upper)[None] / 2
    assert rewards.joint_soft_limits(angles, lower, upper, 0.1) == 1.0
    angles[0, 2] = upper[2] + 0.1
    assert rewards.joint_soft_limits(angles, lower, upper, 0.1) == pytest.approx(exp(-1))


def test_error_sizes():
    error = np.zeros((1, 1, 18))
    error[..., :3], error[..., 3:6], error[..., 6:] = (0.1, 0.2, 0.2), (-0.1, 0.2, -0.3), 0.5
    assert rewards.error_sizes(error)[0, 0] == pytest.approx([0.3, 0.1, 0.2, 0.3, 0.5 * sqrt(12)])


def test_goal_is_the_product_over_the_components_present():
    widths = rewards.paper_widths(GoalWidths())
    sizes = widths[None, None]  # each component exactly one width off
    assert rewards.goals_met(sizes, ALL, DUE, widths) == pytest.approx(exp(-5))
    only = np.zeros_like(ALL)
    only[..., COMPONENTS.index("yaw")] = True
    assert rewards.goals_met(sizes, only, DUE, widths) == pytest.approx(exp(-1))


def test_goal_counts_on_its_step_alone():
    widths = rewards.paper_widths(GoalWidths())
    assert rewards.goals_met(np.zeros((1, 1, 5)), ALL, ~DUE, widths) == 0.0


def test_paper_widths():
    assert rewards.paper_widths(GoalWidths()) == pytest.approx([0.2, 0.1, 0.1, 0.3, 0.2 * sqrt(12)])


def test_widths_follow_the_error_between_the_starts_and_the_papers():
    widths = GoalWidths(start=4.0, follow=1.0)
    reached = np.array([0.5, 0.001, 10.0, 0.6, 1.0])
    assert rewards.followed_widths(widths, reached) == pytest.approx([0.5, 0.1, 0.4, 0.6, 1.0])


def test_foot_drag_counts_feet_that_move_low():
    previous = np.zeros((1, 4, 3))
    feet = previous.copy()
    feet[0, :, 2] = 0.02 + np.array([0.0, 0.0, rewards.CLEARANCE / 2, rewards.CLEARANCE])
    feet[0, 1:, :2] = 0.012, 0.016  # 1 m/s over 20 ms; the first foot stands
    assert rewards.foot_drag(feet, previous, np.zeros((1, 4, 3)), 0.02, 0.02) == pytest.approx(1.0 + 0.5 + 0.0)


def test_a_foot_that_rolls_does_not_slide():
    previous = np.full((1, 4, 3), 0.02)
    feet = previous.copy()
    feet[..., 0] += 0.004  # 0.2 m/s forwards
    rates = np.zeros((1, 4, 3))
    rates[..., 1] = 10.0  # rad/s about the lateral axis: the ball of 2 cm rolls at 0.2 m/s
    assert rewards.foot_drag(feet, previous, rates, 0.02, 0.02) == pytest.approx(0.0)
    assert rewards.foot_drag(feet, previous, -rates, 0.02, 0.02) == pytest.approx(4 * 0.4)


def test_hurried_swings_cost_at_their_landing():
    swing = np.zeros((4, 4))
    swing[1, 0] = rewards.SWING + 0.01
    swing[2, :2] = rewards.SWING - rewards.SHORT_SWING_MARGIN / 4
    swing[3] = 0.02
    assert rewards.short_swing_penalty(swing) == pytest.approx([0.0, 0.0, 0.5, 4.0])


def test_each_part_of_a_goal_counts_on_its_own():
    """A miss in one component leaves the others' share; absent ones do not count; nothing before a keyframe is due."""
    widths = np.array([0.2, 0.1, 0.1, 0.3, 0.7])
    sizes = np.array([[[100.0, 0.0, 0.1, 0.0, 0.0]]])
    everything = np.ones((1, 1, 5), dtype=bool)
    due = np.ones((1, 1), dtype=bool)
    assert rewards.goal_parts_met(sizes, everything, due, widths) == pytest.approx(
        [(0.0 + 1.0 + 0.5 + 2.0) / 5], abs=1e-5
    )
    two = np.array([[[True, False, True, False, False]]])
    assert rewards.goal_parts_met(sizes, two, due, widths) == pytest.approx([0.25], abs=1e-5)
    assert rewards.goal_parts_met(sizes, everything, ~due, widths) == pytest.approx([0.0])


def test_pace_is_the_way_that_is_left_over_the_time_that_is_left():
    left, seconds = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([1.0, 0.5])
    assert rewards.pace_match(np.array([[0.5, 0.0], [0.0, 1.0]]), left, seconds) == pytest.approx([1.0, 1.0])
    off = rewards.PACE + rewards.PACE_SHARE * 0.5
    assert rewards.pace_match(np.array([[0.5, off]]), left[:1], seconds[:1]) == pytest.approx([exp(-1)])


def test_pace_wants_nothing_impossible():
    """Neither of a keyframe out of reach, nor in the last moment, when any distance over the time left would be fast."""
    far, fastest = np.array([[100.0, 0.0]]), np.array([[rewards.FASTEST_PACE, 0.0]])
    assert rewards.pace_match(fastest, far, np.array([1.0])) == pytest.approx([1.0])
    near, slow = np.array([[0.01, 0.0]]), np.array([[0.01 / rewards.LAST_MOMENT, 0.0]])
    assert rewards.pace_match(slow, near, np.array([0.0])) == pytest.approx([1.0])
