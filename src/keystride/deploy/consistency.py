"""Check the robot's sensors against each other and poses against the sensors, because a faulty sensor can send plausible values.

A board that hangs repeats its last state, and an IMU that hangs its last orientation. Angles are compared with speeds
over a short time: the joints' own, and the IMU's orientation with its gyroscope. The accelerometer is compared with
gravity, since no robot accelerates for long. A motor that repeats its last measurement while its target moves is frozen.
The torque that a motor reports must be the one that a recent command asks for: this is the only evidence that commands
arrive at all, and in the end that the robot really is in damping.

A filter that follows the poses cannot detect a pose that drifts slowly, because it drifts along. The IMU and the legs
do not: roll and pitch are compared with the IMU, the change of heading with the gyroscope and the distance covered with
leg odometry, each over a time in which the robot's own sensors are reliable.

A heading that is wrong from the start, because the markers were mounted or defined at an angle, changes with the gyroscope
as it should. It shows in two ways: the trunk sways in another direction by the poses than by the IMU, and the robot moves
in another direction than its legs.
"""

from collections import deque
from dataclasses import dataclass, field

import mujoco
import numpy as np

from keystride import geometry
from keystride.deploy.pose.estimator import LegOdometry
from keystride.deploy.pose.source import Pose
from keystride.deploy.safety import MotorCommand
from keystride.deploy.unitree.codec import LowReading
from keystride.geometry import GRAVITY
from keystride.robot.description import Floats, Robot

STATE_PERIOD = 0.002  # s between low states (500 Hz)
RATE_MEMORY = 0.5  # s, averaging time of the interval between low states
FROZEN_TURN = 0.05  # rad turned by the gyroscope; if the IMU's orientation has not changed by then, it counts as frozen
LONGEST_TURN = 0.05  # s, upper bound of the time step between low states


@dataclass
class StateFreshness:
    """When the robot's state last really changed: a board that hangs repeats the last one."""

    tick: int | None = None
    tick_at: float = -np.inf
    imu_at: float = -np.inf
    interval: float = STATE_PERIOD  # s, average time between states
    _imu: bytes = b""
    _orientation: bytes = b""
    _turned: Floats = field(default_factory=lambda: np.zeros(3))  # rad, by the gyroscope since the orientation changed

    def update(self, now: float, low: LowReading) -> bool:
        """Return whether this low state is newer than the last."""
        if self.tick is not None and not 0 < (low.tick - self.tick) % 2**32 < 2**31:
            return False
        gap = now - self.tick_at
        if np.isfinite(gap):
            self.interval += min(gap / RATE_MEMORY, 1.0) * (gap - self.interval)
        dt = min(gap, LONGEST_TURN)
        self.tick, self.tick_at = low.tick, now
        imu, orientation = low.gyroscope.tobytes() + low.accelerometer.tobytes(), low.quaternion.tobytes()
        self._turned = self._turned + low.gyroscope * dt if orientation == self._orientation else np.zeros(3)
        if imu != self._imu and float(self._turned @ self._turned) < FROZEN_TURN**2:
            self.imu_at = now
        self._imu, self._orientation = imu, orientation
        return True


@dataclass(frozen=True)
class ConsistencyConfig:
    memory: float = 0.3  # s over which angles are compared with speeds
    joint: float = 0.2  # rad by which a joint's angle may differ from its integrated speed
    turn: float = 0.25  # rad by which the orientation may differ from the integrated gyroscope
    settled: float = 1.0  # s over which the acceleration is averaged
    acceleration: float = 5.0  # m/s2, mean acceleration; a flight of 0.6 s reaches 4.4
    repeated: float = 0.1  # s for which a motor may repeat a measurement ...
    moved: float = 0.05  # rad ... if its target has moved by more than this
    longest_gap: float = 0.02  # s without a state beyond which integration is not possible
    clock_ahead: float = 0.5  # s by which the robot's clock may run ahead of this computer's ...
    clock_memory: float = 1.0  # s ... within this time; it may fall behind when states are lost or simulated
    calibration: int = 50  # number of states from which the unit of the tick is measured


