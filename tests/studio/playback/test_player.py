"""Going back is reading, going ahead is simulating, and both agree."""

import numpy as np
import pytest

from keystride.evaluation.episodes import NEVER_FELL
from keystride.evaluation.recording import play_script
from keystride.keyframes.goals import Goals
from keystride.keyframes.postures import named_postures
from keystride.keyframes.resolve import resolve
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import StandStill
from keystride.studio.playback.player import MAX_DELAY, SNAPSHOT_STEPS, PlaybackClock, Player, keyframe_states

POSTURES = named_postures(GO2)

FRICTION = 0.8
SCRIPT = Script(keyframes=(Keyframe(time=0.5, position=(0.0, 0.0)), Keyframe(time=1.6, position=(2.0, 0.0))))
PUSH = np.array([0.0, 0.4, 0.0])


class Crouch:
    """Bends the knees as the first keyframe comes near: a controller that looks at its goals and at its last action."""

    def step(self, state: object, goals: Goals, now: Floats, previous_action: Floats) -> tuple[Floats, Floats]:
        wait = np.clip((goals.step[:, :1] - now[:, None]) / 50, -1.0, 1.0)
        action = 0.9 * previous_action + 0.1 * (1.0 - wait)
        return GO2.stance + action * np.tile([0.0, 0.3, -0.6], 4), action

    def resting_action(self, joint_angles: Floats) -> Floats:
        return np.zeros_like(joint_angles)


def played(script: Script = SCRIPT) -> Player:
    player = Player(GO2, Crouch(), FRICTION)
    player.set_goals(resolve(script, GO2), live=False)
    player.seek(player.end)
    assert player.catch_up(60.0)
    return player


class Sit:
    """Sits down within half a second, so that knees and trunk touch the ground too."""

    def step(self, state: object, goals: Goals, now: Floats, previous_action: Floats) -> tuple[Floats, Floats]:
        action = 0.9 * previous_action + 0.1
        return GO2.stance + action * (POSTURES["sit"].joints - GO2.stance), action

    def resting_action(self, joint_angles: Floats) -> Floats:
        return np.zeros_like(joint_angles)


@pytest.mark.parametrize("controller", [Crouch(), Sit()])
def test_a_pass_is_what_play_records(controller: Crouch | Sit):
    player = Player(GO2, controller, FRICTION)
    player.set_goals(resolve(SCRIPT, GO2), live=False)
    player.seek(player.end)
    assert player.catch_up(60.0)
    recording = play_script(controller, GO2, SCRIPT, title="", policy="")
    trace = player.rollout().trace
    np.testing.assert_array_equal(trace.position[:, 0], recording.poses[:, :3])
    np.testing.assert_array_equal(trace.joint_angles[:, 0], recording.poses[:, 7:])
    np.testing.assert_array_equal(trace.joint_targets[:, 0], recording.joint_targets)
    np.testing.assert_array_equal(player.rollout().errors[0], recording.errors)
    assert player.verdicts() == recording.met.tolist()


def test_the_end_is_a_second_after_the_last_keyframe():
    assert played().end == round((1.6 + 1.0) * 50)


def test_scrubbing_back_shows_what_was():
    player = played()
    before = [player.trajectory.pose(step).position for step in (10, 70)]
    for step, position in zip((10, 70), before, strict=True):
        player.seek(step)
        np.testing.assert_array_equal(player.pose().position, position)
    assert player.recorded == player.end


def test_only_keyframes_that_the_head_has_passed_are_judged():
    player = played()
    player.seek(30)
    assert player.verdicts() == [True, None]
    player.seek(player.end)
    assert player.verdicts() == [True, False]


@pytest.mark.parametrize("step", [0, 7, SNAPSHOT_STEPS, SNAPSHOT_STEPS + 13])
def test_taken_up_from_anywhere_the_same_happens(step: int):
    player = played()
    expected = player.trajectory.column("joint_angles").copy()
    player.seek(step)
    player.set_goals(resolve(SCRIPT, GO2), live=True)
    assert player.recorded == step
    player.seek(player.end)
    player.catch_up(60.0)
    np.testing.assert_array_equal(player.trajectory.column("joint_angles"), expected)


def test_a_live_change_leaves_the_past_alone():
    player = played()
    past = player.trajectory.column("joint_angles")[:61].copy()
    player.seek(60)
    player.set_goals(resolve(Script(keyframes=(Keyframe(time=2.0, yaw=0.0),)), GO2), live=True)
    player.seek(player.end)
    player.catch_up(60.0)
    np.testing.assert_array_equal(player.trajectory.column("joint_angles")[:61], past)
    assert player.edited_on_the_way


