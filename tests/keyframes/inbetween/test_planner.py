"""The laws of the planner: it changes nothing that a policy can do as it is, keeps every keyframe, and moves with the script."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT, Goals, used
from keystride.keyframes.inbetween.planner import WaypointPlan, hold, plan
from keystride.keyframes.inbetween.ranges import TrainedRanges, departures
from keystride.keyframes.inbetween.routing import Present
from keystride.keyframes.inbetween.segments import Pace
from keystride.keyframes.postures import named_postures, stand
from keystride.keyframes.resolve import place_goals, script_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

POSTURES = named_postures(GO2)

PAPER = TrainedRanges()
WIDE = TrainedRanges(
    gap_s=(0.3, 3.0),
    distance_m=(0.0, 3.6),
    direction_rad=(-np.pi, np.pi),
    turn_rad=(-np.pi, np.pi),
    speed_m_s=(2, 0.5, 0.6),
)
STANCE = stand(GO2)
POLICIES = [PAPER, WIDE, replace(PAPER, components=("position",))]


def at_start(robots: int = 1, yaw: float = 0.0) -> Present:
    return Present(np.zeros(robots, dtype=np.int64), np.zeros((robots, 2)), np.full(robots, yaw), np.zeros((robots, 2)))


def planned(*keyframes: Keyframe, ranges: TrainedRanges = PAPER) -> WaypointPlan:
    return plan(script_goals(Script(keyframes=keyframes), robot=GO2), at_start(), ranges, STANCE)


def waypoints(found: WaypointPlan) -> list[int]:
    return np.flatnonzero(found.soft[0]).tolist()


@st.composite
def journeys(draw: st.DrawFn, gaps: tuple[float, float] = (0.3, 12.0)) -> Script:
    """Scripts as people write them: below 1 m/s and 1 rad/s, some keyframes with yaw, posture or height only."""
    time, x, y, yaw, keyframes = 0.0, 0.0, 0.0, 0.0, []
    for _ in range(draw(st.integers(1, 5))):
        gap = draw(st.floats(*gaps))
        time = round(time + gap, 2)
        far, way = draw(st.floats(0.0, 1.0)) * gap, draw(st.floats(-3.0, 3.0))
        x, y = x + far * np.cos(way), y + far * np.sin(way)
        yaw = yaw + draw(st.floats(-0.9, 0.9)) * min(gap, 3.0)
        parts = {
            "position": (x, y, draw(st.floats(0.2, 0.35))) if draw(st.booleans()) else (x, y),
            "yaw": float(np.degrees(geometry.wrap(np.array(yaw)))),
            "posture": draw(st.sampled_from(["stand", "sit", "crouch"])),
        }
        chosen = draw(st.sets(st.sampled_from(sorted(parts)), min_size=1))
        keyframes.append(Keyframe(time=time, **{name: parts[name] for name in chosen}))
    return Script(keyframes=tuple(keyframes))


@given(script=journeys(gaps=(0.5, 1.0)))
def test_no_waypoint_where_gaps_are_as_in_training(script: Script):
    goals = script_goals(script, robot=GO2)
    found = plan(goals, at_start(), PAPER, STANCE)
    assert not found.soft.any()
    for field in fields(Goals):
        np.testing.assert_array_equal(getattr(found.goals, field.name), getattr(goals, field.name))


@given(script=journeys(), ranges=st.sampled_from(POLICIES))
def test_every_keyframe_is_kept_as_it_is(script: Script, ranges: TrainedRanges):
    goals = script_goals(script, robot=GO2)
    found = plan(goals, at_start(), ranges, STANCE)
    hard = np.flatnonzero(used(found.goals)[0] & ~found.soft[0])
    for field in fields(Goals):
        np.testing.assert_array_equal(getattr(found.goals, field.name)[0, hard], getattr(goals, field.name)[0])
    asked = goals.presence[0, :, 0]
    np.testing.assert_allclose(found.path[0, hard][asked, :2], goals.position[0, asked, :2])
    turned = goals.presence[0, :, 3]
    np.testing.assert_allclose(found.path[0, hard][turned, 2], goals.angles[0, turned, 2])


@given(script=journeys(), ranges=st.sampled_from(POLICIES))
def test_gaps_are_as_in_training_afterwards(script: Script, ranges: TrainedRanges):
    goals = script_goals(script, robot=GO2)
    found = plan(goals, at_start(), ranges, STANCE)
    step = found.goals.step[0, used(found.goals)[0]]
    gaps = np.diff(step, prepend=0)
    assert gaps.max() <= ranges.gap_steps[1]
    asked = np.diff(goals.step[0], prepend=0)
    assert gaps.min() >= min(ranges.gap_steps[0], asked.min())


@given(script=journeys(), ranges=st.sampled_from(POLICIES))
def test_waypoints_hold_nothing_that_the_policy_does_not_know(script: Script, ranges: TrainedRanges):
    found = plan(script_goals(script, robot=GO2), at_start(), ranges, STANCE)
    soft = found.goals[np.array([0])]
    bits = soft.presence[0][found.soft[0]]
    assert bits[:, 0].all()
    if ranges.components == ("position",):
        assert not bits[:, 1:].any()
        assert not soft.posture[0][found.soft[0]].any()
    assert np.isfinite(found.path).all()


@given(
    x=st.floats(0.5, 12.0),
    y=st.floats(-3.0, 3.0),
    hurry=st.floats(0.0, 1.0),
)
def test_speed_stays_within_limits_where_there_is_time(x: float, y: float, hurry: float):
    pace = Pace()
    distance = np.hypot(x, y)
    seconds = round(distance / pace.speed + 2 * pace.ramp + (1 - hurry) * 10.0 + 4.0, 1)
    found = planned(Keyframe(time=seconds, position=(x, y)))
    step = np.concatenate([[0], found.goals.step[0]]) * CONTROL_DT
    path = np.concatenate([np.zeros((1, 3)), found.path[0]])
    speed = np.linalg.norm(np.diff(path[:, :2], axis=0), axis=1) / np.diff(step)
    rate = np.abs(geometry.wrap(np.diff(path[:, 2]))) / np.diff(step)
    assert speed.max() <= pace.speed * 1.01
    assert rate.max() <= 2.2
    assert not departures(found.goals, found.path[0], PAPER, np.zeros(3))


def test_it_waits_before_it_leaves_and_arrives_when_due():
    found = planned(Keyframe(time=10.0, position=(1.0, 0.0)))
    x, time = found.path[0, :, 0], found.goals.step[0] * CONTROL_DT
    assert (x[time < 7.0] == 0.0).all()
    assert 0.5 < x[-2] < 1.0
    assert (np.diff(x) >= 0).all()


def test_a_robot_that_waits_stands_and_one_that_walks_is_free_in_its_legs():
    found = planned(Keyframe(time=10.0, position=(1.0, 0.0)))
    waits = found.soft[0] & (found.path[0, :, 0] == 0.0)
    walks = found.soft[0] & (found.path[0, :, 0] > 0.0)
    assert found.goals.presence[0, waits].all()
    np.testing.assert_allclose(found.goals.posture[0, waits], np.tile(GO2.stance, (waits.sum(), 1)))
    np.testing.assert_array_equal(found.goals.presence[0, walks], np.tile([1, 0, 0, 1, 0], (walks.sum(), 1)))


def test_it_turns_on_the_spot_before_it_walks_behind_itself():
    found = planned(Keyframe(time=8.0, position=(-2.0, 0.1)))
    moving = np.abs(found.path[0, :, 0]) > 0.05
    facing = np.abs(found.path[0, :, 2])
    assert (facing[moving] > np.radians(150)).all()
    assert not departures(found.goals, found.path[0], PAPER, np.zeros(3))


def test_a_yaw_that_is_asked_for_is_kept_on_a_short_way_though_the_policy_was_not_trained_for_it():
    found = planned(Keyframe(time=3.0, position=(-1.0, 0.0), yaw=0.0))
    np.testing.assert_allclose(found.path[0, :, 2], 0.0, atol=1e-12)
    messages = [one.message for one in departures(found.goals, found.path[0], PAPER, np.zeros(3))]
    assert messages
    assert all("180 degrees off the robot's heading" in message for message in messages)
    wide = planned(Keyframe(time=3.0, position=(-1.0, 0.0), yaw=0.0), ranges=WIDE)
    assert not wide.soft.any()
    assert not departures(wide.goals, wide.path[0], WIDE, np.zeros(3))


def test_postures_are_held_until_they_change():
    found = planned(Keyframe(time=1.0, posture="sit"), Keyframe(time=8.0, position=(1.0, 0.0)))
    time = found.goals.step[0] * CONTROL_DT
    held = found.soft[0] & (time > 1.0) & (time < 4.0)
    assert held.any()
    np.testing.assert_allclose(found.goals.posture[0, held], np.tile(POSTURES["sit"].joints, (held.sum(), 1)))
    later = found.soft[0] & (time > 6.0)
    assert not found.goals.presence[0, later, 4].any()


def test_a_wider_policy_gets_fewer_waypoints():
    way = (Keyframe(time=10.0, position=(5.0, 0.0)), Keyframe(time=13.0, yaw=180.0))
    assert 0 < len(waypoints(planned(*way, ranges=WIDE))) < len(waypoints(planned(*way))) / 2


def test_it_does_not_stop_at_a_keyframe_that_it_passes_in_time():
    found = planned(Keyframe(time=5.0, position=(3.0, 0.0)), Keyframe(time=10.0, position=(6.0, 0.0)))
    time, x = found.goals.step[0] * CONTROL_DT, found.path[0, :, 0]
    around = (time > 4.0) & (time < 6.0)
    assert np.diff(x[around]).min() / np.diff(time[around]).max() > 0.4


@settings(deadline=None)
@given(
    script=journeys(), ranges=st.sampled_from(POLICIES), x=st.floats(-5, 5), y=st.floats(-5, 5), yaw=st.floats(-3, 3)
)
def test_a_shifted_and_turned_script_has_a_shifted_and_turned_plan(script, ranges, x, y, yaw):
    goals = script_goals(script, robot=GO2)
    here = plan(goals, at_start(), ranges, STANCE)
    origin, heading = np.array([[x, y]]), np.array([yaw])
    moved = replace(at_start(), position=origin, yaw=heading)
    there = plan(place_goals(goals, origin, heading), moved, ranges, STANCE)
    np.testing.assert_array_equal(here.goals.step, there.goals.step)
    np.testing.assert_array_equal(here.soft, there.soft)
    turned = geometry.rotate_yaw(np.full(here.path.shape[1], yaw), here.path[0, :, :2]) + origin
    shown = used(here.goals)[0]
    np.testing.assert_allclose(there.path[0, shown, :2], turned[shown], atol=1e-9)
    gap = geometry.wrap(there.path[0, shown, 2] - here.path[0, shown, 2] - yaw)
    np.testing.assert_allclose(np.minimum(np.abs(gap), 2 * np.pi - np.abs(gap)), 0.0, atol=1e-6)


@settings(deadline=None)
@given(script=journeys(), ranges=st.sampled_from(POLICIES))
def test_a_mirrored_script_has_a_mirrored_plan(script, ranges):
    goals = script_goals(script, robot=GO2)
    there = plan(_mirrored(goals), at_start(), ranges, STANCE)
    here = _mirrored(plan(goals, at_start(), ranges, STANCE).goals)
    np.testing.assert_array_equal(here.step, there.goals.step)
    np.testing.assert_array_equal(here.presence, there.goals.presence)
    np.testing.assert_allclose(here.position, there.goals.position, atol=1e-9)
    np.testing.assert_allclose(here.posture, there.goals.posture, atol=1e-9)
    np.testing.assert_allclose(np.cos(here.angles), np.cos(there.goals.angles), atol=1e-6)
    np.testing.assert_allclose(np.sin(here.angles), np.sin(there.goals.angles), atol=1e-6)


def _mirrored(goals: Goals) -> Goals:
    return replace(
        goals,
        position=goals.position * geometry.MIRROR_VECTOR,
        angles=goals.angles * geometry.MIRROR_ROTATION,
        posture=GO2.mirror_joints(goals.posture) * goals.presence[..., 4:],
    )


def test_robots_are_planned_for_as_if_each_were_alone():
    scripts = [
        Script(keyframes=(Keyframe(time=6.0, position=(2.0, 1.0)),)),
        Script(keyframes=(Keyframe(time=0.5, position=(0.3, 0.0)), Keyframe(time=9.0, yaw=90.0))),
        Script(keyframes=(Keyframe(time=0.8, posture="sit"),)),
    ]
    together = plan(script_goals(scripts, robot=GO2), at_start(3), PAPER, STANCE)
    for row, script in enumerate(scripts):
        alone = plan(script_goals(script, robot=GO2), at_start(), PAPER, STANCE)
        columns = alone.soft.shape[1]
        np.testing.assert_allclose(together.path[row, :columns], alone.path[0], atol=1e-12)
        np.testing.assert_array_equal(together.goals.presence[row, :columns], alone.goals.presence[0])
        assert not together.goals.presence[row, columns:].any()


@pytest.mark.parametrize("away", [0.0, 1.5])
def test_after_the_last_keyframe_it_goes_to_a_pose_and_stays(away: float):
    goals = script_goals(Script(keyframes=(Keyframe(time=1.0, position=(away, 0.0), yaw=0.0),)), robot=GO2)
    present = replace(at_start(), step=np.array([50]))
    found = hold(goals, np.array([[away, 0.0, 0.0]]), present, PAPER, STANCE, seconds=20.0)
    coming = found.goals.step[0] > 50
    assert found.soft[0, coming].all()
    assert found.goals.step[0].max() >= 50 + 20 / CONTROL_DT
    np.testing.assert_allclose(found.path[0, -15:], np.tile([away, 0.0, 0.0], (15, 1)), atol=1e-9)
    assert found.goals.presence[0, -15:].all()
