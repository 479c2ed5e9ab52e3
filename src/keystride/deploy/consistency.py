"""Check the robot's sensors against each other: a sensor that lies still sends plausible values.

Angles are compared with speeds over a short time: the joints' own, and the IMU's orientation with its gyroscope. The
accelerometer is compared with gravity, since no robot accelerates for long. A motor that repeats its last measurement
while its target moves is frozen. Each figure is a share of what is allowed, so a value above 1 is a contradiction.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from keystride.deploy.unitree.codec import LowReading
from keystride.geometry import GRAVITY
from keystride.robot.description import Floats

TICK_OF_STATES, TICK_OF_TIME = 0.002, 0.001  # s: a tick counts either states or milliseconds


@dataclass(frozen=True)
class ConsistencyConfig:
    memory: float = 0.3  # s over which angles are compared with speeds
    joint: float = 0.2  # rad by which a joint's angle may differ from its integrated speed
    turn: float = 0.25  # rad by which the orientation may differ from the integrated gyroscope
    settled: float = 1.0  # s over which the acceleration is averaged
    acceleration: float = 5.0  # m/s2, mean acceleration; a flight of 0.6 s reaches 4.4
    repeated: float = 0.1  # s for which a motor may repeat a measurement ...
    moved: float = 0.05  # rad ... if its target has moved by more than this
    longest_gap: float = 0.02  # s without a state over which nothing can be integrated
    calibration: int = 50  # states before the unit of their tick is known


class SensorConsistency:
    def __init__(self, config: ConsistencyConfig | None = None) -> None:
        self.config = config or ConsistencyConfig()
        self.joint = 0.0
        self.imu = 0.0
        self.frozen = False
        self._counts: list[int] = []  # ticks from one state to the next, at first
        self._unit = TICK_OF_TIME  # s per tick
        self._last: LowReading | None = None
        self._joint_error = np.zeros(12)  # rad
        self._turn_error = np.zeros(3)  # rad, base frame
        self._acceleration = np.zeros(3)  # m/s2, world
        self._repeated = np.zeros(12)  # s for which each motor has repeated its measurement
        self._target = np.zeros(12)  # rad, when it began to do so

    def update(self, low: LowReading, target: Floats | None) -> None:
        """Process a valid low state; `target` is the last one sent, None without stiffness."""
        dt = self._elapsed(low)
        last, self._last = self._last, low
        if last is None or not 0.0 < dt <= self.config.longest_gap:
            return
        self._compare_joints(dt, last, low)
        self._compare_imu(dt, last, low)
        self._find_frozen(dt, last, low, target)

    def _elapsed(self, low: LowReading) -> float:
        """Return the time between the last state and this one by the robot's clock, s; 0 until its unit is known.

        Arrivals are irregular, and a simulated robot falls behind on a busy machine.
        """
        if self._last is None:
            return 0.0
        count = (low.tick - self._last.tick) % 2**32
        if len(self._counts) < self.config.calibration:
            self._counts.append(count)
            self._unit = TICK_OF_TIME if np.median(self._counts) > 1.0 else TICK_OF_STATES
            return 0.0
        return count * self._unit

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
        felt = matrix.reshape(3, 3) @ low.accelerometer
        felt[2] -= GRAVITY
        self._acceleration = self._acceleration + (felt - self._acceleration) * dt / self.config.settled
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