def test_another_script_is_simulated_anew():
    player = played()
    player.seek(20)
    player.set_goals(resolve(Script(keyframes=(Keyframe(time=0.4, yaw=0.0),)), GO2), live=False)
    assert player.recorded == 0
    assert player.catch_up(60.0)
    assert player.recorded == 20


def test_a_push_acts_from_the_head_on():
    player, calm = played(), played()
    player.seek(60)
    player.push(PUSH)
    assert player.recorded == 60
    player.seek(player.end)
    player.catch_up(60.0)
    sideways = player.trajectory.column("position")[:, 1]
    np.testing.assert_array_equal(sideways[:61], calm.trajectory.column("position")[:61, 1])
    assert sideways[70] > calm.trajectory.column("position")[70, 1] + 0.003


def test_a_push_is_part_of_the_pass_until_it_restarts():
    player = played()
    player.seek(60)
    player.push(PUSH)
    player.seek(player.end)
    player.catch_up(60.0)
    pushed = player.trajectory.column("position").copy()
    player.rewind()
    player.catch_up(60.0)
    np.testing.assert_array_equal(player.trajectory.column("position"), pushed)
    player.restart()
    player.seek(player.end)
    player.catch_up(60.0)
    np.testing.assert_array_equal(player.trajectory.column("position"), played().trajectory.column("position"))


def test_a_fall_is_noticed_and_nothing_is_met_after_it():
    player = Player(GO2, StandStill(GO2), FRICTION)
    player.set_goals(resolve(Script(keyframes=(Keyframe(time=2.0, yaw=0.0),)), GO2), live=False)
    player.push(np.array([0.0, 6.0, 3.0]))
    player.seek(player.end)
    player.catch_up(60.0)
    assert player.fell != NEVER_FELL
    assert player.verdicts() == [False]


def test_catching_up_stops_when_its_time_is_over():
    player = Player(GO2, Crouch(), FRICTION)
    player.set_goals(resolve(SCRIPT, GO2), live=False)
    player.seek(player.end)
    assert not player.catch_up(0.0)
    assert player.waiting


def test_the_head_may_stand_beyond_the_end():
    player = played()
    player.seek(player.end + 500)
    assert player.catch_up(1.0)
    np.testing.assert_array_equal(player.pose().position, player.trajectory.pose(player.end).position)


def test_friction_and_controller_change_from_the_head_on():
    player, calm = played(), played()
    player.seek(60)
    player.set_friction(0.1)
    player.set_controller(StandStill(GO2))
    assert player.recorded == 60
    player.seek(player.end)
    player.catch_up(60.0)
    now, before = (each.trajectory.column("joint_angles") for each in (player, calm))
    np.testing.assert_array_equal(now[:61], before[:61])
    assert np.abs(now[-1] - before[-1]).max() > 0.05
    past = player.trajectory.column("joint_angles").copy()
    player.rewind()
    player.catch_up(60.0)
    np.testing.assert_array_equal(player.trajectory.column("joint_angles"), past)
    player.restart()
    assert list(player.conditions) == [0]
    assert player.friction == 0.1


def test_friction_is_felt():
    def slid(friction: float) -> float:
        player = Player(GO2, StandStill(GO2), friction)
        player.push(np.array([1.0, 0.0, 0.0]))
        player.seek(player.end)
        player.catch_up(60.0)
        return float(player.trajectory.column("position")[-1, 0])

    assert slid(0.1) > slid(1.0) + 0.05


@pytest.mark.parametrize("speed", [0.1, 0.25, 1.0, 4.0])
def test_fifty_steps_a_second_times_the_speed(speed: float):
    clock = PlaybackClock(speed)
    clock.start(10.0)
    steps = sum(clock.due(10.0 + i / 47) for i in range(1, 471))  # ten seconds, in frames of an odd length
    assert steps == pytest.approx(500 * speed, abs=1)


def test_a_long_stall_is_dropped_and_counted():
    clock = PlaybackClock()
    clock.start(0.0)
    clock.given += clock.due(2.0)
    assert clock.given == round(MAX_DELAY * 50)
    assert clock.ratio == pytest.approx(MAX_DELAY / 2.0)


def test_time_before_the_start_does_not_count():
    clock = PlaybackClock()
    clock.start(100.0)
    assert clock.due(100.02) == 1


def test_the_first_that_is_not_yet_due_is_active():
    assert keyframe_states([10, 20, 30], [True, None, None]) == ["met", "active", "coming"]
    assert keyframe_states([10, 20], [False, True]) == ["missed", "met"]
    assert keyframe_states([], []) == []