class SensorConsistency:
    def __init__(self, config: ConsistencyConfig | None = None) -> None:
        self.config = config or ConsistencyConfig()
        self.joint = 0.0
        self.imu = 0.0
        self.frozen = False
        self.clock = 0.0
        self._ahead = 0.0  # s by which the robot's clock has recently run ahead
        self._now = 0.0
        self._counts: list[float] = []  # ticks per state, measured at the start
        self._unit = 0.0  # s per tick
        self._last: LowReading | None = None
        self._joint_error = np.zeros(12)  # rad
        self._turn_error = np.zeros(3)  # rad, base frame
        self._acceleration = np.zeros(3)  # m/s2, world
        self._repeated = np.zeros(12)  # s for which each motor has repeated its measurement
        self._target = np.zeros(12)  # rad, when it began to do so

    def update(self, now: float, low: LowReading, target: Floats | None, came: int = 1) -> None:
        """Process a valid low state; `target` is the last one sent, None without stiffness.

        `came` is the number of states received since the last one that was read, including this one.
        """
        dt = self._elapsed(low, came)
        self._compare_clocks(now, dt)
        last, self._last = self._last, low
        if last is None or not 0.0 < dt <= self.config.longest_gap:
            return
        self._compare_joints(dt, last, low)
        self._compare_imu(dt, last, low)
        self._find_frozen(dt, last, low, target)

    def _elapsed(self, low: LowReading, came: int) -> float:
        """Return the time between the last state and this one by the robot's clock, s; 0 until its unit is known.

        A tick may count states, milliseconds or anything else. Arrivals are irregular, and a simulated robot falls
        behind on a busy machine, so the clock of this computer is not used.
        """
        if self._last is None:
            return 0.0
        count = (low.tick - self._last.tick) % 2**32
        if len(self._counts) < self.config.calibration:
            self._counts.append(count / came)
            self._unit = STATE_PERIOD / float(np.median(self._counts))
            return 0.0
        return count * self._unit

    def _compare_clocks(self, now: float, dt: float) -> None:
        """Measure how far the robot's clock runs ahead, because wrong ticks would invalidate all other comparisons."""
        here, self._now = now - self._now, now
        ahead = self._ahead * np.exp(-max(here, 0.0) / self.config.clock_memory) + dt - here
        self._ahead = max(ahead, 0.0) if dt else 0.0
        self.clock = self._ahead / self.config.clock_ahead

    def _compare_joints(self, dt: float, last: LowReading, low: LowReading) -> None:
        turned = dt * (low.joint_velocities + last.joint_velocities) / 2
        error = self._joint_error + low.joint_angles - last.joint_angles - turned
        self._joint_error = error * np.exp(-dt / self.config.memory)
        self.joint = float(np.abs(error).max()) / self.config.joint

    def _compare_imu(self, dt: float, last: LowReading, low: LowReading) -> None:
        inverse, turn, moved, matrix = np.empty(4), np.empty(4), np.empty(3), np.empty(9)
        mujoco.mju_negQuat(inverse, last.quaternion)
        mujoco.mju_mulQuat(turn, inverse, low.quaternion)
        mujoco.mju_normalize4(turn)
        mujoco.mju_quat2Vel(moved, turn, 1.0)
        error = self._turn_error + moved - dt * (low.gyroscope + last.gyroscope) / 2
        self._turn_error = error * np.exp(-dt / self.config.memory)
        mujoco.mju_quat2Mat(matrix, low.quaternion)
        measured = matrix.reshape(3, 3) @ low.accelerometer
        measured[2] -= GRAVITY
        self._acceleration = self._acceleration + (measured - self._acceleration) * dt / self.config.settled
        self.imu = max(
            float(np.sqrt(error @ error)) / self.config.turn,
            float(np.sqrt(self._acceleration @ self._acceleration)) / self.config.acceleration,
        )

    def _find_frozen(self, dt: float, last: LowReading, low: LowReading, target: Floats | None) -> None:
        if target is None:
            self._repeated, self.frozen = np.zeros(12), False
            return
        same = (low.joint_angles == last.joint_angles) & (low.joint_velocities == last.joint_velocities)
        same &= low.torques == last.torques
        self._target = np.where(self._repeated > 0.0, self._target, target)
        self._repeated = np.where(same, self._repeated + dt, 0.0)
        moved = np.abs(target - self._target) > self.config.moved
        self.frozen = bool(((self._repeated > self.config.repeated) & moved).any())


