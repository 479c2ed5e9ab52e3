"""The whole deployment, stepped against the simulated robot in one process."""

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.consistency import HeadingCheck
from keystride.deploy.deployment import EMERGENCY_BUTTON, START_BUTTON, STOP_BUTTON
from keystride.deploy.fault_checks import DeployState, Event
from keystride.deploy.players import TrotStub
from keystride.deploy.pose.estimator import LegOdometry
from keystride.deploy.pose.source import Mounting, Pose, Poses
from keystride.deploy.safety import MotorCommand
from keystride.deploy.sim.rehearsal import Rehearsal, rehearse
from keystride.deploy.unitree.codec import encode_buttons, encode_state
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

SCRIPT = Script(keyframes=(Keyframe(time=1.5, position=(0.45, 0.0)), Keyframe(time=2.5, position=(0.75, 0.0))))


def ready(posture: str = "standing", player=None) -> Rehearsal:
    rehearsal = rehearse(GO2, player or TrotStub(GO2), SCRIPT, posture=posture)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    return rehearsal


def running(seconds: float = 1.0, player=None) -> Rehearsal:
    rehearsal = ready(player=player)
    rehearsal.deployment.ask(Event.START)
    rehearsal.advance(seconds)
    assert rehearsal.deployment.safety.state is DeployState.RUNNING
    return rehearsal


def press(rehearsal: Rehearsal, button: str) -> None:
    """On the remote, for one low state."""
    record = encode_state(GO2, rehearsal.world.sense(), rehearsal.world.steps)
    record["wireless_remote"][2:4] = list(encode_buttons(frozenset({button})))
    rehearsal.link.states.put(record, rehearsal.now)
    rehearsal.deployment.stream(rehearsal.now)


def test_a_script_is_played_from_the_ground_to_the_ground():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT)
    assert rehearsal.play(20.0) is DeployState.DAMPING
    assert rehearsal.events == [
        "idle -> standing up",
        "standing up -> ready",
        "ready -> running",
        "running -> stopping",
        "stopping -> damping",
    ]
    assert rehearsal.deployment.safety.reason == ""
    assert [arrival.step for arrival in rehearsal.deployment.arrivals] == [75, 125]
    assert max(np.linalg.norm(arrival.error[:3]) for arrival in rehearsal.deployment.arrivals) < 0.1
    rehearsal.advance(1.0)
    assert rehearsal.world.data.qpos[2] < 0.12
    assert not rehearsal.world.stiffness.any()


def test_the_script_begins_where_the_robot_stands():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT)
    rehearsal.world.data.qpos[:7] = (3.0, -2.0, rehearsal.world.data.qpos[2], np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
    rehearsal.play(20.0)
    x, y = rehearsal.world.data.qpos[:2]
    assert np.hypot(x - 3.0, y - (-2.0 + 0.75)) < 0.15  # it looked to the left


def test_nothing_starts_without_a_pose():
    rehearsal = ready()
    rehearsal.disturb("pose_off", True)
    rehearsal.advance(0.3)
    rehearsal.deployment.ask(Event.START)
    rehearsal.advance(0.1)
    assert rehearsal.deployment.safety.state is DeployState.READY
    assert rehearsal.events[-1] == "cannot start: no pose of the robot"


def test_buttons_of_the_remote():
    rehearsal = ready()
    press(rehearsal, START_BUTTON)
    assert rehearsal.deployment.safety.state is DeployState.RUNNING
    rehearsal.step()
    press(rehearsal, STOP_BUTTON)
    assert rehearsal.deployment.safety.state is DeployState.STOPPING
    rehearsal.step()
    press(rehearsal, EMERGENCY_BUTTON)
    assert rehearsal.deployment.safety.state is DeployState.DAMPING


def test_a_held_start_button_is_one_start():
    rehearsal = ready()
    press(rehearsal, START_BUTTON)
    rehearsal.world.step()
    press(rehearsal, START_BUTTON)
    assert rehearsal.deployment.asks.empty()


def test_an_emergency_is_heard_in_every_state():
    for state in (
        DeployState.IDLE,
        DeployState.STANDING_UP,
        DeployState.READY,
        DeployState.RUNNING,
        DeployState.STOPPING,
    ):
        rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT, posture="standing")
        for event in (Event.STAND, Event.START, Event.STOP):
            if rehearsal.until(state, 0.0):
                break
            rehearsal.deployment.ask(event)
            rehearsal.until(
                DeployState.READY if event is Event.STAND and state is not DeployState.STANDING_UP else state, 5.0
            )
        assert rehearsal.deployment.safety.state is state
        rehearsal.deployment.emergency = "test"
        rehearsal.step()
        assert rehearsal.deployment.safety.state is DeployState.DAMPING
        assert rehearsal.events[-1].endswith("emergency stop (test)")


def test_lost_states_end_in_damping():
    rehearsal = running()
    rehearsal.disturb("states_off", True)
    rehearsal.advance(0.15)
    assert rehearsal.deployment.safety.reason == "low state lost"
    assert rehearsal.deployment.safety.state is DeployState.DAMPING


@pytest.mark.parametrize(("seconds", "state"), [(0.1, DeployState.RUNNING), (0.5, DeployState.STOPPING)])
def test_lost_poses(seconds, state):
    rehearsal = running()
    rehearsal.disturb("pose_off", True, seconds)
    rehearsal.advance(seconds + 0.1)
    assert rehearsal.deployment.safety.state is state


class Broken(TrotStub):
    def step(self, state, goals, step):
        return np.full(12, np.nan) if step > 40 else super().step(state, goals, step)


