"""Scripts with long gaps under the policies that ship: waypoints are for the policy alone, and the robot holds at the end."""

from dataclasses import fields

import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.episodes import exact_stance, run_episodes
from keystride.keyframes.goals import Goals, empty_goals
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.physics.simulator import State
from keystride.policy.guide import Guide, guided, outside_training, planned, waypoint_lines
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy.load("go2-pose", robot=GO2)


def standing(x: float = 0.0, yaw: float = 0.0, robots: int = 1) -> State:
    start = exact_stance(GO2, robots)
    rest = np.zeros((robots, 3))
    return State(
        position=start.position + np.array([x, 0.0, 0.0]),
        orientation=np.tile(geometry.from_yaw(np.array(yaw)), (robots, 1)),
        linear_velocity=rest,
        angular_velocity=rest,
        joint_angles=start.joint_angles,
        joint_velocities=start.joint_velocities,
        feet=np.zeros((robots, 4, 3)),
        contact=np.zeros((robots, 4)),
        torque=np.zeros((robots, 12)),
        diverged=np.zeros(robots, dtype=bool),
    )


def at(step: int, robots: int = 1) -> np.ndarray:
    return np.full(robots, step)


def script(*keyframes: Keyframe) -> Goals:
    return script_goals(Script(keyframes=keyframes), robot=GO2)


def test_a_script_inside_the_trained_ranges_is_shown_as_it_is(policy: Policy) -> None:
    goals = script(Keyframe(time=0.8, position=(0.5, 0.0)), Keyframe(time=1.6, position=(1.0, 0.1)))
    guide = Guide(policy, GO2)
    for step in range(80):
        assert guide.seen(standing(), goals, at(step)) is goals
    assert guide.seen(standing(), goals, at(80)) is not goals  # the last keyframe is due: now it is told to stay


def test_it_acts_as_the_bare_policy_until_the_last_keyframe_is_due(policy: Policy) -> None:
    goals = script(Keyframe(time=0.7, position=(0.5, 0.0)), Keyframe(time=1.4, position=(1.0, 0.2)))
    runs = [
        run_episodes(policy, GO2, exact_stance(GO2), goals, inbetween=on).trace.joint_targets for on in (True, False)
    ]
    np.testing.assert_array_equal(runs[0][:70], runs[1][:70])
    assert np.abs(runs[0][75:] - runs[1][75:]).max() > 0.01


def test_the_policy_never_sees_more_than_it_can_hold_and_always_something_to_come(policy: Policy) -> None:
    goals, guide = script(Keyframe(time=7.0, position=(0.0, 0.0))), Guide(policy, GO2)
    for step in range(0, 1500, 7):
        seen = guide.seen(standing(), goals, at(step))
        assert seen.step.shape[1] <= policy.metadata.max_keyframes
        coming = seen.presence.any(axis=-1) & (seen.step > step)
        assert coming.any()
        assert seen.step[coming].min() - step <= policy.metadata.ranges.gap_steps[1]


def test_a_robot_with_nothing_to_do_is_told_to_stay(policy: Policy) -> None:
    seen = Guide(policy, GO2).seen(standing(x=3.0, yaw=1.0), empty_goals(1, 1), at(0))
    shown = seen.presence[0].any(axis=-1)
    assert shown.any()
    np.testing.assert_allclose(seen.position[0, shown, :2], np.tile([3.0, 0.0], (shown.sum(), 1)))
    np.testing.assert_allclose(seen.angles[0, shown, 2], 1.0)


def test_a_robot_that_was_shoved_off_its_path_gets_a_new_one_from_where_it_is(policy: Policy) -> None:
    goals, guide = script(Keyframe(time=10.0, position=(0.0, 0.0))), Guide(policy, GO2)
    guide.seen(standing(), goals, at(0))
    before = guide.route
    assert before is not None
    assert not np.abs(before.plan.path[0, :, 0]).any()
    for step in range(1, 60):
        guide.seen(standing(x=-1.0), goals, at(step))
    assert guide.route is not None
    path = guide.route.plan.path[0, guide.route.plan.soft[0], 0]
    assert path.min() == pytest.approx(-1.0, abs=0.01)
    assert ((path > -0.9) & (path < -0.1)).any()  # it walks back instead of being asked to be there at once