@dataclass(frozen=True)
class ObedienceConfig:
    commands: int = 20  # number of recent commands that may be in force: those of the last 40 ms
    memory: float = 0.2  # s over which the difference in torque is averaged
    longest_step: float = 0.05  # s, upper bound of the time step between low states


class MotorObedience:
    """Compare the torques that the motors report with those that the last commands ask for at the measured angles."""

    def __init__(self, robot: Robot, config: ObedienceConfig | None = None) -> None:
        self.config = config or ObedienceConfig()
        self.error = 0.0  # N m by which the worst motor's torque lies outside what the commands ask for, averaged
        self._limit = robot.torque_limit
        self._errors = np.zeros(12)
        self._commands = np.zeros((self.config.commands, 3, 12))  # ring buffer of targets, stiffnesses and dampings
        self._count = 0
        self._now: float | None = None

    def sent(self, command: MotorCommand) -> None:
        row = self._commands[self._count % self.config.commands]
        row[0], row[1], row[2] = command.target, command.stiffness, command.damping
        self._count += 1

    def update(self, now: float, low: LowReading) -> None:
        """Process a low state. A torque that is not a number makes the error infinite."""
        dt = 0.0 if self._now is None else min(max(now - self._now, 0.0), self.config.longest_step)
        self._now = now
        if self._count == 0:
            return
        commands = self._commands[: self._count]
        asked = commands[:, 1] * (commands[:, 0] - low.joint_angles) - commands[:, 2] * low.joint_velocities
        asked = np.clip(asked, -self._limit, self._limit)  # (N, 12) N m
        off = np.maximum(np.maximum(asked.min(axis=0) - low.torques, low.torques - asked.max(axis=0)), 0.0)
        if not np.isfinite(off).all():
            self.error = np.inf
            return
        self._errors = self._errors + dt / self.config.memory * (off - self._errors)
        self.error = float(self._errors.max())


@dataclass(frozen=True)
class MonitorConfig:
    tilt: float = 12.0  # degrees between the pose's vertical and the IMU's
    heading: float = 15.0  # degrees by which the heading may differ from the gyroscope's
    heading_memory: float = 10.0  # s, time constant for attributing heading differences to drift of the IMU
    distance: float = 0.2  # m by which the position may differ from leg odometry
    distance_memory: float = 1.0  # s, time constant for attributing position differences to odometry drift


@dataclass(frozen=True)
class _Reference:
    """The last accepted pose and the robot's own measurements at that time."""

    time: float
    position: Floats  # (3,) from the pose
    odometry: Floats  # (3,) position by leg odometry
    turn: float  # rad from the IMU's heading to the pose's, low-pass filtered
    drift: Floats  # (3,) m, pose minus odometry, decaying


class PoseMonitor:
    def __init__(self, config: MonitorConfig | None = None) -> None:
        self.config = config or MonitorConfig()
        self._reference: _Reference | None = None

    def restart(self) -> None:
        """Accept the next pose at any position and heading."""
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
        walked = geometry.rotate_yaw(np.asarray(last.turn), odometry.position - last.odometry)
        drift = last.drift * np.exp(-dt / self.config.distance_memory) + (pose.position - last.position - walked)
        distance = float(np.sqrt(drift @ drift))
        if distance > self.config.distance:
            return f"position is {distance:.2f} m off leg odometry"
        followed = last.turn + off * (1.0 - np.exp(-dt / self.config.heading_memory))
        self._reference = _Reference(now, pose.position, odometry.position, followed, drift)
        return ""


@dataclass(frozen=True)
class HeadingConfig:
    settled: float = 3.0  # s, averaging time of the mean tilt, relative to which swaying is measured
    memory: float = 1.5  # s over which swaying is compared
    sway: float = 0.4  # degrees of swaying below which its direction is unknown
    sway_error: tuple[float, float] = (12.0, 8.0)  # degrees, and degrees divided by those of swaying
    way: tuple[float, float] = (0.04, 0.4)  # m, shortest and longest stretch whose direction is compared
    way_seconds: float = 3.0  # s after which a new stretch begins
    way_error: tuple[float, float] = (18.0, 0.03)  # degrees, and m of lateral error
    history: int = 100  # low states, to compare a late pose with the time it was captured


