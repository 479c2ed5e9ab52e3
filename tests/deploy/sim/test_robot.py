import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.safety import MotorCommand
from keystride.deploy.sim.disturbances import Disturbances
from keystride.deploy.sim.robot import COMMAND_TIMEOUT, SILENT, Noise, SimulatedGo2
from keystride.deploy.unitree.codec import encode_state
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height

STAND = MotorCommand(GO2.stance, np.full(12, 60.0), np.full(12, 3.0))


def standing(**options) -> SimulatedGo2:
    robot = SimulatedGo2(GO2, posture="standing", **options)
    for _ in range(500):
        robot.receive(STAND)
        robot.step()
    return robot


def test_it_stands_under_commands():
    robot = standing()
    assert robot.data.qpos[2] == pytest.approx(float(standing_height(GO2, GO2.stance)), abs=0.02)
    assert robot.sense().feet.sum() == pytest.approx(9.81 * robot.model.body_mass.sum(), rel=0.02)


def test_the_motors_law_and_limits_hold_on_every_step():
    robot = standing()
    command = MotorCommand(GO2.stance + 5.0, np.full(12, 60.0), np.full(12, 3.0))
    robot.receive(command)
    robot.step()
    assert np.allclose(robot.data.actuator_force, GO2.torque_limit)
    soft = MotorCommand(robot.data.qpos[7:] + 0.01, np.full(12, 20.0), np.full(12, 0.5))
    robot.receive(soft)
    angles, speeds = robot.data.qpos[7:].copy(), robot.data.qvel[6:].copy()
    robot.step()
    assert np.allclose(
        robot.data.actuator_force,
        np.clip(20.0 * (soft.target - angles) - 0.5 * speeds, -GO2.torque_limit, GO2.torque_limit),
    )


def test_when_commands_stop_it_keeps_the_last_one():
    robot = standing()
    robot.step(3000)
    assert not robot.commanded
    assert (robot.stiffness == 60.0).all()
    assert robot.data.qpos[2] > 0.2


def test_a_motor_board_that_brakes_by_itself():
    robot = standing(brake_after=COMMAND_TIMEOUT)
    robot.step(round(COMMAND_TIMEOUT / 0.001) - 2)
    assert robot.stiffness.any()
    robot.step(4)
    assert not robot.stiffness.any()
    robot.step(3000)
    assert robot.data.qpos[2] < 0.12
    assert np.abs(robot.data.qvel[6:]).max() < 0.5


def test_it_lies_and_stays_where_it_was_put_upside_down():
    robot = SimulatedGo2(GO2, posture="upside-down")
    robot.step(1000)
    assert geometry.projected_gravity(robot.data.qpos[3:7])[2] > 0.9


def test_an_unknown_posture_is_refused():
    with pytest.raises(ValueError, match="flying"):
        SimulatedGo2(GO2, posture="flying")


def test_at_rest_the_imu_feels_gravity():
    sensed = standing().sense()
    assert np.allclose(sensed.accelerometer, -9.81 * geometry.projected_gravity(sensed.quaternion), atol=0.1)


def test_the_accelerometers_mean_is_the_change_of_speed():
    """Dropped: free fall feels nothing, and the mean over many steps misses no landing."""
    robot = SimulatedGo2(GO2, posture="standing")
    robot.data.qpos[2] += 0.3
    robot.step(100)
    assert np.abs(robot.sense().accelerometer).max() < 0.5
    before = robot.data.qvel[2]
    robot.step(400)
    felt = robot.sense().accelerometer[2] - 9.81
    assert felt * 0.4 == pytest.approx(robot.data.qvel[2] - before, abs=0.3)


def test_noise_has_its_size_and_silence_none():
    quiet, noisy = standing(noise=SILENT), standing(noise=Noise(joint_angle=0.01))
    assert (quiet.sense().joint_angles == quiet.data.qpos[7:]).all()
    spread = np.std([noisy.sense().joint_angles - noisy.data.qpos[7:] for _ in range(300)])
    assert spread == pytest.approx(0.01, rel=0.1)


def test_the_same_seed_is_the_same_robot():
    first, second = (standing(noise=Noise(), seed=4).sense() for _ in range(2))
    assert (first.joint_angles == second.joint_angles).all()
    assert (first.accelerometer == second.accelerometer).all()


def test_ticks_that_count_too_fast_do_so_in_every_state_however_irregular_these_are():
    disturbances, robot = Disturbances(), SimulatedGo2(GO2)
    disturbances.set("ticks_fast", 20, 1.0, now=0.0)
    states = [(2, 0.0), (4, 0.0012), (6, 0.004), (8, 0.0041)]
    records = [disturbances.disturb_state(encode_state(GO2, robot.sense(), tick), now) for tick, now in states]
    assert (np.diff([int(record["tick"]) for record in records]) == 22).all()
