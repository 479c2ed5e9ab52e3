"""The layer between policy and motors: every command that is sent comes from `Safety.command`."""

from dataclasses import dataclass, field

import numpy as np

from keystride.deploy.fault_checks import CHECKS, Check, DeployState, Event, Limits, Reading, after
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet

RAMP_STIFFNESS, RAMP_DAMPING = 60.0, 3.0  # N m/rad, N m s/rad: enough to lift the trunk off the ground without sagging
BRAKE = 3.0  # N m s/rad, in damping

FOLDED_LEG = (0.0, 1.36, -2.65)  # rad: lying, feet under the hips
RAMP_SPEED = 0.8  # rad/s, mean speed of the joint that moves farthest
SHORTEST_RAMP = 0.3  # s
BOW = 0.02  # m by which the front is lowered and the rear raised on the way up

STREAM_PERIOD = 0.002  # s between commands
LONGEST_STEP = 2 * STREAM_PERIOD  # s, upper bound of the time step in rate limits, even after a pause
STOPPED_BY_OPERATOR = "stopped by the operator"


@dataclass(frozen=True)
class Gains:
    stiffness: Floats  # (12,) N m/rad
    damping: Floats  # (12,) N m s/rad


@dataclass(frozen=True)
class MotorCommand:
    """Joint targets with gains, in the robot's joint order. Target speed and feed-forward torque are zero."""

    target: Floats  # (12,) rad
    stiffness: Floats
    damping: Floats


def uniform(stiffness: float, damping: float) -> Gains:
    return Gains(np.full(12, stiffness), np.full(12, damping))


RAMP_GAINS = uniform(RAMP_STIFFNESS, RAMP_DAMPING)


def brake() -> MotorCommand:
    """Return a command without stiffness that brakes the joints."""
    return MotorCommand(np.zeros(12), np.zeros(12), np.full(12, BRAKE))


@dataclass(frozen=True)
class Ramp:
    """A motion through postures, each reached with zero speed after its duration."""

    start: Floats
    stops: tuple[tuple[Floats, float], ...]

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.stops)

    def at(self, t: float) -> Floats:
        posture = self.start
        for stop, seconds in self.stops:
            if t < seconds:
                return posture + smooth(t / seconds) * (stop - posture)
            posture, t = stop, t - seconds
        return posture


def through(start: Floats, *postures: Floats) -> Ramp:
    """Return a ramp through the postures, each part as long as its farthest joint needs."""
    stops, here = [], start
    for posture in postures:
        stops.append((posture, max(SHORTEST_RAMP, float(np.abs(posture - here).max()) / RAMP_SPEED)))
        here = posture
    return Ramp(start, tuple(stops))


def bowed(robot: Robot) -> Floats:
    """Return the stance pitched forward by a few degrees.

    On its way up the robot goes through it, so that the heading of the poses can be checked before it walks: the direction
    in which it tilts must be the same by the poses and by the IMU.
    """
    feet = feet_from_joints(robot, robot.stance)  # (4, 3) base
    feet[:, 2] += BOW * np.sign(feet[:, 0])
    return joints_from_feet(robot, feet)[0]


def smooth(x: float) -> float:
    """Return a blend from 0 to 1 with zero speed and acceleration at both ends."""
    x = min(max(x, 0.0), 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x * x)


def hold_back(
    target: Floats, last: Floats, *, dt: float, gains: Gains, reading: Reading, limits: Limits, robot: Robot
) -> Floats:
    """Clip a target to the rate, then to what the motors' torque allows, and last to the joint range.

    A fast joint near the end of its range cannot satisfy all three: the range takes precedence over the torque, which
    the motors limit by themselves, and the torque over the rate.
    """
    lower, upper = robot.lower + limits.joint_margin, robot.upper - limits.joint_margin
    step = limits.target_rate * dt
    stepped = np.clip(np.clip(target, lower, upper), last - step, last + step)
    # stiffness * (target - angle) - damping * speed stays within the limit
    softness = 1.0 / np.maximum(gains.stiffness, 1e-3)
    centre = reading.joint_angles + gains.damping * reading.joint_velocities * softness
    reach = limits.torque_share * robot.torque_limit * softness
    return np.clip(np.clip(stepped, centre - reach, centre + reach), lower, upper)


def approach(gains: Gains, wanted: Gains, *, dt: float, limits: Limits) -> Gains:
    """Return gains moved from `gains` towards `wanted` by no more than the allowed rate."""
    stiffness, damping = (rate * dt for rate in limits.gain_rate)
    return Gains(
        np.clip(wanted.stiffness, gains.stiffness - stiffness, gains.stiffness + stiffness),
        np.clip(wanted.damping, gains.damping - damping, gains.damping + damping),
    )