class HeadingCheck:
    """Compare the directions in which the robot sways and moves according to the poses and according to its own sensors."""

    def __init__(self, config: HeadingConfig | None = None) -> None:
        self.config = config or HeadingConfig()
        self.problem = ""  # what is wrong with the heading; set until the poses are right again
        self._past: deque[tuple[float, Floats]] = deque(maxlen=self.config.history)  # time, the IMU's orientation
        self._now = -np.inf
        self._count = 0  # poses
        self._mean = np.zeros((2, 2))  # tilt of the IMU and of the poses
        self._product = np.zeros(2)  # dot and cross product of the two
        # Time, pose, odometry and turn at the beginning of the stretch whose direction is compared.
        self._stretch: tuple[float, Floats, Floats, float] | None = None

    def follow(self, now: float, orientation: Floats) -> None:
        """Process the IMU's orientation of a low state."""
        self._past.append((now, orientation))

    def restart(self) -> None:
        """Measure the direction of motion from the next pose on: the robot may have been carried."""
        self._stretch = None

    def update(self, now: float, pose: Pose, odometry: LegOdometry, latency: float) -> None:
        """Process a pose that was accepted and took `latency` seconds."""
        imu = next((imu for at, imu in reversed(self._past) if at <= now - latency), odometry.orientation)
        sway, way = self._sway_angle(now, pose, imu), self._motion_angle(now, pose, odometry)
        self.problem = ""
        if sway:
            self.problem = f"the robot sways {sway:.0f} degrees off the direction of the IMU"
        elif way:
            self.problem = f"the robot moves {way:.0f} degrees off the direction of its legs"

    def _sway_angle(self, now: float, pose: Pose, imu: Floats) -> float:
        """Return the angle between the two directions of swaying, degrees; 0 if it is small or unknown."""
        config = self.config
        tilt = np.stack([geometry.projected_gravity(imu)[:2], geometry.projected_gravity(pose.orientation)[:2]])
        dt, self._now = min(max(now - self._now, 0.0), 0.1), now
        self._count += 1
        share = max(dt / config.settled, 1.0 / self._count)  # at first the mean of all, since single poses are noisy
        self._mean = self._mean + share * (tilt - self._mean)
        (ax, ay), (bx, by) = tilt - self._mean
        self._product += min(dt / config.memory, 1.0) * (
            np.array([ax * bx + ay * by, ax * by - ay * bx]) - self._product
        )
        sway = float(np.degrees(np.sqrt(np.linalg.norm(self._product))))  # independent noise averages out
        off = float(np.degrees(abs(np.arctan2(self._product[1], self._product[0]))))
        base, more = config.sway_error
        return off if sway > config.sway and off > base + more / sway else 0.0

    def _motion_angle(self, now: float, pose: Pose, odometry: LegOdometry) -> float:
        """Return the angle between the two directions of motion, degrees; 0 if it is small or unknown."""
        config = self.config
        if self._stretch is None:
            turn = float(geometry.yaw_of(pose.orientation) - geometry.yaw_of(odometry.orientation))
            self._stretch = (now, pose.position, odometry.position.copy(), turn)
        begun, place, origin, turn = self._stretch
        moved = (pose.position - place)[:2]
        walked = geometry.rotate_yaw(np.asarray(turn), odometry.position - origin)[:2]
        shorter = min(float(np.hypot(*moved)), float(np.hypot(*walked)))
        if shorter > config.way[1] or now - begun > config.way_seconds:
            self._stretch = None
        if shorter < config.way[0]:
            return 0.0
        cross, dot = walked[0] * moved[1] - walked[1] * moved[0], float(walked @ moved)
        off = float(np.degrees(abs(np.arctan2(cross, dot))))
        base, aside = config.way_error
        return off if off > base + np.degrees(np.arctan2(aside, shorter)) else 0.0


def _angle_between_verticals(a: Floats, b: Floats) -> float:
    """Return the angle between the vertical axes of two orientations, degrees."""
    cosine = float(geometry.projected_gravity(a) @ geometry.projected_gravity(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
