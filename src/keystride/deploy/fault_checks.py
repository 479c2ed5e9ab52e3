"""The states of a deployment, and the fault checks that run before every command.

Two tables define them, and the documentation prints both: which event leads from one state to another, and which check
applies in which states, for how long a fault must last, and which event it causes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from keystride.robot.description import Floats, Robot


class DeployState(Enum):
    IDLE = "idle"  # no stiffness, joints braked
    STANDING_UP = "standing up"  # on a ramp from the present joint angles
    READY = "ready"  # standing, waiting for the operator
    RUNNING = "running"  # following the policy's targets
    STOPPING = "stopping"  # on a ramp to the stance, then down
    DAMPING = "damping"  # no stiffness, joints braked; the final state


class Event(Enum):
    STAND = "stand"  # the operator asks to stand up
    UP = "up"  # the ramp to the stance is finished
    START = "start"  # the operator asks to play
    FINISH = "finish"  # the script has been played
    STOP = "stop"  # from the operator, or a fault after which the robot can still lie down under control
    DOWN = "down"  # the ramp to the ground is finished
    FAULT = "fault"  # an emergency stop, or any other fault


# An event without an entry changes nothing.
TRANSITIONS: dict[tuple[DeployState, Event], DeployState] = {
    (DeployState.IDLE, Event.STAND): DeployState.STANDING_UP,
    (DeployState.STANDING_UP, Event.UP): DeployState.READY,
    (DeployState.READY, Event.START): DeployState.RUNNING,
    (DeployState.RUNNING, Event.FINISH): DeployState.STOPPING,
    (DeployState.STANDING_UP, Event.STOP): DeployState.STOPPING,
    (DeployState.READY, Event.STOP): DeployState.STOPPING,
    (DeployState.RUNNING, Event.STOP): DeployState.STOPPING,
    (DeployState.IDLE, Event.STOP): DeployState.DAMPING,
    (DeployState.STOPPING, Event.DOWN): DeployState.DAMPING,
    **{(state, Event.FAULT): DeployState.DAMPING for state in DeployState},
}


def after(state: DeployState, event: Event) -> DeployState:
    """Return the state that follows an event."""
    return TRANSITIONS.get((state, event), state)


def transition_table() -> str:
    """Return a Markdown table with a row per state and a column per event; a dot where nothing changes."""
    rows = [["state", *(event.value for event in Event)], ["---"] * (len(Event) + 1)]
    for state in DeployState:
        cells = (after(state, event) for event in Event)
        rows.append([state.value, *("." if cell is state else cell.value for cell in cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


BATTERY_FAULTS = frozenset({7, 11, 12, 13})  # charging (a cable!), alarm, waiting for a reset, resetting


@dataclass(frozen=True)
class Limits:
    """Limits beyond which the robot is stopped or a target is clipped."""

    joint_margin: float = 0.02
    """Targets stay this far inside the joints' range, rad."""
    target_rate: float = 60.0
    """Targets move no faster than this, rad/s."""
    gain_rate: tuple[float, float] = (200.0, 15.0)
    """Stiffness and damping change no faster than this, N m/rad and N m s/rad per second."""
    torque_share: float = 1.0
    """Share of each motor's peak torque that a target may ask for."""
    ramp_lag: float = 0.6
    """Distance of a joint from its ramp target, rad, that is a fault if it lasts."""
    torque_error: float = 6.0
    """Mean difference between a motor's torque and the commanded one, N m, that is a fault if it lasts."""
    joint_overrun: float = 0.1
    """Measured distance of a joint from its range, rad, that is a fault if it lasts."""
    joint_speed_share: float = 1.3
    """Measured share of each joint's rated speed that is a fault if it lasts."""
    joint_speed_mean: float = 0.85
    """The same for the mean over SPEED_MEMORY: a gait has fast moments, whereas a runaway joint stays fast."""
    torque_excess: float = 1.3
    """Measured share of each motor's peak torque that is a fault if it lasts."""
    stall_torque: float = 0.9
    """Share of the peak torque above which a joint that does not move counts as stalled."""
    stall_speed: float = 0.3
    """Speed below which a joint counts as not moving, rad/s."""
    lost_packets: float = 20.0
    """Number of packets that a motor may lose within a second."""
    tilt: float = 60.0
    """Angle between the trunk's and the world's vertical, degrees."""
    height: tuple[float, float] = (0.10, 0.90)
    """Range of the base height over the ground while running, m."""
    fence: float = np.inf
    """Distance from where the script began, m."""
    state_age: float = 0.10
    """Time without a new low state, s."""
    pose_age: float = 0.20
    """Time without an accepted pose while running, s."""
    policy_age: float = 0.10
    """Time without new targets while running, s."""
    state_interval: float = 0.015
    """Mean time between low states, s."""
    command_gap: float = 0.05
    """Time between two commands, s."""
    battery: float = 10.0
    """Lowest battery charge, percent."""
    motor_temperature: float = 85.0
    """Highest temperature of a motor, degrees Celsius."""