@dataclass
class Safety:
    robot: Robot
    gains: Gains  # the policy's
    limits: Limits = field(default_factory=Limits)
    checks: tuple[Check, ...] = CHECKS
    state: DeployState = DeployState.IDLE
    reason: str = ""  # why the robot was stopped: the first fault
    later: list[str] = field(default_factory=list)  # faults after the first
    cause: str = ""  # cause of the last change of state; empty if nothing went wrong
    finished: bool = False  # whether the script reached its end
    _ramp: Ramp | None = None
    _since: float = 0.0
    _before: float | None = None
    _target: Floats | None = None  # the last one sent
    _gains: Gains = field(default_factory=lambda: uniform(0.0, BRAKE))  # the last ones sent
    _failed: dict[str, float] = field(default_factory=dict)  # time since which each check has failed

    @property
    def played(self) -> bool:
        """Whether the script reached its end and nothing went wrong afterwards."""
        return self.finished and not self.reason

    def process(self, event: Event, now: float, joints: Floats, reason: str = "") -> bool:
        """Process an event; return whether it changed the state."""
        before, state = self.state, after(self.state, event)
        if state is before:
            self._note_later(reason)
            return False
        self.state, self._since, self.cause = state, now, reason
        self.finished = self.finished or event is Event.FINISH
        if reason and self.reason in ("", STOPPED_BY_OPERATOR):
            self.reason = reason
        self._note_later(reason)
        self._ramp = self._new_ramp(joints, before)
        return True

    def _note_later(self, reason: str) -> None:
        if reason and reason not in (self.reason, STOPPED_BY_OPERATOR, *self.later):
            self.later.append(reason)

    def command(self, now: float, reading: Reading, policy_target: Floats | None) -> MotorCommand:
        """Run the fault checks, advance the state and return the command to send."""
        dt = 0.0 if self._before is None else min(max(now - self._before, 0.0), LONGEST_STEP)
        self._before = now
        self._check(now, reading)
        self._advance(now, reading)
        if self.state in (DeployState.IDLE, DeployState.DAMPING):
            return brake()
        return self._drive(now, dt, reading, policy_target)

    def ramp_lag(self, now: float, joints: Floats) -> float:
        """Return the distance between the ramp's target and the joint farthest from it, rad; 0 without a ramp."""
        wanted = self._ramp_target(now)
        return 0.0 if wanted is None else float(np.abs(wanted - joints).max())

    def _check(self, now: float, reading: Reading) -> None:
        for check in self.checks:
            if self.state not in check.states or not check.failed(reading, self.limits, self.robot):
                self._failed.pop(check.name, None)
                continue
            since = self._failed.setdefault(check.name, now)
            if now - since >= check.patience:
                self.process(check.leads_to, now, reading.joint_angles, check.name)

    def _advance(self, now: float, reading: Reading) -> None:
        if self._ramp is None or now - self._since < self._ramp.seconds:
            return
        if self.state is DeployState.STANDING_UP:
            self.process(Event.UP, now, reading.joint_angles)
        elif self.state is DeployState.STOPPING:
            self.process(Event.DOWN, now, reading.joint_angles)

    def _drive(self, now: float, dt: float, reading: Reading, policy_target: Floats | None) -> MotorCommand:
        running = self.state is DeployState.RUNNING
        self._gains = approach(self._gains, self.gains if running else RAMP_GAINS, dt=dt, limits=self.limits)
        wanted = policy_target if running else self._ramp_target(now)
        last = reading.joint_angles if self._target is None else self._target
        if (
            wanted is None or not np.isfinite(wanted).all()
        ):  # missing or not finite; the "policy too late" check stops the robot
            wanted = last
        self._target = hold_back(
            wanted, last, dt=dt, gains=self._gains, reading=reading, limits=self.limits, robot=self.robot
        )
        return MotorCommand(self._target, self._gains.stiffness, self._gains.damping)

    def _ramp_target(self, now: float) -> Floats | None:
        return None if self._ramp is None else self._ramp.at(now - self._since)

    def _new_ramp(self, joints: Floats, before: DeployState) -> Ramp | None:
        folded = np.tile(FOLDED_LEG, 4)
        stance = self.robot.stance
        if self.state is DeployState.STANDING_UP:
            return through(joints.copy(), folded, bowed(self.robot), stance)
        if self.state is DeployState.READY:
            return Ramp(stance, ())
        if self.state is DeployState.STOPPING:
            start = joints.copy() if self._target is None else self._target  # avoids a step in the torque
            if before is DeployState.STANDING_UP:  # a robot that was asked to stop must not rise first
                return through(start, folded)
            return through(start, stance, stance, folded)
        return None
