"""Check captured poses against what the robot feels by itself.

A filter that is drawn to the poses cannot tell a pose that lies slowly: it goes along. The IMU and the legs do not.
Roll and pitch are compared with the IMU's, the change of heading with the gyroscope's, and the distance covered with
leg odometry. Each is compared over a time in which the robot's own sensors can be relied on.
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
    heading: float = 15.0  # degrees by which a heading may leave what the gyroscope says
    heading_memory: float = 10.0  # s after which a difference in heading counts as the IMU's own drift
    distance: float = 0.2  # m by which a position may leave what the legs say
    distance_memory: float = 1.0  # s after which a difference in distance counts as the odometry's own drift


@dataclass(frozen=True)
class _Reference:
    """The last believed pose and what the robot felt then."""

    time: float
    position: Floats  # (3,) of the pose
    odometry: Floats  # (3,) position by leg odometry
    turn: float  # rad from the IMU's heading to the pose's, followed slowly
    drift: Floats  # (3,) m, pose minus odometry, forgotten slowly


class PoseMonitor:
    def __init__(self, config: MonitorConfig | None = None) -> None:
        self.config = config or MonitorConfig()
        self._reference: _Reference | None = None

    def restart(self) -> None:
        """Believe the next pose whatever it says of place and heading."""
        self._reference = None

    def contradiction(self, now: float, pose: Pose, odometry: LegOdometry) -> str:
        """Return what speaks against the pose, or an empty string; only a believed pose is remembered."""
        tilt = _angle_between_verticals(pose.orientation, odometry.orientation)
        if tilt > self.config.tilt:
            return f"tilt is {tilt:.0f} degrees off the IMU's"
        turn = float(geometry.yaw_of(pose.orientation) - geometry.yaw_of(odometry.orientation))
        last = self._reference
        if last is None:
            self._reference = _Reference(now, pose.position, odometry.position, turn, np.zeros(3))
            return ""
        dt = max(now - last.time, 0.0)
        off = float(geometry.wrap(np.asarray(turn - last.turn)))
        if abs(off) > np.radians(self.config.heading):
            return f"heading is {np.degrees(abs(off)):.0f} degrees off the gyroscope's"
        felt = geometry.rotate_yaw(np.asarray(last.turn), odometry.position - last.odometry)
        drift = last.drift * np.exp(-dt / self.config.distance_memory) + (pose.position - last.position - felt)
        distance = float(np.sqrt(drift @ drift))
        if distance > self.config.distance:
            return f"position is {distance:.2f} m off the legs'"
        followed = last.turn + off * (1.0 - np.exp(-dt / self.config.heading_memory))
        self._reference = _Reference(now, pose.position, odometry.position, followed, drift)
        return ""


def _angle_between_verticals(a: Floats, b: Floats) -> float:
    """Degrees between the directions that two orientations hold for down."""
    cosine = float(geometry.projected_gravity(a) @ geometry.projected_gravity(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