def test_a_policy_that_gives_no_numbers_is_stopped():
    rehearsal = running(0.5, player=Broken(GO2))
    rehearsal.advance(0.7)
    assert rehearsal.deployment.safety.state is DeployState.STOPPING
    assert rehearsal.deployment.safety.reason == "policy too late"
    assert np.isfinite(rehearsal.world.data.qpos).all()


def test_a_robot_that_does_not_stand_up_is_not_ready():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT)
    rehearsal.disturb("deaf", True)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.DAMPING, 5.0)
    assert rehearsal.deployment.safety.reason == "motors do not obey"
    assert not any("ready" in event for event in rehearsal.events)


def test_a_robot_that_a_dead_program_left_standing_is_not_dropped():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT, posture="standing")
    rehearsal.world.receive(MotorCommand(GO2.stance, np.full(12, 60.0), np.full(12, 3.0)))
    rehearsal.world.step(500)
    fastest = 0.0
    for _ in range(400):
        rehearsal.step()
        fastest = min(fastest, rehearsal.world.data.qvel[2])
    assert rehearsal.world.data.qpos[2] < 0.15
    assert fastest > -0.6  # m/s; it falls with more than 1 m/s if the motors let go


def test_a_robot_that_is_tipped_over_is_let_go():
    rehearsal = running()
    rehearsal.world.data.qpos[2:7] = (0.4, np.cos(0.7), np.sin(0.7), 0.0, 0.0)  # on its side, 80 degrees
    rehearsal.advance(0.01)
    assert rehearsal.deployment.safety.reason == "tilted too far"
    assert rehearsal.deployment.safety.state is DeployState.DAMPING


def test_an_upside_down_robot_is_never_stiff():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT, posture="upside-down")
    rehearsal.deployment.ask(Event.STAND)
    for _ in range(1000):
        rehearsal.step()
        assert rehearsal.command is not None
        assert not rehearsal.command.stiffness.any()
    assert rehearsal.deployment.safety.reason == "tilted too far"


def test_a_robot_that_no_longer_hears_is_noticed_and_not_called_limp():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.advance(0.1)
    rehearsal.deployment.ask(Event.START)
    rehearsal.advance(0.5)
    rehearsal.disturb("deaf", True, 3.0)
    deaf = rehearsal.now
    assert rehearsal.until(DeployState.DAMPING, 2.0)
    assert rehearsal.deployment.safety.reason == "motors do not obey"
    rehearsal.advance(2.9 - (rehearsal.now - deaf))
    assert rehearsal.world.stiffness.any()
    assert not rehearsal.deployment.limp
    rehearsal.advance(1.5)
    assert not rehearsal.world.stiffness.any()
    assert rehearsal.deployment.limp


def test_a_robot_that_is_silent_is_not_called_limp():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT)
    rehearsal.advance(0.5)
    assert rehearsal.deployment.limp
    rehearsal.disturb("states_off", True)
    rehearsal.advance(0.2)
    assert not rehearsal.deployment.limp


def test_guards_get_no_heartbeat_while_the_robot_is_silent():
    rehearsal, beats = rehearse(GO2, TrotStub(GO2), SCRIPT), []

    def beat(now: float) -> str:
        beats.append(now)
        return ""

    rehearsal.deployment.heartbeat = beat
    rehearsal.advance(0.1)
    rehearsal.disturb("states_off", True)
    rehearsal.advance(0.5)
    assert 0.15 < beats[-1] < 0.25


def test_a_graver_fault_on_the_way_down_is_told_too():
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.disturb("battery", 5.0)
    assert rehearsal.until(DeployState.STOPPING, 2.0)
    rehearsal.deployment.emergency = "key"
    rehearsal.advance(0.1)
    assert rehearsal.events[-1] == "stopping -> damping: emergency stop (key), after battery low"
    rehearsal.disturb("states_off", True)
    rehearsal.advance(0.3)
    assert rehearsal.events[-1] == "also: low state lost"
    rehearsal.advance(0.3)
    assert rehearsal.events.count("also: low state lost") == 1


@pytest.mark.parametrize("yaw", [0.0, 30.0, 90.0, 180.0, -30.0])
def test_markers_that_are_mounted_at_an_angle_are_noticed_before_the_robot_walks(yaw):
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT, poses=Poses(Mounting(yaw=yaw)))
    rehearsal.play(10.0)
    safety = rehearsal.deployment.safety
    assert safety.played == (yaw == 0.0)
    if yaw:
        assert safety.reason == "heading of the poses is wrong"
        assert not any("running" in event for event in rehearsal.events)


@pytest.mark.parametrize("direction", ["moves", "sways"])
def test_a_heading_that_is_wrong_shows_in_the_direction_of_the_motion(direction):
    """By hand: 2 mm of motion in 8 ms along x by the legs, along y by the poses; or tilting to the side instead of forward."""
    check, odometry = HeadingCheck(), LegOdometry(GO2)
    for tick in range(200):
        now = 0.008 * tick
        tilt = np.radians(3.0 * np.sin(5.0 * now)) if direction == "sways" else 0.0
        odometry.orientation = geometry.from_rotation_vector(np.array([0.0, tilt, 0.0]))
        seen = geometry.from_rotation_vector(np.array([tilt, 0.0, 0.0]))
        moved = np.array([0.0, 0.002 * tick, 0.0]) if direction == "moves" else np.zeros(3)
        odometry.position = moved[[1, 0, 2]]
        check.follow(now, odometry.orientation)
        check.update(now, Pose(moved, seen), odometry, 0.0)
        assert not check.problem or (tick > 10 and f"robot {direction} 90 degrees off" in check.problem)
    assert check.problem
