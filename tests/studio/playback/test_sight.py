"""What a policy cannot see yet does not change what it does."""

import numpy as np

from keystride.keyframes.resolve import resolve
from keystride.keyframes.script import Keyframe, Script
from keystride.physics.simulator import CpuSimulator
from keystride.policy.guide import Guide
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import StandStill, load_controller
from keystride.studio.playback.player import Player
from keystride.studio.playback.sight import first_difference


def show(count: int, last: float) -> Script:
    """A keyframe every half second; the last at another yaw."""
    angles = [0.0] * (count - 1) + [last]
    return Script(keyframes=tuple(Keyframe(time=0.5 * (i + 1), yaw=angle) for i, angle in enumerate(angles)))


START = CpuSimulator(GO2, 1, threads=1).state()


def test_the_same_goals_never_differ():
    goals = resolve(show(3, 0.0), GO2)
    assert first_difference(StandStill(GO2), START, goals, goals).step is None
    assert first_difference(StandStill(GO2), START, goals, resolve(show(3, 5.0), GO2)).step == 0


def test_a_policy_sees_a_late_edit_late():
    policy = load_controller("go2-pose", GO2)
    assert isinstance(policy, Policy)
    count = policy.metadata.max_keyframes + 10
    old, new = resolve(show(count, 0.0), GO2), resolve(show(count, 10.0), GO2)
    step = first_difference(policy, START, old, new).step
    assert step is not None
    assert step > 200
    assert first_difference(policy, START, resolve(show(4, 0.0), GO2), resolve(show(5, 0.0), GO2)).step == 0


def test_where_waypoints_are_added_everything_differs():
    policy = load_controller("go2-pose", GO2)
    assert isinstance(policy, Policy)
    old, new = (
        resolve(Script(keyframes=(*show(14, 0.0).keyframes, Keyframe(time=20.0, position=(x, 0.0)))), GO2)
        for x in (3.0, 4.0)
    )
    assert first_difference(policy, START, old, new).step != 0
    assert first_difference(Guide(policy, GO2), START, old, new).step == 0


def test_a_late_edit_simulates_only_what_differs_and_gives_the_same():
    policy = load_controller("go2-pose", GO2)
    assert isinstance(policy, Policy)
    count = policy.metadata.max_keyframes + 10
    player, fresh = Player(GO2, policy, 0.8), Player(GO2, policy, 0.8)
    player.set_goals(resolve(show(count, 0.0), GO2), live=False)
    player.seek(player.end)
    assert player.catch_up(300.0)
    player.set_goals(resolve(show(count, 10.0), GO2), live=False)
    assert player.recorded > 200
    fresh.set_goals(resolve(show(count, 10.0), GO2), live=False)
    for each in (player, fresh):
        each.seek(each.end)
        assert each.catch_up(300.0)
    np.testing.assert_array_equal(player.trajectory.column("joint_angles"), fresh.trajectory.column("joint_angles"))
