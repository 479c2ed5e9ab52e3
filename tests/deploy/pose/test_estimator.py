import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.pose.estimator import Estimator, EstimatorConfig
from keystride.deploy.pose.source import Pose
from keystride.deploy.sim.rehearsal import Rehearsal, rehearse
from keystride.deploy.sim.robot import Noise
from keystride.deploy.states import DeployState, Event
from keystride.deploy.stub import TrotStub
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])
REST = np.array([0.0, 0.0, 9.81])
AHEAD = Script(keyframes=(Keyframe(time=3.0, position=(0.9, 0.3), yaw=20.0),))


def walking() -> Rehearsal:
    rehearsal = rehearse(GO2, TrotStub(GO2), AHEAD, noise=Noise(), posture="standing")
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.deployment.ask(Event.START)
    rehearsal.advance(0.4)
    assert rehearsal.deployment.safety.state is DeployState.RUNNING
    return rehearsal


def test_a_walk_is_followed(record_property):
    """Against the simulator's truth, with sensor noise and poses that are 8 ms late."""
    rehearsal = walking()
    speed, place, turn = [], [], []
    for _ in range(1000):
        true = rehearsal.world.truth()  # what the next low state shows
        rehearsal.step()
        made = rehearsal.deployment.estimator.estimate()
        speed.append(made.linear_velocity - true.linear_velocity)
        place.append(made.position - true.position)
        turn.append(geometry.rotation_vector(geometry.multiply(geometry.conjugate(true.orientation), made.orientation)))
    figures = {
        name: float(np.sqrt(np.mean(np.square(v)))) for name, v in (("speed", speed), ("place", place), ("turn", turn))
    }
    for name, value in figures.items():
        record_property(name, value)
    print(f"RMS errors: {figures['speed']:.4f} m/s, {figures['place']:.5f} m, {figures['turn']:.4f} rad")
    assert figures["speed"] < 0.02
    assert figures["place"] < 0.002
    assert figures["turn"] < 0.02


def test_without_poses_it_coasts_on_the_imu():
    rehearsal = walking()
    rehearsal.disturb("pose_off", True)
    off = []
    for _ in range(95):  # 0.19 s
        true = rehearsal.world.truth()
        rehearsal.step()
        off.append(rehearsal.deployment.estimator.estimate().position - true.position)
    assert np.linalg.norm(off[-1]) < 0.03
    assert rehearsal.deployment.safety.state is DeployState.RUNNING


def still(seconds: float, *, poses: bool = True) -> Estimator:
    estimator = Estimator(EstimatorConfig(imu_in_base=(0.0, 0.0, 0.0), pose_latency=0.0))
    for tick in range(round(seconds / 0.002)):
        now = tick * 0.002
        estimator.predict(now, LEVEL, np.zeros(3), REST)
        if poses and tick % 4 == 0:
            estimator.correct(now, Pose(np.array([1.0, 2.0, 0.3]), geometry.from_yaw(np.asarray(0.9))), may_jump=False)
    return estimator


def test_at_rest_it_is_where_the_pose_is():
    state = still(1.0).estimate()
    assert np.allclose(state.position, [1.0, 2.0, 0.3])
    assert np.allclose(state.linear_velocity, 0.0)
    assert geometry.yaw_of(state.orientation) == pytest.approx(0.9)


def test_before_the_first_pose_there_is_no_estimate():
    estimator = still(0.1, poses=False)
    assert not estimator.started
    with pytest.raises(RuntimeError, match="no pose"):
        estimator.estimate()


def test_an_accelerometer_bias_is_learnt():
    estimator = Estimator(EstimatorConfig(imu_in_base=(0.0, 0.0, 0.0), pose_latency=0.0))
    for tick in range(5000):
        estimator.predict(tick * 0.002, LEVEL, np.zeros(3), REST + np.array([0.3, 0.0, 0.0]))
        if tick % 4 == 0:
            estimator.correct(tick * 0.002, Pose(np.zeros(3), LEVEL), may_jump=False)
    assert np.abs(estimator.estimate().linear_velocity).max() < 0.005


def test_the_speed_of_the_base_is_not_that_of_the_imu():
    """Turning on the spot at 2 rad/s, an IMU 0.1 m ahead moves at 0.2 m/s and is drawn inwards at 0.4 m/s2."""
    config = EstimatorConfig(imu_in_base=(0.1, 0.0, 0.0), pose_latency=0.0)
    estimator = Estimator(config)
    for tick in range(2000):
        now = tick * 0.002
        turn = geometry.from_yaw(np.asarray(2.0 * now))
        estimator.predict(now, turn, np.array([0.0, 0.0, 2.0]), REST + np.array([-0.4, 0.0, 0.0]))
        if tick % 4 == 0:
            estimator.correct(now, Pose(np.zeros(3), turn), may_jump=False)
    state = estimator.estimate()
    assert np.abs(state.linear_velocity).max() < 0.01
    assert np.abs(state.position).max() < 0.001


def test_a_jump_is_not_believed_while_running():
    estimator = still(0.5)
    there = Pose(np.array([2.0, 2.0, 0.3]), LEVEL)
    assert not estimator.correct(0.5, there, may_jump=False)
    assert np.allclose(estimator.estimate().position, [1.0, 2.0, 0.3])
    assert estimator.last_pose < 0.5


def test_a_jump_is_a_new_beginning_otherwise():
    estimator = still(0.5)
    estimator.correct(0.5, Pose(np.array([2.0, 2.0, 0.3]), LEVEL), may_jump=True)
    assert np.allclose(estimator.estimate().position, [2.0, 2.0, 0.3])
    assert geometry.yaw_of(estimator.estimate().orientation) == pytest.approx(0.0)