def test_robots_of_a_batch_are_guided_as_if_each_were_alone(policy: Policy) -> None:
    near = Script(keyframes=(Keyframe(time=0.8, position=(0.5, 0.0)),))
    far = Script(keyframes=(Keyframe(time=6.0, position=(2.0, 1.0)),))
    both, alone = Guide(policy, GO2), Guide(policy, GO2)
    together, single = script_goals([near, far], robot=GO2), script_goals(far, robot=GO2)
    for step in (0, 10, 40, 41, 100, 200):
        seen = both.seen(standing(robots=2), together, at(step, 2))
        expected = alone.seen(standing(), single, at(step))
        for field in fields(Goals):
            np.testing.assert_array_equal(getattr(seen, field.name)[1], getattr(expected, field.name)[0])


def test_switched_off_it_is_the_bare_policy(policy: Policy) -> None:
    assert guided(policy, inbetween=False, robot=GO2) is policy
    assert isinstance(guided(policy, GO2), Guide)


@pytest.mark.parametrize(
    "keyframe",
    [
        Keyframe(time=5.0, position=(0.0, 0.0)),
        Keyframe(time=6.0, position=(2.5, 0.0)),
        Keyframe(time=3.0, position=(0.0, 0.0), yaw=180.0),
    ],
)
def test_one_far_keyframe_is_met_and_held(policy: Policy, keyframe: Keyframe) -> None:
    rollout = run_episodes(policy, GO2, exact_stance(GO2), script(keyframe), seconds_after=4.0)
    assert rollout.met.all()
    assert rollout.falls == 0
    position = rollout.trace.position[-150:, 0]
    assert np.linalg.norm(position[:, :2] - position[:1, :2], axis=1).max() < 0.05
    assert position[:, 2].min() > 0.27


def test_without_in_betweens_a_far_keyframe_is_missed(policy: Policy) -> None:
    goals = script(Keyframe(time=5.0, position=(0.0, 0.0)))
    assert not run_episodes(policy, GO2, exact_stance(GO2), goals, inbetween=False).met.any()


def messages(policy: str, *keyframes: Keyframe, inbetween: bool = True) -> list[str]:
    metadata = Policy.load(policy, robot=GO2).metadata
    return [
        f"{one.row}: {one.message}"
        for one in outside_training(Script(keyframes=keyframes), metadata, inbetween=inbetween, robot=GO2)
    ]


def test_a_long_gap_is_outside_training_only_without_in_betweens() -> None:
    far = Keyframe(time=10.0, position=(5.0, 0.0))
    assert messages("go2-pose", far) == []
    alone = messages("go2-pose", far, inbetween=False)
    assert any("10.00 s after the one before" in message for message in alone)
    assert any("5.00 m from the one before" in message for message in alone)


def test_walking_backwards_is_outside_training() -> None:
    found = messages(
        "go2-pose", Keyframe(time=1.0, position=(0.5, 0.0)), Keyframe(time=4.0, position=(-0.4, 0.0), yaw=0.0)
    )
    assert found
    assert all(message.startswith("1: the waypoint at") and "180 degrees off" in message for message in found)


def test_components_that_a_policy_does_not_know_are_named() -> None:
    (found,) = messages("go2-position", Keyframe(time=0.8, position=(0.5, 0.0), yaw=10.0, posture="sit"))
    assert found == "0: asks for yaw, posture; the policy knows position"


@pytest.mark.parametrize(("seconds", "count"), [(0.9, 0), (1.5, 1), (3.0, 3)])
def test_waypoints_can_be_listed(seconds: float, count: int) -> None:
    script = Script(keyframes=(Keyframe(time=seconds, position=(0.5, 0.0)),))
    lines = waypoint_lines(planned(script, Policy.load("go2-pose", robot=GO2).metadata, GO2))
    assert len(lines) == count
