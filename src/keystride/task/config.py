"""The keyframe task as data. Defaults from the paper name its table."""

from dataclasses import dataclass, field
from math import pi
from typing import Literal


@dataclass(frozen=True)
class KeyframeRanges:
    """How keyframes are drawn (paper, keyframe sampling ranges)."""

    interval_steps: tuple[int, int] = (25, 50)
    """Control steps between keyframes."""
    radius: tuple[float, float] = (0.5, 1.0)
    """m from the previous keyframe, for random keyframes."""
    direction: tuple[float, float] = (-pi / 3, pi / 3)
    """rad from the previous keyframe's heading, for random keyframes."""
    turn: tuple[float, float] = (-pi / 3, pi / 3)
    """rad of yaw from the previous keyframe, for random keyframes."""
    count: tuple[int, int] = (1, 5)
    """Keyframes an episode."""
    random_share: tuple[float, float] = (0.0, 0.6)
    """Share of episodes with random keyframes, at the start and once the curriculum is over."""
    random_ramp: int = 6_000_000
    """Control steps over which that share grows."""
    leap_share: float = 0.0
    """Share of episodes whose first keyframe is a leap of a clip: rarer among frames than a policy needs to learn it from."""


@dataclass(frozen=True)
class GoalWidths:
    """Kernel widths of the goal reward (paper, goal reward terms), and the factor by which they start wider."""

    position: float = 0.2
    """m"""
    roll: float = 0.1
    """rad"""
    pitch: float = 0.1
    """rad"""
    yaw: float = 0.3
    """rad"""
    posture: float = 0.2 * 12**0.5
    """rad, norm over the 12 joints"""
    start: float = 4.0
    """Widths begin this many times wider: at 0.8 m of error the paper's kernel gives no signal. They narrow with the error
    reached, never ahead of it."""
    follow: float = 1.4
    """Width as a multiple of the mean error reached, between the paper's width and the start's."""


@dataclass(frozen=True)
class RegularizationWidths:
    """Kernel widths (paper, regularisation reward terms)."""

    action_rate: float = 8.0
    base_acceleration: float = 8.0
    """m/s^2"""
    joint_acceleration: float = 150.0
    """rad/s^2, norm over the 12 joints"""
    joint_acceleration_tolerance: float = 10.0
    soft_limits: float = 0.1
    """rad"""
    soft_limit_share: float = 0.95
    """Share of each joint's range that counts as inside."""


@dataclass(frozen=True)
class TaskConfig:
    goals: Literal["position", "pose", "any"] = "position"
    """Which components keyframes have: position alone, all five, or a random subset for each episode."""
    max_keyframes: int = 5
    """Keyframes that the policy sees at once."""
    see: Literal["all", "next"] = "all"
    """Aware of all keyframes, or (the anticipation baseline) of the next one only."""
    reference_start: float = 0.8
    """Share of episodes that start in a frame of a clip; the others start standing (paper, training procedure)."""
    seconds_after_last: float = 1.0
    """An episode ends this long after its last keyframe."""
    end_at_joint_limits: bool = False
    """Terminate when a joint reaches its limit, as the paper does for policies that go to the robot."""
    randomize: bool = False
    """Domain randomisation over the paper's ranges."""
    ranges: KeyframeRanges = field(default_factory=KeyframeRanges)
    goal_widths: GoalWidths = field(default_factory=GoalWidths)
    regularization: RegularizationWidths = field(default_factory=RegularizationWidths)
