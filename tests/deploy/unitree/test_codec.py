import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystride.deploy.safety import MotorCommand, brake
from keystride.deploy.sim.robot import Sensed, SimulatedGo2
from keystride.deploy.unitree import codec
from keystride.robot.go2 import GO2


def test_a_new_command_asks_nothing():
    motors = codec.new_low_cmd()["motor_cmd"]
    assert not motors["kp"].any()
    assert not motors["kd"].any()
    assert not motors["tau"].any()
    assert (motors["mode"] == 1).all()


def test_commands_come_back_as_they_went():
    command = MotorCommand(np.arange(12) / 8, np.full(12, 40.0), np.full(12, 1.5))
    again = codec.decode_command(GO2, codec.encode_command(GO2, command))
    assert (again.target == command.target).all()
    assert (again.stiffness == 40.0).all()
    assert (again.damping == 1.5).all()


def test_the_guard_brakes_as_the_deployment_does():
    assert codec.brake_record().tobytes() == codec.encode_command(GO2, brake()).tobytes()


def test_the_first_motor_is_the_front_right_hip():
    target = np.zeros(12)
    target[GO2.joint_names.index("FR_hip_joint")] = 0.25
    record = codec.encode_command(GO2, MotorCommand(target, np.ones(12), np.ones(12)))
    assert record["motor_cmd"]["q"][0] == 0.25
    assert not record["motor_cmd"]["q"][1:12].any()


LIMP = MotorCommand(np.zeros(12), np.zeros(12), np.zeros(12))


@pytest.mark.parametrize(("command", "kd"), [(LIMP, 0.0), (brake(), 3.0)])
def test_without_stiffness_no_position_is_given(command, kd):
    motors = codec.encode_command(GO2, command)["motor_cmd"][:12]
    assert (motors["kp"] == 0.0).all()
    assert (motors["q"] == codec.POSITION_STOP).all()
    assert (motors["kd"] == kd).all()
    assert (motors["dq"] == (0.0 if kd else codec.VELOCITY_STOP)).all()


def test_states_come_back_as_they_went():
    rows = np.arange(12.0)
    sensed = Sensed(rows, rows / 4, rows * 2, np.array([1.0, 0, 0, 0]), np.ones(3), np.full(3, 9.5), np.arange(4.0))
    record = codec.encode_state(GO2, sensed, 7)
    record["motor_state"]["lost"][0] = 9  # front right hip
    record["wireless_remote"][codec.BUTTON_BYTES] = list(codec.encode_buttons(frozenset({"B", "start"})))
    low = codec.decode_state(GO2, record)
    assert (low.joint_angles == rows).all()
    assert (low.joint_velocities == rows / 4).all()
    assert (low.accelerometer == 9.5).all()
    assert (low.torques == rows * 2).all()
    assert low.lost[GO2.joint_names.index("FR_hip_joint")] == 9
    assert (low.tick, low.motors_on, low.battery_status) == (7, True, codec.BATTERY_DISCHARGING)
    assert (low.battery, low.motor_temperature, low.buttons) == (90, 40, {"B", "start"})
    record["motor_state"]["mode"][5] = 0
    assert not codec.decode_state(GO2, record).motors_on
    assert list(record["foot_force"]) == [1, 0, 3, 2]  # right before left


@pytest.mark.parametrize(
    ("part", "field"),
    [
        *(("imu_state", field) for field in ("quaternion", "gyroscope", "accelerometer")),
        *(("motor_state", field) for field in ("q", "dq", "tau_est")),
    ],
)
def test_a_state_that_is_not_finite_is_invalid(part, field):
    record = codec.encode_state(GO2, SimulatedGo2(GO2).sense(), 1)
    assert codec.decode_state(GO2, record).valid
    record[part][field][1] = np.nan
    assert not codec.decode_state(GO2, record).valid


def test_a_state_without_an_orientation_is_invalid():
    record = codec.encode_state(GO2, SimulatedGo2(GO2).sense(), 1)
    record["imu_state"]["quaternion"] = 0.0
    assert not codec.decode_state(GO2, record).valid


@given(st.frozensets(st.sampled_from(codec.BUTTONS)))
def test_buttons_come_back(buttons):
    remote = bytes(2) + codec.encode_buttons(buttons) + bytes(36)
    assert codec.decode_buttons(remote) == buttons


def test_the_b_button_is_the_tenth_bit():
    assert codec.encode_buttons(frozenset({"B"})) == bytes([0, 0b10])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("name", ["q", "dq", "tau_est", "gyroscope", "accelerometer"])
def test_a_state_with_a_value_that_no_sensor_measures_is_invalid(name, value):
    record = codec.encode_state(GO2, SimulatedGo2(GO2).sense(), 7)
    assert codec.decode_state(GO2, record).valid
    place = record["imu_state"] if name in ("gyroscope", "accelerometer") else record["motor_state"]
    place[name][2] = value
    assert not codec.decode_state(GO2, record).valid
