import numpy as np
import pytest

from keystride.deploy.pose.odometry import LegOdometry, OdometryPoses
from keystride.deploy.selftest.runner import WALK_SCRIPT
from keystride.deploy.sim.rehearsal import WalkStatistics, rehearse
from keystride.deploy.states import DeployState, Event
from keystride.deploy.stub import TrotStub
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
