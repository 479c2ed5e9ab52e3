"""The settings of the keyframe task. Defaults from the paper name its table."""

from dataclasses import dataclass, field
from math import pi
from typing import Literal


@dataclass(frozen=True)
class EverydayRanges:
    """Everyday keyframes beyond the paper's ranges. The time between them limits distances and turns."""

    interval_steps: tuple[int, int] = (15, 150)
    """Control steps between keyframes, log-uniform: short intervals are drawn more often."""
    speed_ahead: float = 1.3
    """Largest forward speed in m/s."""
    speed_back: float = 0.6
    """Largest backward speed in m/s."""
    speed_sideways: float = 0.5
    """Largest sideways speed in m/s."""
    turn_rate: float = 1.6
    """Largest turn rate in rad/s; no single turn exceeds 180 degrees."""
    reaction: float = 0.2
    """Seconds at the start of an interval in which a robot at rest does not get anywhere."""
    height: tuple[float, float] | None = None
    """Range of standing heights in m. None: from a crouch to standing tall, 0.6 to 1.08 times the height of the robot's stance."""
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    """Shares of keyframes elsewhere, of turns on the spot, and of staying in place."""
    standing_share: float = 0.6
    """Share of keyframes that ask for standing level at some height; the others take height and pose from a frame of the library."""


@dataclass(frozen=True)
class KeyframeRanges:
    """Ranges that keyframes are drawn from (paper, keyframe sampling ranges)."""

    interval_steps: tuple[int, int] = (25, 50)
    """Control steps between keyframes."""
    radius: tuple[float, float] = (0.5, 1.0)
    """Distance from the previous keyframe in m, for random keyframes."""
    direction: tuple[float, float] = (-pi / 3, pi / 3)
    """Direction from the previous keyframe, relative to its heading, in rad, for random keyframes."""
    turn: tuple[float, float] = (-pi / 3, pi / 3)
    """Change of yaw from the previous keyframe in rad, for random keyframes."""
    count: tuple[int, int] = (1, 5)
    """Number of keyframes in an episode."""
    random_share: tuple[float, float] = (0.0, 0.6)
    """Share of random keyframes among episodes with clip or random keyframes, at the start and at the end of the curriculum."""
    random_ramp: int = 6_000_000
    """Control steps over which random_share grows."""
    leap_share: float = 0.0
    """Share of episodes whose first keyframe is a leap from a clip: leaps are too rare among frames to be learned otherwise."""
    posture_share: float = 0.0
    """Share of episodes whose first keyframe is a rare posture from a clip: sitting, lying, a paw up, and others."""
    backward_share: float = 0.0
    """Share of episodes with keyframes from clips that walk backwards: dogs hardly do, but people ask for it."""
    everyday_share: float = 0.0
    """Share of episodes with keyframes from the everyday ranges."""
    everyday: EverydayRanges = field(default_factory=EverydayRanges)


@dataclass(frozen=True)
class GoalWidths:
    """Kernel widths of the goal reward (paper, goal reward terms), and the factor by which they start wider."""

    position: float = 0.2
    """Width for the position in m."""
    roll: float = 0.1
    """Width for roll in rad."""
    pitch: float = 0.1
    """Width for pitch in rad."""
    yaw: float = 0.3
    """Width for yaw in rad."""
    posture: float = 0.2 * 12**0.5
    """Width for the posture in rad, norm over the 12 joints."""
    start: float = 4.0
    """Factor by which widths start wider: at 0.8 m of error the paper's kernel gives no signal.
    They narrow as the error falls, never ahead of it."""
    follow: float = 1.4
    """Width as a multiple of the mean error, between the narrowest width and the initial one."""
    narrowest: float = 1.0
    """Narrowest width as a multiple of the paper's."""


@dataclass(frozen=True)
class RegularizationWidths:
    """Kernel widths of the regularization reward (paper, regularization reward terms)."""

    action_rate: float = 8.0
    """Width for the change of the raw action over a control step, norm over the 12 joints."""
    base_acceleration: float = 8.0
    """Width for the horizontal acceleration of the base in m/s^2."""
    joint_acceleration: float = 150.0
    """Width for the joint acceleration in rad/s^2, norm over the 12 joints."""
    joint_acceleration_tolerance: float = 10.0
    """Joint acceleration in rad/s^2 below which the reward stays 1."""
    soft_limits: float = 0.1
    """Width for joint angles beyond the soft limits in rad."""
    soft_limit_share: float = 0.95
    """Share of each joint's range that lies inside the soft limits."""


@dataclass(frozen=True)
class TaskConfig:
    """What robots are asked to do, and how episodes start and end."""

    goals: Literal["position", "pose", "any"] = "position"
    """Which components keyframes have: position alone, all five, or a random subset for each episode."""
    demonstrate: tuple[Literal["leap", "posture", "backward"], ...] = ("leap", "posture", "backward")
    """Kinds of episodes in which an imitating policy is shown the replayed clip. Leave out what it already does better."""
    max_keyframes: int = 5
    """Largest number of keyframes that the policy sees at once."""
    see: Literal["all", "next"] = "all"
    """Whether the policy sees all keyframes, or only the next one (the anticipation baseline)."""
    reference_start: float = 0.8
    """Share of episodes that start at a frame of a clip; the others start standing (paper, training procedure)."""
    tail_steps: tuple[int, int] = (5, 150)
    """Control steps from the last keyframe to the end of an episode, log-uniform. The paper has 50."""
    end_at_joint_limits: bool = False
    """Whether an episode ends when a joint hits its stop faster than 1 rad/s, as in the paper for policies that run on the robot.
    Resting at a stop, as in sitting or lying down, is allowed."""
    randomize: Literal["nothing", "paper", "robot"] = "nothing"
    """Domain randomization: nothing, the paper's ranges, or these with payloads, weak motors and measurement errors (robot)."""
    randomized_share: float = 1.0
    """Share of the robots that are randomized; the others keep what was learned on the nominal robot from being forgotten."""
    ranges: KeyframeRanges = field(default_factory=KeyframeRanges)
    goal_widths: GoalWidths = field(default_factory=GoalWidths)
    regularization: RegularizationWidths = field(default_factory=RegularizationWidths)
