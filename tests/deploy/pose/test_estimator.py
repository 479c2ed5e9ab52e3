"""Leg odometry and the filter, against the simulator's truth and by hand."""

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.fault_checks import DeployState, Event
from keystride.deploy.players import TrotStub
from keystride.deploy.pose.estimator import Estimator, EstimatorConfig, LegOdometry, OdometryPoses
from keystride.deploy.pose.source import Pose
from keystride.deploy.selftest.runner import WALK_SCRIPT
from keystride.deploy.sim.rehearsal import Rehearsal, WalkStatistics, rehearse
from keystride.deploy.sim.robot import Noise
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints


def test_the_jacobian_is_the_derivative_of_the_feet():
    odometry, angles, step = LegOdometry(GO2), GO2.stance + 0.2 * np.sin(np.arange(12)), 1e-6
    feet, jacobian = odometry.legs(angles)
    assert np.allclose(feet, feet_from_joints(GO2, angles))
    for joint in range(12):
        change = step * np.eye(12)[joint]
        slope = (feet_from_joints(GO2, angles + change) - feet_from_joints(GO2, angles - change)) / (2 * step)
        assert np.allclose(slope[joint // 3], jacobian[joint // 3, :, joint % 3], atol=1e-8)


def test_the_load_of_the_feet_is_the_weight():
    rehearsal = rehearse(GO2, TrotStub(GO2), WALK_SCRIPT)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.advance(0.3)
    low = rehearsal.deployment._low
    assert low is not None
    odometry = rehearsal.deployment.odometry
    _, jacobian = odometry.legs(low.joint_angles)
    load = odometry.load(jacobian, low.torques, np.array([0.0, 0.0, 1.0]))
    assert load.sum() == pytest.approx(
        9.81 * rehearsal.world.model.body_mass.sum(), rel=0.25
    )  # the legs carry themselves
    assert load.min() > 15.0


def test_a_leg_that_is_reported_as_straight_carries_nothing():
    """A motor board that sends zeros gives a leg whose Jacobian cannot be inverted."""
    odometry = LegOdometry(GO2)
    _, jacobian = odometry.legs(np.zeros(12))
    assert (odometry.load(jacobian, np.zeros(12), np.array([0.0, 0.0, 1.0])) == 0.0).all()


TURNING = Script(keyframes=(Keyframe(time=2.0, position=(0.5, 0.15), yaw=30.0),))


@pytest.mark.parametrize("script", [WALK_SCRIPT, TURNING], ids=["straight", "turning"])
def test_a_script_is_played_by_leg_odometry_alone(script):
    """Drift per metre walked is printed; docs/deploy.md has it for the shipped policies."""
    rehearsal = rehearse(GO2, TrotStub(GO2), script, poses=OdometryPoses())
    walk = WalkStatistics(rehearsal)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.advance(0.6)
    rehearsal.deployment.ask(Event.START)
    while rehearsal.deployment.safety.state is not DeployState.DAMPING and rehearsal.now < 30.0:
        rehearsal.step()
        walk.update()
    assert rehearsal.deployment.safety.played
    print(f"{walk.drift:.3f} m off after {walk.walked:.2f} m, {walk.drift_per_metre:.3f} m per metre")
    assert walk.walked > 0.3
    assert walk.drift_per_metre < 0.06
    assert abs(rehearsal.deployment.odometry.position[2] - rehearsal.world.data.qpos[2]) < 0.05


def test_a_robot_that_lies_does_not_drift_away():
    rehearsal = rehearse(GO2, TrotStub(GO2), WALK_SCRIPT)
    rehearsal.advance(4.0)  # idle, feet without load
    assert np.hypot(*rehearsal.deployment.odometry.position[:2]) < 0.2


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
