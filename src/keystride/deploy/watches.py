"""What is watched on every command: one row a danger, with the states it matters in and what it leads to."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keystride.deploy.states import Event, State
from keystride.robot.description import Floats, Robot


@dataclass(frozen=True)
class Limits:
    """Beyond these the robot is stopped, or a target is held back."""

    joint_margin: float = 0.02
    """Targets stay this far inside the joints' range, rad."""
    target_rate: float = 60.0
    """Targets move no faster than this, rad/s."""
    torque_share: float = 1.0
    """Share of each motor's peak torque that a target may ask for."""
    joint_speed_share: float = 1.3
    """Share of each joint's rated speed, measured, that is a fault when it lasts."""
    tilt: float = 60.0
    """Angle between the trunk's and the world's vertical, degrees."""
    height: tuple[float, float] = (0.10, 0.90)
    """Of the base over the ground while running, m."""
    state_age: float = 0.10
    """Without a low state for so long, s."""
    pose_age: float = 0.20
    """Without a believable pose for so long while running, s."""
    policy_age: float = 0.10
    """Without new targets for so long while running, s."""
    battery: float = 10.0
    """Charge, percent."""
    motor_temperature: float = 85.0
    """Of the hottest motor, degrees Celsius."""


@dataclass(frozen=True)
class Reading:
    """What the watches see at one moment."""

    state_age: float  # s since the last low state
    pose_age: float  # s since the last believable pose
    policy_age: float  # s since the policy's last targets
    joint_angles: Floats  # (12,) rad
    joint_velocities: Floats  # (12,) rad/s
    down: Floats  # (3,) unit vector downwards, base frame
    height: float  # m
    battery: float  # percent
    motor_temperature: float  # degrees Celsius, the hottest
    emergency: str | None = None  # who pressed, or none


@dataclass(frozen=True)
class Watch:
    name: str
    leads_to: Event
    states: frozenset[State]
    tripped: Callable[[Reading, Limits, Robot], bool]
    patience: float = 0.0  # s for which it must stay tripped


ALWAYS = frozenset(State)
POWERED = frozenset({State.STANDING_UP, State.READY, State.RUNNING, State.STOPPING})
RISING = frozenset({State.IDLE, State.STANDING_UP, State.READY, State.RUNNING})
RUNNING = frozenset({State.RUNNING})


def _not_finite(r: Reading, limits: Limits, robot: Robot) -> bool:
    return not bool(
        np.isfinite(r.joint_angles).all() and np.isfinite(r.joint_velocities).all() and np.isfinite(r.down).all()
    )


def _tilted(r: Reading, limits: Limits, robot: Robot) -> bool:
    return not -r.down[2] >= np.cos(np.radians(limits.tilt))


def _too_fast(r: Reading, limits: Limits, robot: Robot) -> bool:
    return bool((np.abs(r.joint_velocities) > limits.joint_speed_share * robot.speed_limit).any())


def _height_off(r: Reading, limits: Limits, robot: Robot) -> bool:
    low, high = limits.height
    return not low <= r.height <= high


WATCHES: tuple[Watch, ...] = (
    Watch("emergency stop", Event.FAULT, ALWAYS, lambda r, limits, robot: r.emergency is not None),
    Watch("low state lost", Event.FAULT, ALWAYS, lambda r, limits, robot: not r.state_age <= limits.state_age),
    Watch("low state not finite", Event.FAULT, ALWAYS, _not_finite),
    Watch("tilted too far", Event.FAULT, ALWAYS, _tilted),
    Watch("joint too fast", Event.FAULT, POWERED, _too_fast, patience=0.02),
    Watch("height out of range", Event.FAULT, RUNNING, _height_off, patience=0.04),
    Watch("pose stream lost", Event.STOP, RUNNING, lambda r, limits, robot: not r.pose_age <= limits.pose_age),
    Watch("policy too late", Event.STOP, RUNNING, lambda r, limits, robot: not r.policy_age <= limits.policy_age),
    Watch("battery low", Event.STOP, RISING, lambda r, limits, robot: not r.battery >= limits.battery, patience=0.5),
    Watch(
        "motor too hot",
        Event.STOP,
        RISING,
        lambda r, limits, robot: not r.motor_temperature <= limits.motor_temperature,
        patience=0.5,
    ),
)


def watch_table() -> str:
    """Markdown: every watch, its states and what it leads to."""
    rows = [["watch", "in the states", "must last", "leads to"], ["---"] * 4]
    for watch in WATCHES:
        states = "all" if watch.states == ALWAYS else ", ".join(s.value for s in State if s in watch.states)
        rows.append([watch.name, states, f"{watch.patience * 1000:.0f} ms", watch.leads_to.value])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
