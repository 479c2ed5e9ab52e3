"""Who drives the robot; and what a policy cannot see yet does not change what it does."""

import numpy as np
import pytest

from keystride.keyframes.goals import empty_goals
from keystride.keyframes.resolve import resolve
from keystride.keyframes.script import Keyframe, Script
from keystride.physics.simulator import CpuSimulator
from keystride.policy.guide import Guide
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import (
    STAND_STILL,
    PolicyError,
    StandStill,
    choices,
    describe_controller,
    first_choice,
    first_difference,
    follows,
    load_controller,
)
from keystride.studio.playback.player import Player


def test_somebody_can_always_be_chosen():
    assert choices()[-1] == STAND_STILL
    assert first_choice() in choices()
    assert isinstance(load_controller(STAND_STILL, GO2), StandStill)


def test_standing_still_is_the_stance_for_any_number_of_robots():
    controller = load_controller(STAND_STILL, GO2)
    action = controller.resting_action(np.tile(GO2.stance, (3, 1)))
    targets, action = controller.step(None, empty_goals(3, 1), np.zeros(3), action)
    np.testing.assert_array_equal(targets, np.tile(GO2.stance, (3, 1)))
    assert action.shape == (3, 12)
    assert follows(controller) == ()
    assert "ignores keyframes" in describe_controller(controller)


def test_a_policy_that_is_not_there_is_told():
    with pytest.raises(PolicyError, match="no policy 'nowhere'"):
        load_controller("nowhere", GO2)


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
