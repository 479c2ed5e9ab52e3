"""The defaults of the task: the paper's ranges and kernel widths, and no addition that is not asked for."""

from dataclasses import asdict
from math import pi, sqrt

import pytest

from keystride.task.config import GoalWidths, KeyframeRanges, RegularizationWidths, TaskConfig


def test_keyframes_are_sampled_as_in_the_paper() -> None:
    ranges = KeyframeRanges()
    assert (ranges.interval_steps, ranges.radius, ranges.count) == ((25, 50), (0.5, 1.0), (1, 5))
    assert ranges.direction == ranges.turn == pytest.approx((-pi / 3, pi / 3))
    additions = (ranges.leap_share, ranges.posture_share, ranges.backward_share, ranges.everyday_share)
    assert additions == (0.0, 0.0, 0.0, 0.0)


def test_goal_kernels_have_the_papers_widths() -> None:
    """0.2 rad per joint is 0.2 sqrt(12) for the norm over twelve joints."""
    widths = GoalWidths()
    assert (widths.position, widths.roll, widths.pitch, widths.yaw) == (0.2, 0.1, 0.1, 0.3)
    assert widths.posture == pytest.approx(0.2 * sqrt(12))
    assert widths.narrowest == 1.0 <= widths.start


def test_shares_are_shares_and_ranges_begin_before_they_end() -> None:
    everyday = KeyframeRanges().everyday
    assert sum(everyday.shares) == pytest.approx(1.0)
    low, high = everyday.interval_steps
    assert 0 < low < high
    assert 0.0 < TaskConfig().reference_start <= 1.0
    assert 0.0 < RegularizationWidths().soft_limit_share <= 1.0


def test_nothing_is_randomized_or_hidden_by_default() -> None:
    task = TaskConfig()
    assert (task.goals, task.see, task.randomize, task.randomized_share) == ("position", "all", "nothing", 1.0)
    assert not task.end_at_joint_limits
    assert asdict(task)["max_keyframes"] == KeyframeRanges().count[1]  # the policy sees all of an episode