@dataclass(frozen=True)
class Reading:
    """The values that the checks look at."""

    state_age: float  # s since the last new low state
    state_valid: bool  # whether all of its values are finite and its quaternion has unit length
    imu_age: float  # s for which low states have repeated the IMU's values
    pose_age: float  # s since the last accepted pose
    pose_silence: float  # s since the pose source last sent anything
    policy_age: float  # s since the policy's last targets
    command_gap: float  # s between the last command and this one
    joint_angles: Floats  # (12,) rad
    joint_velocities: Floats  # (12,) rad/s
    mean_speed: Floats  # (12,) share of the rated speed, smoothed
    torques: Floats  # (12,) N m, estimated by the motors
    motors_on: bool  # whether all motors report that they are enabled
    lost_packets: float  # by the worst motor within a second
    down: Floats  # (3,) unit vector downwards, base frame
    height: float  # m
    distance: float  # m over the ground from where the script began
    battery: float  # percent
    battery_status: int
    motor_temperature: float  # degrees Celsius, the hottest
    state_interval: float = 0.0  # s, average time between low states
    ramp_lag: float = 0.0  # rad between a ramp's target and the joint farthest from it; 0 without a ramp
    torque_error: float = 0.0  # N m, mean difference between reported and commanded torque of the worst motor
    other_writer: bool = False  # another program sends low commands
    other_robot: bool = False  # another robot sends low states
    heading_wrong: bool = False  # whether the directions in which the robot sways and moves contradict the poses
    motion_service: str = ""  # the robot's motion service, if it has taken the motors again
    motor_frozen: bool = False  # a motor repeats its measurement although its target moves
    joint_conflict: float = 0.0  # between joint angles and speeds, as a share of the limit
    imu_conflict: float = 0.0  # between the IMU's own sensors, as a share of the limit
    clock_conflict: float = 0.0  # between the robot's clock and this computer's, as a share of the limit
    emergency: str | None = None  # cause of an emergency stop


@dataclass(frozen=True)
class Check:
    name: str
    leads_to: Event
    states: frozenset[DeployState]
    failed: Callable[[Reading, Limits, Robot], bool]
    patience: float = 0.0  # s for which the fault must last


ALWAYS = frozenset(DeployState)
POWERED = frozenset({DeployState.STANDING_UP, DeployState.READY, DeployState.RUNNING, DeployState.STOPPING})
RISING = frozenset({DeployState.IDLE, DeployState.STANDING_UP, DeployState.READY, DeployState.RUNNING})
WHILE_RUNNING = frozenset({DeployState.RUNNING})


def _tilted(r: Reading, limits: Limits, robot: Robot) -> bool:
    return not -r.down[2] >= np.cos(np.radians(limits.tilt))


def _overrun(r: Reading, limits: Limits, robot: Robot) -> bool:
    low, high = robot.lower - limits.joint_overrun, robot.upper + limits.joint_overrun
    return bool(((r.joint_angles < low) | (r.joint_angles > high)).any())


def _too_fast(r: Reading, limits: Limits, robot: Robot) -> bool:
    fast = np.abs(r.joint_velocities) > limits.joint_speed_share * robot.speed_limit
    return bool(fast.any()) or bool((r.mean_speed > limits.joint_speed_mean).any())


def _too_strong(r: Reading, limits: Limits, robot: Robot) -> bool:
    return bool((np.abs(r.torques) > limits.torque_excess * robot.torque_limit).any())


def _stalled(r: Reading, limits: Limits, robot: Robot) -> bool:
    strained = np.abs(r.torques) > limits.stall_torque * robot.torque_limit
    return bool((strained & (np.abs(r.joint_velocities) < limits.stall_speed)).any())


def _height_off(r: Reading, limits: Limits, robot: Robot) -> bool:
    low, high = limits.height
    return not low <= r.height <= high


def _silent(r: Reading, limits: Limits, robot: Robot) -> bool:
    return not r.pose_age <= limits.pose_age and not r.pose_silence <= limits.pose_age


def _pose_rejected(r: Reading, limits: Limits, robot: Robot) -> bool:
    return not r.pose_age <= limits.pose_age and r.pose_silence <= limits.pose_age


