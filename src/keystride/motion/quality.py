"""How good a clip is: penetration, sliding, limits and speeds, per clip and over a whole library."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from keystride.motion.clip import CLIP_FPS, Clip, difference
from keystride.motion.signals import Flags, airborne_frames, clip_feet, foot_clearance, planted_feet
from keystride.robot.description import Floats, Robot

AT_LIMIT = 1e-3  # rad: a joint this close to a limit counts as being at it


@dataclass(frozen=True)
class FrameMeasures:
    """Measurements at every frame of one clip, or of several concatenated clips."""

    speed: Floats  # (T,) m/s, horizontal, of the base
    penetration: Floats  # (T, 4) m, of each foot into the ground
    slide: Floats  # (T, 4) m/s, horizontal, of each foot
    planted: Flags  # (T, 4)
    airborne: Flags  # (T,)
    beyond_limit: Floats  # (T,) rad, of the joint that is worst
    at_limit: Flags  # (T,)
    joint_speed: Floats  # (T,) rad/s, of the fastest joint
    motor_share: Floats  # (T,) largest joint speed as a share of what its motor can do


@dataclass(frozen=True)
class Figures:
    """A row of the quality table."""

    seconds: float
    mean_speed: float  # m/s
    penetration_max: float  # m
    penetration_p99: float  # m, over all feet and frames
    slide: float  # m/s, mean over planted feet
    limit_share: float  # of frames with a joint at a limit
    beyond_limit: float  # rad, largest
    joint_speed: float  # rad/s, largest
    joint_speed_grounded: float  # rad/s, largest outside airborne frames
    motor_share: float  # largest joint speed over the motor's, outside airborne frames
    airborne_share: float


@dataclass(frozen=True)
class Targets:
    """Limits that the figures of a library must not exceed."""

    slide: float = 0.05  # m/s
    penetration_p99: float = 0.005  # m
    beyond_limit: float = 1e-9  # rad
    motor_share: float = 1.0

    def misses(self, figures: Figures) -> list[str]:
        """Return one line for each limit that is exceeded."""
        pairs = [(field.name, getattr(figures, field.name), getattr(self, field.name)) for field in fields(self)]
        return [
            f"{name} is {value:.4g}, but should be at most {most:.4g}" for name, value, most in pairs if value > most
        ]


def measure_clip(clip: Clip, robot: Robot) -> FrameMeasures:
    feet = clip_feet(clip, robot)  # (T, 4, 3)
    low = robot.lower - clip.joint_angles  # (T, 12) positive beyond a limit
    high = clip.joint_angles - robot.upper
    nearest = np.maximum(low, high).max(axis=-1)  # (T,)
    joint_speed = np.abs(clip.joint_velocities)
    return FrameMeasures(
        speed=np.linalg.norm(clip.base_linear_velocity[:, :2], axis=-1),
        penetration=np.maximum(-foot_clearance(feet, robot), 0.0),
        slide=np.linalg.norm(difference(feet, clip.fps)[..., :2], axis=-1),
        planted=planted_feet(feet, robot, clip.fps),
        airborne=airborne_frames(feet, robot),
        beyond_limit=np.maximum(nearest, 0.0),
        at_limit=nearest > -AT_LIMIT,
        joint_speed=joint_speed.max(axis=-1),
        motor_share=(joint_speed / robot.speed_limit).max(axis=-1),
    )


def pool(many: Iterable[FrameMeasures]) -> FrameMeasures:
    """Concatenate the frames of several clips, for figures over a whole library."""
    listed = list(many)
    return FrameMeasures(
        *(np.concatenate([getattr(one, field.name) for one in listed]) for field in fields(FrameMeasures))
    )


def figures(frames: FrameMeasures, fps: float = CLIP_FPS) -> Figures:
    grounded = ~frames.airborne
    return Figures(
        seconds=len(frames.speed) / fps,
        mean_speed=float(frames.speed.mean()),
        penetration_max=float(frames.penetration.max()),
        penetration_p99=float(np.percentile(frames.penetration, 99)),
        slide=float(frames.slide[frames.planted].mean()) if frames.planted.any() else 0.0,
        limit_share=float(frames.at_limit.mean()),
        beyond_limit=float(frames.beyond_limit.max()),
        joint_speed=float(frames.joint_speed.max()),
        joint_speed_grounded=float(frames.joint_speed.max(where=grounded, initial=0.0)),
        motor_share=float(frames.motor_share.max(where=grounded, initial=0.0)),
        airborne_share=float(frames.airborne.mean()),
    )


def clip_figures(clip: Clip, robot: Robot) -> Figures:
    return figures(measure_clip(clip, robot), clip.fps)


def library_figures(clips: Iterable[Clip], robot: Robot) -> Figures:
    return figures(pool(measure_clip(clip, robot) for clip in clips))
