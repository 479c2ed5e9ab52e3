"""Leg odometry: the robot's motion from its joints, motor torques and IMU alone.

A loaded foot does not move on the ground, so the leg's kinematics give the velocity of the base. The load comes from the
estimated motor torques, which every Go2 reports. Feet are spheres that roll as the shank turns. A foot that implies a
sudden change of velocity is slipping or swinging and gets little weight. Between contacts, as in a jump, the
accelerometer carries the velocity on. The heading is the IMU's and drifts with it.

It is a pose source of its own (`--pose odometry`), and the reference that motion-capture poses are checked against.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from keystride.deploy.pose.source import Mounting, Poses
from keystride.deploy.unitree.codec import LowReading
from keystride.geometry import GRAVITY
from keystride.robot.description import Floats, Robot


@dataclass(frozen=True)
class OdometryConfig:
    light: float = 15.0  # N below which a foot counts as swinging
    firm: float = 40.0  # N from which a foot has full weight
    outlier: float = 0.5  # m/s from the current velocity at which a foot's weight falls to a third
    least: float = 0.02  # weight that an outlier keeps, so that a wrong velocity does not last
    follow: float = 0.02  # s, time constant of the velocity with full weight
    height_follow: float = 0.05  # s, time constant of the height
    longest_flight: float = 0.6  # s without load on any foot after which the robot counts as lying still
    longest_step: float = 0.05  # s that one low state may stand for


class LegOdometry:
    def __init__(self, robot: Robot, config: OdometryConfig | None = None) -> None:
        self.robot = robot
        self.config = config or OdometryConfig()
        self.position = np.zeros(3)  # m, in the IMU's level frame: x and y from the start, z over the ground
        self.velocity = np.zeros(3)  # m/s, same frame
        self.orientation = np.array([1.0, 0.0, 0.0, 0.0])  # the IMU's
        self.walked = 0.0  # m over the ground
        self._now: float | None = None
        self._airborne = 0.0  # s
        self._grounded = False  # whether the height was ever measured
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
        x, z = lower_x - self._upper * np.sin(thigh), lower_z - self._upper * np.cos(thigh)  # in the leg's plane
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
        """Return the force of each foot on the ground, (4,) N, from the static equilibrium of its leg."""
        force = np.linalg.solve(jacobian.transpose(0, 2, 1), torques.reshape(4, 3, 1))[..., 0]  # of foot on ground
        return -(force @ up)

    def _velocities(self, matrix: Floats, feet: Floats, jacobian: Floats, low: LowReading) -> Floats:
        """Return the base velocity in the level frame that each foot implies if it rolls without slipping, (4, 3)."""
        rates = low.joint_velocities.reshape(4, 3)
        hip, bend = low.joint_angles[::3], rates[:, 1] + rates[:, 2]
        spin = np.empty((4, 3))  # of each shank, base frame
        spin[:, 0], spin[:, 1], spin[:, 2] = rates[:, 0], np.cos(hip) * bend, np.sin(hip) * bend
        spin += low.gyroscope
        moving = (jacobian @ rates[:, :, None])[..., 0] + feet @ _skew(low.gyroscope).T
        return (self.robot.foot_radius * spin @ _skew(matrix[2]) - moving) @ matrix.T


def _skew(v: Floats) -> Floats:
    """Return the matrix of the cross product with v."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


class OdometryPoses(Poses):
    """Leg odometry as the pose source, without motion capture and with slow drift."""

    EVERY = 4  # low states

    def __init__(self) -> None:
        super().__init__(Mounting())
        self._count = 0

    def wait(self, seconds: float) -> bool:
        return True  # poses follow from the low states

    def follow(self, now: float, odometry: LegOdometry) -> None:
        self._count += 1
        if self._count % self.EVERY == 0:
            self.receive(odometry.position.copy(), odometry.orientation.copy(), time=now, sequence=self._count, now=now)
