"""Base position, orientation and velocity from motion capture and IMU.

The robot does not measure its velocity. A Kalman filter of position, velocity and accelerometer bias (identical for the
three axes) integrates the accelerometer at the rate of the low states and is corrected by the captured positions. Roll and
pitch are the IMU's; its heading, which drifts, is corrected towards the captured one.

The filter tracks the IMU rather than the base: their velocities differ by angular velocity times lever arm.
"""

from collections import deque
from dataclasses import dataclass

import mujoco
import numpy as np

from keystride import geometry
from keystride.deploy.pose.source import Pose
from keystride.robot.description import Floats

GRAVITY_VECTOR = np.array([0.0, 0.0, -geometry.GRAVITY])
HISTORY = 100  # predictions kept, to compare a late pose with the time it was captured


@dataclass(frozen=True)
class EstimatorConfig:
    imu_in_base: tuple[float, float, float] = (-0.02557, 0.0, 0.04232)  # m
    pose_latency: float = 0.008  # s from capture to arrival
    pose_noise: float = 0.002  # m
    acceleration_noise: float = 1.5  # m/s2, from one low state to the next
    bias_drift: float = 0.05  # m/s2 per root second
    yaw_share: float = 0.05  # share of the heading error that each pose corrects
    gate: float = 0.25  # m from the prediction within which a pose is accepted
    gate_speed: float = 2.0  # m/s by which the gate grows while no pose arrives
    longest_step: float = 0.05  # s that one acceleration may stand for


@dataclass(frozen=True)
class BaseState:
    position: Floats  # (3,) world, m
    orientation: Floats  # (4,) world from base, w x y z
    linear_velocity: Floats  # (3,) base frame, m/s
    angular_velocity: Floats  # (3,) base frame, rad/s


class Estimator:
    def __init__(self, config: EstimatorConfig | None = None) -> None:
        self.config = config or EstimatorConfig()
        self.rejected = 0  # poses that were not accepted
        self.last_pose = -np.inf  # when the last accepted one arrived
        self._lever = np.array(self.config.imu_in_base)
        self._state: Floats | None = None  # (3, 3) rows: position, velocity, bias of the acceleration; world
        self._spread = np.diag([1e-4, 1e-2, 1e-2])  # covariance of a row's entries
        self._yaw = 0.0  # heading of the IMU's zero in the world
        self._imu = np.array([1.0, 0.0, 0.0, 0.0])
        self._orientation = self._imu  # world from base
        self._matrix = np.eye(3)  # the same
        self._gyro = np.zeros(3)
        self._now = 0.0
        self._past: deque[tuple[float, Floats, Floats]] = deque(maxlen=HISTORY)  # moment, position - drawn, IMU
        self._drawn = np.zeros(3)  # sum of all position corrections, which apply to the history as well

    @property
    def started(self) -> bool:
        return self._state is not None

    def predict(self, now: float, quaternion: Floats, gyroscope: Floats, accelerometer: Floats) -> None:
        """Process a low state."""
        dt = min(max(now - self._now, 0.0), self.config.longest_step)
        self._now, self._imu, self._gyro = now, quaternion / np.sqrt(quaternion @ quaternion), gyroscope
        if self._state is None:
            return
        self._turn()
        position, velocity, bias = self._state
        acceleration = self._matrix @ accelerometer + GRAVITY_VECTOR - bias
        self._state = np.stack(
            [position + velocity * dt + acceleration * dt**2 / 2, velocity + acceleration * dt, bias]
        )
        move = np.array([[1.0, dt, -(dt**2) / 2], [0.0, 1.0, -dt], [0.0, 0.0, 1.0]])
        push = np.array([dt**2 / 2, dt, 0.0]) * self.config.acceleration_noise
        self._spread = move @ self._spread @ move.T + np.outer(push, push)
        self._spread[2, 2] += self.config.bias_drift**2 * dt
        self._past.append((now, self._state[0] - self._drawn, self._imu))

    def correct(self, now: float, pose: Pose, *, may_jump: bool) -> bool:
        """Process a pose; return whether it was accepted. With `may_jump`, the filter restarts from one that is too far off."""
        seen = pose.position + geometry.rotate(pose.orientation, self._lever)  # (3,) the IMU
        if self._state is None:
            self._begin(now, seen, pose)
            return True
        then, imu = self._at(now - self.config.pose_latency - pose.delay, self._state[0])
        error = seen - then
        allowed = self.config.gate + self.config.gate_speed * min(now - self.last_pose, 1.0)
        if np.linalg.norm(error) > allowed:
            if may_jump:
                self._begin(now, seen, pose)
            return False
        gain = self._spread[:, 0] / (self._spread[0, 0] + self.config.pose_noise**2)  # (3,)
        self._state = self._state + gain[:, None] * error
        self._drawn = self._drawn + gain[0] * error
        self._spread = self._spread - np.outer(gain, self._spread[0])
        turn = geometry.wrap(geometry.yaw_of(pose.orientation) - geometry.yaw_of(imu) - self._yaw)
        self._yaw = float(geometry.wrap(self._yaw + self.config.yaw_share * turn))
        self.last_pose = now
        return True

    def estimate(self) -> BaseState:
        """Return the current estimate. Raise RuntimeError before the first pose."""
        if self._state is None:
            raise RuntimeError("no pose has arrived yet")
        velocity = self._state[1] @ self._matrix
        return BaseState(
            position=self._state[0] - self._matrix @ self._lever,
            orientation=self._orientation,
            linear_velocity=velocity - geometry.cross(self._gyro, self._lever),
            angular_velocity=self._gyro,
        )

    def _turn(self) -> None:
        """Update the orientation from the IMU and the heading, with MuJoCo's functions as this runs 500 times per second."""
        heading = np.array([np.cos(self._yaw / 2), 0.0, 0.0, np.sin(self._yaw / 2)])
        orientation, matrix = np.empty(4), np.empty(9)
        mujoco.mju_mulQuat(orientation, heading, self._imu)
        mujoco.mju_quat2Mat(matrix, orientation)
        self._orientation, self._matrix = orientation, matrix.reshape(3, 3)

    def _begin(self, now: float, seen: Floats, pose: Pose) -> None:
        self._yaw = float(geometry.wrap(geometry.yaw_of(pose.orientation) - geometry.yaw_of(self._imu)))
        self._state = np.stack([seen, np.zeros(3), np.zeros(3)])
        self._spread = np.diag([self.config.pose_noise**2, 0.1, 0.01])
        self._past.clear()
        self._turn()
        self.last_pose = now

    def _at(self, moment: float, present: Floats) -> tuple[Floats, Floats]:
        """Return the position and the IMU's orientation at a past time."""
        for at, position, imu in reversed(self._past):
            if at <= moment:
                return position + self._drawn, imu
        return present, self._imu
