"""Trained ranges: what is refused as a range, and which keyframes leave them."""

from math import pi
from typing import Any

import numpy as np
import pytest

from keystride.keyframes.goals import CONTROL_DT, empty_goals
from keystride.keyframes.inbetween.ranges import RANGE_TOLERANCE, Departure, TrainedRanges, departures, exceeds

PAPER = TrainedRanges()


@pytest.mark.parametrize(
    "wrong",
    [
        {"gap_s": (1.0, 0.5)},
        {"gap_s": (0.0, 1.0)},
        {"distance_m": (0.0, float("inf"))},
        {"turn_rad": (0.0, float("nan"))},
        {"speed_m_s": (1.0, 1.0)},
        {"speed_m_s": (1.0, 0.0, 1.0)},
        {"turn_rate_rad_s": -1.0},
    ],
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"limit|positive"):
        TrainedRanges(**wrong)


def test_gaps_in_control_steps_are_one_at_least() -> None:
    assert PAPER.gap_steps == (25, 50)
    assert TrainedRanges(gap_s=(0.02, 0.02)).gap_steps == (1, 1)


def test_a_limit_may_be_exceeded_by_the_tolerance() -> None:
    beyond = 1.0 + RANGE_TOLERANCE
    assert exceeds(np.array([-0.1, 0.0, 1.0, beyond, beyond + 0.001]), (0.0, 1.0)).tolist() == [
        *(True, False, False, False, True)
    ]


def found(
    step: int, x: float, y: float, yaw: float, z: float | None = None, ranges: TrainedRanges = PAPER
) -> list[str]:
    goals = empty_goals(1, 1)
    goals.step[:], goals.presence[..., 0], goals.presence[..., 3] = step, True, True
    goals.position[..., :2] = x, y
    if z is not None:
        goals.position[..., 2], goals.height[:] = z, True
    messages: list[Departure] = departures(goals, np.array([[x, y, yaw]]), ranges, np.zeros(3))
    assert {one.row for one in messages} <= {0}
    return [one.message for one in messages]


def test_what_the_paper_samples_is_within_its_ranges() -> None:
    assert found(25, 0.5, 0.0, 0.0) == []
    assert found(50, 0.5, 0.5, pi / 3) == []


@pytest.mark.parametrize(
    ("keyframe", "message"),
    [
        ((100, 0.5, 0.0, 0.0), "comes 2.00 s after the one before; trained: 0.5 to 1 s"),
        ((50, 1.5, 0.0, 0.0), "is 1.50 m from the one before; trained: up to 1 m"),
        ((50, 0.0, 0.9, 0.0), "lies 90 degrees off the robot's heading; trained: -60 to 60 degrees"),
        ((50, 0.5, 0.0, pi / 2), "asks for a turn by 90 degrees; trained: -60 to 60 degrees"),
        ((25, 0.9, 0.0, pi / 3, 0.8), "has a height of 0.80 m; trained: 0.12 to 0.55 m"),
    ],
)
def test_departures_are_named(keyframe: tuple[Any, ...], message: str) -> None:
    assert found(*keyframe) == [message]


def test_speed_is_judged_by_direction() -> None:
    """An ellipse: full speed ahead, half of it sideways."""
    wide = TrainedRanges(gap_s=(0.5, 3.0), distance_m=(0, 4), direction_rad=(-pi, pi), speed_m_s=(1.0, 0.5, 0.5))
    assert found(50, 1.0, 0.0, 0.0, ranges=wide) == []
    assert found(50, 0.0, 1.0, 0.0, ranges=wide) == ["asks for 2.0 times the trained speed in its direction"]
    assert found(50, -1.0, 0.0, 0.0, ranges=wide) == ["asks for 2.0 times the trained speed in its direction"]


def test_a_policy_that_does_not_know_yaw_cannot_turn_too_far() -> None:
    assert found(50, 0.5, 0.0, pi, ranges=TrainedRanges(components=("position",))) == []


def test_a_gap_of_no_time_does_not_divide_by_zero() -> None:
    messages = found(0, 0.5, 0.0, 0.0)
    assert messages[0].startswith("comes 0.00 s")
    assert any(f"{0.5 / CONTROL_DT / 2.0:.1f} times the trained speed" in message for message in messages)
