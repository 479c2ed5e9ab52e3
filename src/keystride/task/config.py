"""The keyframe task as data. Defaults from the paper name its table."""

from dataclasses import dataclass, field
from math import pi
from typing import Literal


@dataclass(frozen=True)
class EverydayRanges:
    """What people ask of a robot beyond the paper's ranges. Distances and turns follow from the time there is for them."""

    interval_steps: tuple[int, int] = (15, 150)
    """Control steps between keyframes; short ones are drawn more often (evenly over their logarithm)."""
    speed_ahead: float = 1.3
    """Largest speed in m/s."""
    speed_back: float = 0.6
    """Largest speed backwards in m/s."""
    speed_sideways: float = 0.5
    """Largest speed sideways in m/s."""
    turn_rate: float = 1.6
    """Largest rate of turning in rad/s; no single turn is larger than 180 degrees."""
    reaction: float = 0.2
    """s at the start of an interval in which a robot at rest gets nowhere."""
    height: tuple[float, float] = (0.20, 0.36)
    """m, from a crouch to standing tall."""
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    """Of keyframes elsewhere, of turns on the spot, and of staying."""
    standing_share: float = 0.6
    """Of keyframes that ask for standing level at some height; the others take height and pose from a frame of the library."""


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
    """Keyframes in an episode."""
    random_share: tuple[float, float] = (0.0, 0.6)
    """Share of the episodes of clip and random keyframes that have random ones, at the start and once the curriculum is over."""
    random_ramp: int = 6_000_000
    """Control steps over which that share grows."""
    leap_share: float = 0.0
    """Share of episodes whose first keyframe is a leap of a clip: leaps are too rare among frames to be learned otherwise."""
    posture_share: float = 0.0
    """Share of episodes whose first keyframe is a rare posture of a clip: sitting, lying, a paw up, and others."""
    everyday_share: float = 0.0
    """Share of episodes with keyframes over the everyday ranges."""
    everyday: EverydayRanges = field(default_factory=EverydayRanges)


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
    narrowest: float = 1.0
    """Least width as a multiple of the paper's."""


@dataclass(frozen=True)
class RegularizationWidths:
    """Kernel widths (paper, regularisation reward terms)."""

    action_rate: float = 8.0
    """Change of the raw action from step to step, norm over the 12 joints"""
    base_acceleration: float = 8.0
    """m/s^2"""
    joint_acceleration: float = 150.0
    """rad/s^2, norm over the 12 joints"""
    joint_acceleration_tolerance: float = 10.0
    """rad/s^2 below which nothing is lost"""
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
    tail_steps: tuple[int, int] = (5, 150)
    """Control steps from the last keyframe to the end of an episode; short ones are drawn more often. The paper has 50."""
    end_at_joint_limits: bool = False
    """Terminate when a joint reaches its limit, as the paper does for policies that go to the robot."""
    randomize: Literal["nothing", "paper", "robot"] = "nothing"
    """Domain randomisation: none, the paper's ranges, or these with payloads, weak motors and measurement errors."""
    ranges: KeyframeRanges = field(default_factory=KeyframeRanges)
    goal_widths: GoalWidths = field(default_factory=GoalWidths)
    regularization: RegularizationWidths = field(default_factory=RegularizationWidths)
