"""Measure gait, flight phases and motor speeds.

Gait is computed from poses alone, in the same way for policies and for clips.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.evaluation.episodes import NEVER_FELL, EpisodeRollout
from keystride.evaluation.results import Row, Subject, single_row
from keystride.keyframes.goals import CONTROL_DT
from keystride.motion.clip import CLIP_FPS, angular_difference, difference
from keystride.motion.signals import feet_in_world, foot_clearance, planted_feet
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import calf_rates

MOVING = 0.15  # m/s of the base; below it the robot is standing and has no gait
TOUCH_HEIGHT = 0.005  # m above the ground below which a foot touches it
SKATING = 0.4  # m/s of a foot that touches the ground
AIRBORNE = 0.01  # m below every foot
FLIGHT = 0.15  # s off the ground that count as a leap
SPEED_PERCENTILE = 99.9


@dataclass(frozen=True)
class GaitFigures:
    """One value (E,) per episode or clip segment, NaN where the quantity is undefined."""

    duty_factor: Floats  # fraction of the time that a foot is planted, while moving
    stride_hz: Floats  # touch-downs per second and foot, while moving
    clearance_m: Floats  # highest point of a swing, averaged over swings
    slide_m_s: Floats  # speed of the centres of planted feet, which also move because round feet roll
    slip_m_s: Floats  # speed of the lowest points of planted feet, which is true sliding
    skating_share: Floats  # fraction of ground contact during which the foot moves faster than SKATING
    joint_acceleration: Floats  # rad/s^2, root mean square; reveals trembling


@dataclass(frozen=True)
class Motion:
    """E segments of motion with T frames each, of a policy or of clips."""

    feet: Floats  # (T, E, 4, 3) m, centres of the feet, world
    rolling: Floats  # (T, E, 4, 2) m/s, horizontal velocity of the feet's lowest points relative to their centres
    base_velocity: Floats  # (T, E, 3) m/s, world
    joint_angles: Floats  # (T, E, 12) rad
    joint_velocities: Floats  # (T, E, 12) rad/s


def motion_of_poses(
    robot: Robot,
    position: Floats,
    orientation: Floats,
    base_velocity: Floats,
    joint_angles: Floats,
    joint_velocities: Floats,
) -> Motion:
    """Return the motion with these poses and velocities (T, E, ...)."""
    feet = feet_in_world(robot, position, orientation, joint_angles)
    calves = geometry.rotate(orientation[..., None, :], calf_rates(joint_angles, joint_velocities))  # (T, E, 4, 3)
    rates = angular_difference(orientation)[..., None, :] + calves
    rolling = robot.foot_radius * np.stack([-rates[..., 1], rates[..., 0]], axis=-1)
    return Motion(feet, rolling, base_velocity, joint_angles, joint_velocities)


def measure_gait(robot: Robot, motion: Motion) -> GaitFigures:
    """Return the gait figures of every segment."""
    feet, base_velocity, joint_velocities = motion.feet, motion.base_velocity, motion.joint_velocities
    height = foot_clearance(feet, robot)  # (T, E, 4)
    down = planted_feet(feet, robot, CLIP_FPS)
    velocity = difference(feet)[..., :2]
    speed = np.linalg.norm(velocity, axis=-1)  # (T, E, 4) m/s
    slip = np.linalg.norm(velocity + motion.rolling, axis=-1)
    moving = np.broadcast_to((np.linalg.norm(base_velocity[..., :2], axis=-1) > MOVING)[..., None], down.shape)
    landing = down & ~np.roll(down, 1, axis=0)
    landing[0] = False
    touching = height < TOUCH_HEIGHT
    return GaitFigures(
        duty_factor=_share(down & moving, moving),
        stride_hz=CLIP_FPS * _share(landing & moving, moving),
        clearance_m=np.array([swing_height(height[:, e], down[:, e]) for e in range(feet.shape[1])]),
        slide_m_s=_share(speed * down, down),
        slip_m_s=_share(slip * down, down),
        skating_share=_share(touching & (speed > SKATING), touching),
        joint_acceleration=np.sqrt(np.mean(difference(joint_velocities)[1:] ** 2, axis=(0, 2))),
    )


def swing_height(height: Floats, down: NDArray[np.bool_]) -> float:
    """Return the highest foot position of a swing, averaged over the completed swings of a robot; arguments are (T, 4)."""
    tops = [top for foot in range(height.shape[1]) for top in _swing_tops(height[:, foot], down[:, foot])]
    return float(np.mean(tops)) if tops else float("nan")


def _swing_tops(height: Floats, down: NDArray[np.bool_]) -> list[float]:
    edges = np.flatnonzero(np.diff(down.astype(np.int8)))  # the last frame before each change
    lifts = [edge for edge in edges if down[edge]]
    return [float(height[lift + 1 : edges[edges > lift][0] + 1].max()) for lift in lifts if (edges > lift).any()]


def _share(part: Floats | NDArray[np.bool_], whole: NDArray[np.bool_]) -> Floats:
    """Return (E,) the sum of `part` over time and feet divided by that of `whole`; NaN where the latter is 0."""
    total = whole.sum(axis=(0, 2))
    return np.divide(part.sum(axis=(0, 2)), total, out=np.full(len(total), np.nan), where=total > 0)


def airborne_seconds(robot: Robot, rollout: EpisodeRollout) -> Floats:
    """Return (E,) the longest time without ground contact before the end of the episode or a fall, s."""
    trace = rollout.trace
    feet = feet_in_world(robot, trace.position, trace.orientation, trace.joint_angles)  # (T, E, 4, 3)
    flying = (foot_clearance(feet, robot) > AIRBORNE).all(axis=-1) & _alive(rollout)
    longest, current = np.zeros(flying.shape[1], dtype=np.int64), np.zeros(flying.shape[1], dtype=np.int64)
    for frame in flying:
        current = (current + 1) * frame
        longest = np.maximum(longest, current)
    return CONTROL_DT * longest.astype(np.float64)


def flight_rows(subject: Subject, robot: Robot, rollout: EpisodeRollout) -> list[Row]:
    """Return rows for the time in the air and the share of episodes with a leap."""
    seconds = airborne_seconds(robot, rollout)
    figures = {"airborne_s": seconds, "flight_share": (seconds >= FLIGHT - 1e-9).astype(np.float64)}
    return [
        single_row(subject, name, values, episodes=len(seconds), falls=rollout.falls)
        for name, values in figures.items()
    ]


def motor_rows(robot: Robot, suites: Mapping[str, Iterable[EpisodeRollout]], policy: str) -> list[Row]:
    """Return rows for the 99.9th percentile of joint speed relative to the motor rating, per suite and for all together."""
    shares = {name: [joint_speed_shares(robot, one) for one in rollouts] for name, rollouts in suites.items()}
    shares = {name: np.concatenate(parts) for name, parts in shares.items() if parts}
    if not shares:
        return []
    shares["all suites"] = np.concatenate(list(shares.values()))
    falls = {name: sum(one.falls for one in rollouts) for name, rollouts in suites.items()}
    episodes = {name: sum(len(one.fell) for one in rollouts) for name, rollouts in suites.items()}
    return [
        single_row(
            Subject("motors", name, policy),
            "joint_speed_share",
            np.array([np.percentile(values, SPEED_PERCENTILE)]),
            episodes=episodes.get(name, sum(episodes.values())),
            falls=falls.get(name, sum(falls.values())),
        )
        for name, values in shares.items()
    ]


def joint_speed_shares(robot: Robot, rollout: EpisodeRollout) -> NDArray[np.float32]:
    """Return (n,) joint speeds relative to the motor rating, at all control steps before the end of an episode or a fall."""
    speed = np.abs(rollout.trace.joint_velocities) / robot.speed_limit  # (T, E, 12)
    return speed[_alive(rollout)].astype(np.float32).ravel()


def _alive(rollout: EpisodeRollout) -> NDArray[np.bool_]:
    """Return (T, E) whether the episode is running and the robot has not fallen."""
    over = np.where(rollout.fell == NEVER_FELL, rollout.end, np.minimum(rollout.fell, rollout.end))
    return np.arange(len(rollout.trace.position))[:, None] <= over
