"""Check captured poses against the robot's own sensors.

A filter that follows the poses cannot detect a pose that drifts slowly, because it drifts along. The IMU and the legs do
not: roll and pitch are compared with the IMU, the change of heading with the gyroscope and the distance covered with leg
odometry, each over a time in which the robot's own sensors are reliable.
"""

from dataclasses import dataclass

import numpy as np

from keystride import geometry
from keystride.deploy.pose.odometry import LegOdometry
from keystride.deploy.pose.source import Pose
from keystride.robot.description import Floats


@dataclass(frozen=True)
class MonitorConfig:
    tilt: float = 12.0  # degrees between the pose's vertical and the IMU's
    heading: float = 15.0  # degrees by which the heading may differ from the gyroscope's
    heading_memory: float = 10.0  # s over which a difference in heading is put down to the IMU's own drift
    distance: float = 0.2  # m by which the position may differ from leg odometry
    distance_memory: float = 1.0  # s over which a difference in position is put down to the odometry's own drift


@dataclass(frozen=True)
class _Reference:
    """The last accepted pose and the robot's own measurements at that time."""

    time: float
    position: Floats  # (3,) of the pose
    odometry: Floats  # (3,) position by leg odometry
    turn: float  # rad from the IMU's heading to the pose's, low-pass filtered
    drift: Floats  # (3,) m, pose minus odometry, decaying


class PoseMonitor:
    def __init__(self, config: MonitorConfig | None = None) -> None:
        self.config = config or MonitorConfig()
        self._reference: _Reference | None = None

    def restart(self) -> None:
        """Accept the next pose whatever its position and heading."""
        self._reference = None

    def contradiction(self, now: float, pose: Pose, odometry: LegOdometry) -> str:
        """Return what contradicts the pose, or an empty string; only accepted poses update the reference."""
        tilt = _angle_between_verticals(pose.orientation, odometry.orientation)
        if tilt > self.config.tilt:
            return f"tilt is {tilt:.0f} degrees off the IMU"
        turn = float(geometry.yaw_of(pose.orientation) - geometry.yaw_of(odometry.orientation))
        last = self._reference
        if last is None:
            self._reference = _Reference(now, pose.position, odometry.position, turn, np.zeros(3))
            return ""
        dt = max(now - last.time, 0.0)
        off = float(geometry.wrap(np.asarray(turn - last.turn)))
        if abs(off) > np.radians(self.config.heading):
            return f"heading is {np.degrees(abs(off)):.0f} degrees off the gyroscope"
        felt = geometry.rotate_yaw(np.asarray(last.turn), odometry.position - last.odometry)
        drift = last.drift * np.exp(-dt / self.config.distance_memory) + (pose.position - last.position - felt)
        distance = float(np.sqrt(drift @ drift))
        if distance > self.config.distance:
            return f"position is {distance:.2f} m off leg odometry"
        followed = last.turn + off * (1.0 - np.exp(-dt / self.config.heading_memory))
        self._reference = _Reference(now, pose.position, odometry.position, followed, drift)
        return ""


def _angle_between_verticals(a: Floats, b: Floats) -> float:
    """Return the angle between the vertical axes of two orientations, degrees."""
    cosine = float(geometry.projected_gravity(a) @ geometry.projected_gravity(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
