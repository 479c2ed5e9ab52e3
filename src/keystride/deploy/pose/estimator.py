"""Estimate the robot's pose and velocity: leg odometry, and a filter that combines captured poses with the IMU.

**Leg odometry** uses only joints, motor torques and IMU. A loaded foot does not move on the ground, so the leg's
kinematics give the velocity of the base. The load comes from the estimated motor torques, which every Go2 reports. Feet
are spheres that roll as the shank turns. A foot that implies a sudden change of velocity is slipping or swinging and
gets little weight. Between contacts, as in a jump, the accelerometer carries the velocity on. The heading is the IMU's
and drifts with it. It is a pose source of its own (`--pose odometry`), and the reference that captured poses are checked
against.

**The filter**: the robot does not measure its velocity. A Kalman filter of position, velocity and accelerometer bias
(identical for the three axes) integrates the accelerometer at the rate of the low states and is corrected by the
captured positions. Roll and pitch are the IMU's; its heading, which drifts, is corrected towards the captured one. The
filter tracks the IMU rather than the base: their velocities differ by angular velocity times lever arm.
"""

from collections import deque
from dataclasses import dataclass

import mujoco
import numpy as np

from keystride import geometry
from keystride.deploy.pose.source import Mounting, Pose, Poses
from keystride.deploy.unitree.codec import LowReading
from keystride.geometry import GRAVITY
from keystride.robot.description import Floats, Robot


@dataclass(frozen=True)
class OdometryConfig:
    light: float = 15.0  # N of load below which a foot counts as swinging
    firm: float = 40.0  # N of load above which a foot has full weight
    outlier: float = 0.5  # m/s from the current velocity at which a foot's weight falls to a third
    least: float = 0.02  # smallest weight of an outlier, so that a wrong velocity can be corrected
    follow: float = 0.02  # s, time constant of the velocity at full weight
    height_follow: float = 0.05  # s, time constant of the height
    longest_flight: float = 0.6  # s without load on any foot after which the robot counts as lying
    longest_step: float = 0.05  # s, upper bound of the time step between low states


class LegOdometry:
    def __init__(self, robot: Robot, config: OdometryConfig | None = None) -> None:
        self.robot = robot
        self.config = config or OdometryConfig()
        self.position = np.zeros(3)  # m, in the IMU's level frame: x and y from the start, z over the ground
        self.velocity = np.zeros(3)  # m/s, same frame
        self.orientation = np.array([1.0, 0.0, 0.0, 0.0])  # the IMU's
        self.walked = 0.0  # m, length of the path over the ground
        self._now: float | None = None
        self._airborne = 0.0  # s
        self._grounded = False  # whether the height has been measured
        self._upper = np.array([leg.thigh_length for leg in robot.legs])
        self._lower = np.array([leg.calf_length for leg in robot.legs])
        self._side = np.array([leg.thigh_in_hip[1] for leg in robot.legs])
        self._root = np.array([leg.hip_in_base for leg in robot.legs])

    def update(self, now: float, low: LowReading) -> None:
        """Process a low state."""
        config = self.config
        dt = 0.0 if self._now is None else min(max(now - self._now, 0.0), config.longest_step)
        self._now = now
        self.orientation = low.quaternion / np.sqrt(low.quaternion @ low.quaternion)
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, self.orientation)
        matrix = flat.reshape(3, 3)  # level frame from base
        feet, jacobian = self.legs(low.joint_angles)
        load = self.load(jacobian, low.torques, matrix[2])
        seen = self._velocities(matrix, feet, jacobian, low)  # (4, 3)
        velocity = self.velocity + dt * (matrix @ low.accelerometer)
        velocity[2] -= dt * GRAVITY
        off = seen - velocity
        agrees = np.maximum(np.exp(-(off * off).sum(axis=1) / config.outlier**2), config.least)
        trust = np.minimum(np.maximum((load - config.light) / (config.firm - config.light), 0.0), 1.0) * agrees  # (4,)
        total = float(trust.sum())
        if total > 1e-9:
            share = trust / total
            velocity += (1.0 - np.exp(-dt * min(total, 1.0) / config.follow)) * (share @ off)
            self._rise(self.robot.foot_radius - float(share @ (feet @ matrix[2])), dt * min(total, 1.0))
        self._airborne = 0.0 if load.max() > config.light else self._airborne + dt
        if self._airborne > config.longest_flight:
            velocity = np.zeros(3)
        self.velocity = velocity
        step = velocity * dt
        self.position = self.position + step
        self.walked += float(np.hypot(step[0], step[1]))

    def _rise(self, height: float, dt: float) -> None:
        share = 1.0 - np.exp(-dt / self.config.height_follow) if self._grounded else 1.0
        self._grounded = True
        self.position[2] += share * (height - self.position[2])

    def legs(self, angles: Floats) -> tuple[Floats, Floats]:
        """Return the feet in the base frame, (4, 3), and their Jacobian with respect to hip, thigh and calf, (4, 3, 3)."""
        hip, thigh, calf = angles.reshape(4, 3).T
        bend = thigh + calf
        lower_x, lower_z = -self._lower * np.sin(bend), -self._lower * np.cos(bend)
        x, z = lower_x - self._upper * np.sin(thigh), lower_z - self._upper * np.cos(thigh)  # in the plane of the leg
        c, s = np.cos(hip), np.sin(hip)
        jacobian = np.zeros((4, 3, 3))
        y_hip, z_hip = c * self._side - s * z, s * self._side + c * z
        jacobian[:, 1, 0], jacobian[:, 2, 0] = -z_hip, y_hip
        jacobian[:, 0, 1], jacobian[:, 1, 1], jacobian[:, 2, 1] = z, s * x, -c * x
        jacobian[:, 0, 2], jacobian[:, 1, 2], jacobian[:, 2, 2] = lower_z, s * lower_x, -c * lower_x
        feet = np.empty((4, 3))
        feet[:, 0], feet[:, 1], feet[:, 2] = x, y_hip, z_hip
        return feet + self._root, jacobian

    def load(self, jacobian: Floats, torques: Floats, up: Floats) -> Floats:
        """Return the force of each foot on the ground, (4,) N, from the static equilibrium of its leg.

        Return zeros if a leg is stretched out exactly, as reported by a motor board that sends zeros.
        """
        try:
            force = np.linalg.solve(jacobian.transpose(0, 2, 1), torques.reshape(4, 3, 1))[..., 0]  # of foot on ground
        except np.linalg.LinAlgError:
            return np.zeros(4)
        return -(force @ up)

    def _velocities(self, matrix: Floats, feet: Floats, jacobian: Floats, low: LowReading) -> Floats:
        """Return the base velocity in the level frame that each foot implies if it rolls without slipping, (4, 3)."""
        rates = low.joint_velocities.reshape(4, 3)
        hip, bend = low.joint_angles[::3], rates[:, 1] + rates[:, 2]
        spin = np.empty((4, 3))  # angular velocity of each shank, base frame
        spin[:, 0], spin[:, 1], spin[:, 2] = rates[:, 0], np.cos(hip) * bend, np.sin(hip) * bend
        spin += low.gyroscope
        moving = (jacobian @ rates[:, :, None])[..., 0] + feet @ _skew(low.gyroscope).T
        return (self.robot.foot_radius * spin @ _skew(matrix[2]) - moving) @ matrix.T