CHECKS: tuple[Check, ...] = (
    Check("emergency stop", Event.FAULT, ALWAYS, lambda r, limits, robot: r.emergency is not None),
    Check("low state lost", Event.FAULT, ALWAYS, lambda r, limits, robot: not r.state_age <= limits.state_age),
    Check(
        "low states too rare",
        Event.FAULT,
        ALWAYS,
        lambda r, limits, robot: not r.state_interval <= limits.state_interval,
    ),
    Check("low state invalid", Event.FAULT, ALWAYS, lambda r, limits, robot: not r.state_valid),
    Check("IMU frozen", Event.FAULT, ALWAYS, lambda r, limits, robot: not r.imu_age <= limits.state_age),
    Check("tilted too far", Event.FAULT, ALWAYS, _tilted),
    Check("IMU contradicts itself", Event.FAULT, ALWAYS, lambda r, limits, robot: not r.imu_conflict <= 1.0),
    Check("robot's clock runs ahead", Event.FAULT, ALWAYS, lambda r, limits, robot: not r.clock_conflict <= 1.0),
    Check("joint out of range", Event.FAULT, RISING | POWERED, _overrun, patience=0.02),
    Check("joint too fast", Event.FAULT, POWERED, _too_fast, patience=0.02),
    Check(
        "joints do not follow", Event.FAULT, POWERED, lambda r, limits, robot: not r.ramp_lag <= limits.ramp_lag, 0.3
    ),
    Check("motor frozen", Event.FAULT, POWERED, lambda r, limits, robot: r.motor_frozen),
    Check("joint angles contradict speeds", Event.FAULT, POWERED, lambda r, limits, robot: not r.joint_conflict <= 1.0),
    Check("torque too high", Event.FAULT, POWERED, _too_strong, patience=0.05),
    Check("joint stalled", Event.FAULT, POWERED, _stalled, patience=0.5),
    Check(
        "motors do not obey",
        Event.FAULT,
        POWERED,
        lambda r, limits, robot: not r.torque_error <= limits.torque_error,
        patience=0.5,
    ),
    Check("motor off", Event.FAULT, POWERED, lambda r, limits, robot: not r.motors_on, patience=0.3),
    Check(
        "motor packet loss", Event.FAULT, POWERED, lambda r, limits, robot: not r.lost_packets <= limits.lost_packets
    ),
    Check(
        "command stream late", Event.FAULT, POWERED, lambda r, limits, robot: not r.command_gap <= limits.command_gap
    ),
    Check("another program sends commands", Event.FAULT, ALWAYS, lambda r, limits, robot: r.other_writer),
    Check("second robot on the network", Event.FAULT, ALWAYS, lambda r, limits, robot: r.other_robot),
    Check("motion service active again", Event.FAULT, ALWAYS, lambda r, limits, robot: bool(r.motion_service)),
    Check("height out of range", Event.FAULT, WHILE_RUNNING, _height_off, patience=0.04),
    Check("outside the fence", Event.STOP, WHILE_RUNNING, lambda r, limits, robot: not r.distance <= limits.fence),
    Check("pose stream lost", Event.STOP, WHILE_RUNNING, _silent),
    Check("pose rejected", Event.STOP, WHILE_RUNNING, _pose_rejected),
    Check("heading of the poses is wrong", Event.STOP, RISING, lambda r, limits, robot: r.heading_wrong, patience=0.05),
    Check("policy too late", Event.STOP, WHILE_RUNNING, lambda r, limits, robot: not r.policy_age <= limits.policy_age),
    Check("battery low", Event.STOP, RISING, lambda r, limits, robot: not r.battery >= limits.battery, patience=0.5),
    Check(
        "battery charging or faulty",
        Event.STOP,
        RISING,
        lambda r, limits, robot: r.battery_status in BATTERY_FAULTS,
        patience=0.5,
    ),
    Check(
        "motor too hot",
        Event.STOP,
        RISING,
        lambda r, limits, robot: not r.motor_temperature <= limits.motor_temperature,
        patience=0.5,
    ),
)

SPEED_MEMORY = 0.1  # s over which a joint's speed is averaged
LOSS_MEMORY = 1.0  # s over which lost packets are counted


@dataclass
class MotorTrend:
    """Motor measurements over more than one low state."""

    speed_limit: Floats
    mean_speed: Floats = field(default_factory=lambda: np.zeros(12))  # share of the rated speed
    lost_packets: float = 0.0  # by the worst motor within about a second
    _lost: Floats = field(default_factory=lambda: np.zeros(12))
    _counts: Floats | None = None
    _now: float = 0.0

    def update(self, now: float, velocities: Floats, lost: Floats) -> None:
        """Process a low state; `lost` (12,) are the motors' counters of lost packets."""
        dt, self._now = min(max(now - self._now, 0.0), 0.05), now
        share = np.abs(velocities) / self.speed_limit
        self.mean_speed = self.mean_speed + min(dt / SPEED_MEMORY, 1.0) * (share - self.mean_speed)
        new = np.zeros(12) if self._counts is None else np.maximum(lost - self._counts, 0.0)  # a counter may restart
        self._counts = lost
        self._lost = self._lost * np.exp(-dt / LOSS_MEMORY) + new
        self.lost_packets = float(self._lost.max())


def check_table() -> str:
    """Return a Markdown table of all checks."""
    rows = [["check", "in the states", "must last", "leads to"], ["---"] * 4]
    for check in CHECKS:
        states = "all" if check.states == ALWAYS else ", ".join(s.value for s in DeployState if s in check.states)
        rows.append([check.name, states, f"{check.patience * 1000:.0f} ms", check.leads_to.value])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
