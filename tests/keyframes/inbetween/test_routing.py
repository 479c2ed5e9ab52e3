"""Routes by hand: which keyframes still come, where open ones lie, and how the time between two is spent."""

import numpy as np
import pytest

from keystride.keyframes.inbetween.ranges import TrainedRanges
from keystride.keyframes.inbetween.routing import Present, RouteEvents, find_events, plan_segments
from keystride.keyframes.inbetween.segments import Pace, Segments
from keystride.keyframes.postures import stand
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

PACE = Pace(speed=0.5, ramp=1.0, turn_rate=1.0, turn_setup=0.5)


def present(step: int = 0) -> Present:
    return Present(np.array([step]), np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2)))


def route(*keyframes: Keyframe, now: int = 0) -> RouteEvents:
    return find_events(script_goals(Script(keyframes=keyframes), robot=GO2), present(now), stand(GO2), PACE)


def segments(*keyframes: Keyframe) -> tuple[Segments, np.ndarray]:
    return plan_segments(route(*keyframes), present(), TrainedRanges(), PACE)


def test_the_present_comes_first_and_what_has_passed_is_left_out() -> None:
    keyframes = (Keyframe(time=1.0, yaw=0.0), Keyframe(time=2.0, yaw=10.0), Keyframe(time=3.0, yaw=20.0))
    events = route(*keyframes, now=50)
    assert events.row.tolist() == [[-1, 1, 2]]
    assert events.step.tolist() == [[50, 100, 150]]
    np.testing.assert_allclose(np.degrees(events.yaw), [[0.0, 10.0, 20.0]], atol=1e-9)


@pytest.mark.parametrize(("seconds", "x"), [(10.0, 1.0), (30.0, 0.0)])
def test_an_open_position_lies_on_the_way_only_if_there_is_no_time_to_wait(seconds: float, x: float) -> None:
    """2 m at 0.5 m/s with two ramps of 1 s take 6 s; half of the time is left at the open keyframe."""
    events = route(Keyframe(time=seconds / 2, yaw=0.0), Keyframe(time=seconds, position=(2.0, 0.0)))
    np.testing.assert_allclose(events.position[0, :, 0], [0.0, x, 2.0])


def test_without_a_later_position_the_robot_stays_where_it_is() -> None:
    events = route(Keyframe(time=1.0, position=(1.0, 1.0)), Keyframe(time=5.0, posture="sit"))
    np.testing.assert_allclose(events.position[0, 2], [1.0, 1.0])
    assert events.stands.tolist() == [[True, True, False]]


def test_spare_time_is_waited_and_the_walk_takes_as_long_as_it_needs() -> None:
    """1 m at 0.5 m/s and a ramp of 1 s take 3 s of the 10 s that there are."""
    found, facing = segments(Keyframe(time=10.0, position=(1.0, 0.0)))
    assert found.walk[0, 0] == pytest.approx(3.0)
    assert found.wait[0, 0] == pytest.approx(7.0)
    assert (found.first[0, 0], found.last[0, 0]) == (0.0, 0.0)
    np.testing.assert_allclose(facing, 0.0)


def test_a_goal_behind_the_robot_is_turned_to_first() -> None:
    """Half a turn at 1 rad/s with 0.5 s to set up, then 3 s of walking."""
    found, facing = segments(Keyframe(time=20.0, position=(-1.0, 0.0)))
    assert found.first[0, 0] == pytest.approx(np.pi + 0.5)
    assert found.walk[0, 0] == pytest.approx(3.0)
    assert found.wait[0, 0] == pytest.approx(20.0 - 3.0 - np.pi - 0.5)
    assert abs(facing[0, 1]) == pytest.approx(np.pi)


@pytest.mark.parametrize("seconds", [0.2, 1.0, 5.0, 20.0])
def test_the_parts_of_a_segment_fill_the_time_there_is(seconds: float) -> None:
    keyframes = (Keyframe(time=seconds, position=(-1.0, 0.5)), Keyframe(time=2 * seconds, yaw=90.0))
    found, _ = segments(*keyframes)
    np.testing.assert_allclose(found.wait + found.first + found.walk + found.last, seconds, atol=1e-9)
