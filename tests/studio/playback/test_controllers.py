"""Who drives the robot; and what a policy cannot see yet does not change what it does."""

import numpy as np
import pytest

from keystride.evaluation.episodes import Controller
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
STEPS = range(1000)


def difference(controller: Controller, old: Script, new: Script, steps: range = STEPS) -> int | None:
    """Of a robot that never moves."""
    return first_difference(controller, lambda _: START, resolve(old, GO2), resolve(new, GO2), steps).step


def test_the_same_goals_never_differ():
    assert difference(StandStill(GO2), show(3, 0.0), show(3, 0.0)) is None
    assert difference(StandStill(GO2), show(3, 0.0), show(3, 5.0)) == 0
    assert difference(StandStill(GO2), show(3, 0.0), show(3, 5.0), range(40, 50)) == 40


def test_a_policy_sees_a_late_edit_late():
    policy = load_controller("go2-pose", GO2)
    assert isinstance(policy, Policy)
    most = policy.metadata.max_keyframes
    count = most + 10
    # The last row is seen when the row `most` before it, due at 5 s, expires a second later.
    assert difference(policy, show(count, 0.0), show(count, 10.0)) == 250 + 50 + 1
    assert difference(policy, show(count, 0.0), show(count, 10.0), range(250)) is None
    assert difference(policy, show(4, 0.0), show(5, 0.0)) == 0


def slow_walk(count: int, end: float) -> Script:
    """A keyframe every 1.4 s, which is more than in training, so there are waypoints; the last one to the side."""
    sides = [0.0] * (count - 1) + [end]
    return Script(
        keyframes=tuple(
            Keyframe(time=round(1.4 * (i + 1), 2), position=(0.5 * (i + 1), y)) for i, y in enumerate(sides)
        )
    )


def test_a_late_edit_of_a_script_with_waypoints_is_seen_late():
    policy = load_controller("go2-pose", GO2)
    assert isinstance(policy, Policy)
    guide, count = Guide(policy, GO2), policy.metadata.max_keyframes + 6
    step = difference(guide, slow_walk(count, 0.0), slow_walk(count, 0.2))
    assert step is not None
    assert 200 < step < round(1.4 * count / 0.02)
    assert difference(Guide(policy, GO2), slow_walk(count, 0.0), slow_walk(count + 1, 0.0)) != 0
    assert difference(Guide(policy, GO2), slow_walk(2, 0.0), slow_walk(2, 0.2)) == 0


@pytest.mark.parametrize("shoved", [False, True])
def test_after_a_late_edit_a_script_with_waypoints_is_played_as_if_it_were_new(shoved: bool):
    """Also if the robot was shoved off its path, so that the waypoints were planned again."""
    policy = load_controller("go2-pose", GO2)
    assert isinstance(policy, Policy)
    count = policy.metadata.max_keyframes + 3
    player, fresh = Player(GO2, policy, 0.8), Player(GO2, policy, 0.8)
    for each, side in ((player, 0.0), (fresh, 0.2)):
        each.set_goals(resolve(slow_walk(count, side), GO2), live=False)
        if shoved:
            each.seek(157)
            assert each.catch_up(300.0)
            each.push(np.array([0.3, 1.5, 0.0]))
            each.seek(230)
            assert each.catch_up(300.0)
            each.set_friction(0.6)
        each.seek(each.end)
        assert each.catch_up(300.0)
    player.set_goals(resolve(slow_walk(count, 0.2), GO2), live=False)
    assert 100 < player.recorded < player.end
    player.seek(player.end)
    assert player.catch_up(300.0)
    np.testing.assert_array_equal(player.trajectory.column("joint_angles"), fresh.trajectory.column("joint_angles"))
    for each in (player, fresh):  # back to before the edit
        each.seek(83)
        each.push(np.array([0.0, 0.4, 0.0]))
        each.seek(200)
        assert each.catch_up(300.0)
    np.testing.assert_array_equal(player.trajectory.column("joint_angles"), fresh.trajectory.column("joint_angles"))


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
