"""Faults that can be injected into the simulated robot while it runs: in its states, its poses and its network."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from keystride import geometry
from keystride.deploy.pose.source import Pose
from keystride.deploy.unitree.codec import BATTERY_DISCHARGING, BUTTON_BYTES, BUTTONS, encode_buttons
from keystride.deploy.unitree.wire_format import Record

# Names, and their values without a disturbance. Motors are numbered as on the robot's board.
DISTURBANCES: dict[str, Any] = {
    "loss": 0.0,  # share of messages lost, each way
    "delay": 0.0,  # s added to every message
    "states_off": False,
    "states_frozen": False,  # the last state is repeated
    "ticks_fast": 0,  # surplus ticks per state
    "service_stays_up": False,  # the sport service answers that the robot lies down, but it stays up
    "imu_frozen": False,  # only the IMU's values are repeated
    "orientation_frozen": False,  # only the IMU's orientation is repeated; gyroscope and accelerometer still work
    "orientation_zero": False,  # a quaternion of zeros
    "orientation_tilt": 0.0,  # degrees of pitch added to the IMU's orientation
    "gyroscope_offset": 0.0,  # rad/s added to the gyroscope
    "accelerometer_nan": False,
    "accelerometer_dead": False,  # noise without gravity
    "states_unsealed": False,  # checksum 0
    "deaf": False,  # commands are ignored
    "other_robot": False,  # a second robot sends states
    "pose_off": False,
    "pose_nan": False,
    "pose_shift": 0.0,  # m along x
    "pose_drift": 0.0,  # m/s along x
    "pose_turn": 0.0,  # degrees of heading
    "pose_spin": 0.0,  # degrees of heading per second
    "pose_tilt": 0.0,  # degrees of roll
    "pose_frozen": False,  # the last pose, with its number and time
    "pose_stuck": False,  # the last pose, with new numbers and times and noise of 0.1 mm
    "pose_clock": 0.0,  # s added to the times of poses
    "pose_late": 0.0,  # s by which poses arrive later than their time stamps say
    "battery": 90.0,  # percent
    "battery_status": BATTERY_DISCHARGING,
    "motor_temperature": 40.0,  # degrees Celsius
    "motor_off": None,  # number of a motor that reports mode 0
    "motor_lost": 0.0,  # packets lost per second by motor 0
    "leg_frozen": False,  # motors 0 to 2 repeat their last measurement
    "leg_zero": False,  # motors 0 to 2 report zeros
    "speeds_zero": False,  # all motors report speed 0
    "joint_offset": 0.0,  # rad added to the angle that motor 2 reports
    "stalled": None,  # number of a motor that reports full torque and no speed
    "overtorque": None,  # number of a motor that reports 1.6 times its torque
    "button": None,  # name of a button on the remote
    "other_writer": False,  # another program sends low commands
    "motion_service": None,  # name of the motion service that takes the motors again
}


@dataclass
class Disturbances:
    active: dict[str, tuple[Any, float, float]] = field(default_factory=dict)  # by name: value, start and end
    _state: Record | None = None
    _pose: Pose | None = None
    _lost: float = 0.0
    _ticks: int = 0  # surplus ticks so far
    _before: float | None = None

    def set(self, name: str, value: Any, seconds: float, now: float) -> None:
        """Raise ValueError for an unknown name or button."""
        if name not in DISTURBANCES:
            raise ValueError(f"unknown disturbance {name!r}: expected one of {', '.join(DISTURBANCES)}")
        if name == "button" and value not in BUTTONS:
            raise ValueError(f"unknown button {value!r}: expected one of {', '.join(BUTTONS)}")
        self.active[name] = (value, now, now + seconds)

    def get(self, name: str, now: float) -> Any:
        value, _, until = self.active.get(name, (None, 0.0, -np.inf))
        return value if now < until else DISTURBANCES[name]

    def since(self, name: str, now: float) -> float:
        """Return the seconds since it began; 0 if it is not active."""
        _, begun, until = self.active.get(name, (None, now, -np.inf))
        return now - begun if now < until else 0.0

    def disturb_state(self, record: Record, now: float) -> Record:
        """Return the state that the robot reports instead, without its checksum."""
        if not self.active:
            self._state, self._before = record.copy(), now
            return record
        if self.get("states_frozen", now) and self._state is not None:
            return self._state.copy()
        self._ticks += self.get("ticks_fast", now)
        record["tick"] += self._ticks
        self._disturb_imu(record["imu_state"], now)
        self._disturb_motors(record["motor_state"], now)
        record["bms_state"]["soc"] = int(self.get("battery", now))
        record["bms_state"]["status"] = self.get("battery_status", now)
        button = self.get("button", now)
        buttons = frozenset() if button is None else frozenset({button})
        record["wireless_remote"][BUTTON_BYTES] = list(encode_buttons(buttons))
        self._state = record.copy()
        return record

    def _disturb_imu(self, imu: Record, now: float) -> None:
        if self.get("imu_frozen", now) and self._state is not None:
            imu[...] = self._state["imu_state"]
        if self.get("orientation_frozen", now) and self._state is not None:
            imu["quaternion"] = self._state["imu_state"]["quaternion"]
        if self.get("orientation_zero", now):
            imu["quaternion"] = 0.0
        if self.get("accelerometer_nan", now):
            imu["accelerometer"] = np.nan
        if self.get("accelerometer_dead", now):
            imu["accelerometer"] *= 0.01
        if tilt := self.get("orientation_tilt", now):
            pitch = geometry.from_rotation_vector(np.array([0.0, np.radians(tilt), 0.0]))
            quaternion = imu["quaternion"].astype(np.float64)
            imu["quaternion"] = geometry.multiply(quaternion, pitch)
        imu["gyroscope"] += self.get("gyroscope_offset", now)

    def _disturb_motors(self, motors: Record, now: float) -> None:
        if self.get("leg_frozen", now) and self._state is not None:
            for name in ("q", "dq", "tau_est"):
                motors[name][:3] = self._state["motor_state"][name][:3]
        if self.get("leg_zero", now):
            for name in ("q", "dq", "tau_est"):
                motors[name][:3] = 0.0
        if self.get("speeds_zero", now):
            motors["dq"] = 0.0
        motors["temperature"] = int(self.get("motor_temperature", now))
        motors["q"][2] += self.get("joint_offset", now)
        off, stalled, over = (self.get(name, now) for name in ("motor_off", "stalled", "overtorque"))
        if off is not None:
            motors["mode"][off] = 0
        if stalled is not None:
            motors["tau_est"][stalled], motors["dq"][stalled] = 45.0 + 0.1 * np.sin(1000.0 * now), 0.0
            if self._state is not None:
                motors["q"][stalled] = self._state["motor_state"]["q"][stalled]
        if over is not None:
            motors["tau_est"][over] = 1.6 * 45.0
        dt = 0.0 if self._before is None else now - self._before
        self._before = now
        self._lost += dt * self.get("motor_lost", now)
        motors["lost"][0] = int(self._lost)

    def disturb_pose(self, pose: Pose, now: float, random: np.random.Generator) -> Pose | None:
        """Return the pose that the motion capture reports instead; None for no pose."""
        if not self.active:
            self._pose = pose
            return pose
        if self.get("pose_off", now):
            return None
        if pose.time is not None:
            pose = replace(pose, time=pose.time + self.get("pose_clock", now))
        if self._pose is not None and self.get("pose_frozen", now):
            return self._pose
        if self._pose is not None and self.get("pose_stuck", now):
            noise = 0.0001 * random.standard_normal(3)
            return Pose(self._pose.position + noise, self._pose.orientation, pose.time, pose.sequence)
        along = self.get("pose_shift", now) + self.get("pose_drift", now) * self.since("pose_drift", now)
        turn = self.get("pose_turn", now) + self.get("pose_spin", now) * self.since("pose_spin", now)
        orientation = geometry.multiply(geometry.from_yaw(np.asarray(np.radians(turn))), pose.orientation)
        roll = np.array([np.radians(self.get("pose_tilt", now)), 0.0, 0.0])
        orientation = geometry.multiply(orientation, geometry.from_rotation_vector(roll))
        self._pose = Pose(pose.position + np.array([along, 0.0, 0.0]), orientation, pose.time, pose.sequence)
        return self._pose
