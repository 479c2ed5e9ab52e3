"""Conversion between Unitree's records, in motor order, and the joint order of the rest of the program."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from keystride.deploy.safety import BRAKE, MotorCommand
from keystride.deploy.unitree.wire_format import LOW_CMD, LOW_STATE, MOTOR_LEGS, Record, joint_order, motor_order
from keystride.robot.description import Floats, Robot

if TYPE_CHECKING:  # keeps MuJoCo out of the guard process
    from keystride.deploy.sim.robot import Sensed

HEAD = (0xFE, 0xEF)
LOW_LEVEL = 0xFF
MOTOR_ON = 1
POSITION_STOP, VELOCITY_STOP = np.float32(2.146e9), np.float32(16000.0)  # Unitree's values for "unset"

LEG_MOTORS = 3 * len(MOTOR_LEGS)

LOOPBACK = ("lo", "lo0", "127.0.0.1")  # names of the loopback interface
MOTION_SWITCHER, SPORT = "motion_switcher", "sport"  # services
CHECK_MODE, SELECT_MODE, RELEASE_MODE = 1001, 1002, 1003  # API ids of the motion switcher
STAND_DOWN = 1005  # API id of the sport service
NO_SUCH_CALL = 3203

MEASURABLE = (10.0, 200.0, 200.0, 100.0, 500.0)  # rad, rad/s, N m, rad/s, m/s2: far beyond what occurs on a Go2

BATTERY_DISCHARGING = 8  # `status` of the battery; 7 is charging, 11 to 13 are alarms

BUTTONS = ("R1", "L1", "start", "select", "R2", "L2", "F1", "F2", "A", "B", "X", "Y", "up", "right", "down", "left")
BUTTON_BYTES = slice(2, 4)  # in the remote's 40 bytes


def new_low_cmd() -> Record:
    """Return Unitree's initial command: no gains, position and speed unset."""
    record = LOW_CMD.new()
    record["head"] = HEAD
    record["level_flag"] = LOW_LEVEL
    motors = record["motor_cmd"]
    motors["mode"] = MOTOR_ON
    motors["q"] = POSITION_STOP
    motors["dq"] = VELOCITY_STOP
    return record


def encode_command(robot: Robot, command: MotorCommand) -> Record:
    """Encode a command, without its checksum."""
    record = new_low_cmd()
    order = motor_order(robot)
    motors = record["motor_cmd"][: len(order)]
    motors["kp"] = command.stiffness[order]
    motors["kd"] = command.damping[order]
    motors["q"] = np.where(command.stiffness > 0.0, command.target, POSITION_STOP)[order]
    motors["dq"] = np.where(command.damping > 0.0, 0.0, VELOCITY_STOP)[order]
    return record


def brake_record() -> Record:
    """Return the command that brakes all leg motors of any robot, without its checksum."""
    record = new_low_cmd()
    motors = record["motor_cmd"][:LEG_MOTORS]
    motors["kd"], motors["dq"] = BRAKE, 0.0
    return record


def decode_command(robot: Robot, record: Record) -> MotorCommand:
    order = joint_order(robot)
    motors = record["motor_cmd"][: len(order)]
    return MotorCommand(*(motors[name].astype(np.float64)[order] for name in ("q", "kp", "kd")))


@dataclass(frozen=True)
class LowReading:
    """The content of a low state, in the robot's joint order."""

    tick: int  # increases with every state
    joint_angles: Floats
    joint_velocities: Floats
    torques: Floats  # N m, estimated
    motors_on: bool  # whether all motors are enabled
    lost: Floats  # (12,) packets lost by each motor
    quaternion: Floats
    gyroscope: Floats
    accelerometer: Floats
    battery: float  # percent
    battery_status: int
    motor_temperature: float  # degrees Celsius, of the hottest motor
    buttons: frozenset[str]

    @cached_property
    def valid(self) -> bool:
        """Whether all values are numbers that a sensor can measure, and the quaternion has length 1 within a tenth."""
        values = (self.joint_angles, self.joint_velocities, self.torques, self.gyroscope, self.accelerometer)
        possible = all(np.abs(value).max() <= limit for value, limit in zip(values, MEASURABLE, strict=True))
        return possible and 0.81 < float(self.quaternion @ self.quaternion) < 1.21


def decode_state(robot: Robot, record: Record) -> LowReading:
    order = joint_order(robot)
    motors, imu = record["motor_state"][: len(order)], record["imu_state"]
    return LowReading(
        tick=int(record["tick"]),
        joint_angles=motors["q"].astype(np.float64)[order],
        joint_velocities=motors["dq"].astype(np.float64)[order],
        torques=motors["tau_est"].astype(np.float64)[order],
        motors_on=bool((motors["mode"] == MOTOR_ON).all()),
        lost=motors["lost"].astype(np.float64)[order],
        quaternion=imu["quaternion"].astype(np.float64),
        gyroscope=imu["gyroscope"].astype(np.float64),
        accelerometer=imu["accelerometer"].astype(np.float64),
        battery=float(record["bms_state"]["soc"]),
        battery_status=int(record["bms_state"]["status"]),
        motor_temperature=float(motors["temperature"].max()),
        buttons=decode_buttons(record["wireless_remote"].tobytes()),
    )


def encode_state(robot: Robot, sensed: "Sensed", tick: int) -> Record:
    """Encode the state of a healthy robot, without its checksum."""
    record = LOW_STATE.new()
    record["head"], record["level_flag"], record["tick"] = HEAD, LOW_LEVEL, tick % 2**32
    order = motor_order(robot)
    motors = record["motor_state"][: len(order)]
    motors["mode"], motors["temperature"] = MOTOR_ON, 40
    motors["q"], motors["dq"], motors["tau_est"] = (
        values[order] for values in (sensed.joint_angles, sensed.joint_velocities, sensed.torques)
    )
    imu = record["imu_state"]
    imu["quaternion"], imu["gyroscope"], imu["accelerometer"] = (
        sensed.quaternion,
        sensed.gyroscope,
        sensed.accelerometer,
    )
    record["foot_force"] = sensed.feet[order[::3] // 3]
    record["bms_state"]["soc"], record["bms_state"]["status"] = 90, BATTERY_DISCHARGING
    return record


def decode_buttons(remote: bytes) -> frozenset[str]:
    bits = int.from_bytes(remote[BUTTON_BYTES], "little")
    return frozenset(name for place, name in enumerate(BUTTONS) if bits >> place & 1) if bits else frozenset()


def encode_buttons(buttons: frozenset[str]) -> bytes:
    return sum(1 << BUTTONS.index(name) for name in buttons).to_bytes(2, "little")