def _skew(v: Floats) -> Floats:
    """Return the matrix of the cross product with v."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


class OdometryPoses(Poses):
    """Leg odometry as a pose source: needs no motion capture, but drifts slowly."""

    EVERY = 4  # low states per pose

    def __init__(self) -> None:
        super().__init__(Mounting())
        self._count = 0

    def wait(self, seconds: float) -> bool:
        return True  # poses are computed from the low states

    def follow(self, now: float, odometry: LegOdometry) -> None:
        self._count += 1
        if self._count % self.EVERY == 0:
            self.receive(odometry.position.copy(), odometry.orientation.copy(), time=now, sequence=self._count, now=now)


GRAVITY_VECTOR = np.array([0.0, 0.0, -geometry.GRAVITY])
HISTORY = 100  # predictions to keep, to compare a late pose with the one at its capture time


@dataclass(frozen=True)
class EstimatorConfig:
    imu_in_base: tuple[float, float, float] = (-0.02557, 0.0, 0.04232)  # m
    pose_latency: float = 0.008  # s from capture to arrival
    pose_noise: float = 0.002  # m
    acceleration_noise: float = 1.5  # m/s2, from one low state to the next
    bias_drift: float = 0.05  # m/s2 per root second
    yaw_share: float = 0.05  # share of the heading error that each pose corrects
    gate: float = 0.25  # m from the prediction within which a pose is accepted
    gate_speed: float = 2.0  # m/s by which the gate widens while no pose arrives
    longest_step: float = 0.05  # s, upper bound of the time step between accelerations


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
        self._state: Floats | None = None  # (3, 3) rows: position, velocity, acceleration bias; world frame
        self._spread = np.diag([1e-4, 1e-2, 1e-2])  # covariance of a row's entries
        self._yaw = 0.0  # heading of the IMU's zero direction in the world
        self._imu = np.array([1.0, 0.0, 0.0, 0.0])
        self._orientation = self._imu  # world from base
        self._matrix = np.eye(3)  # the same as a matrix
        self._gyro = np.zeros(3)
        self._now = 0.0
        self._past: deque[tuple[float, Floats, Floats]] = deque(maxlen=HISTORY)  # time, position - drawn, IMU
        self._drawn = np.zeros(3)  # sum of all position corrections, which also apply to the history

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
        seen = pose.position + geometry.rotate(pose.orientation, self._lever)  # (3,) of the IMU
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
        """Update the orientation from IMU and heading, with MuJoCo's functions because this runs 500 times per second."""
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
        """Return the IMU's position and orientation at a past time."""
        for at, position, imu in reversed(self._past):
            if at <= moment:
                return position + self._drawn, imu
        return present, self._imu
