"""Retarget an animal's keypoints to the robot's joints.

Lengths shrink by one scale, and time by its square root: gravity then stays the same, flights remain ballistic, and
speeds follow the Froude number. The trunk takes the animal's place, heading and pitch. The feet take the place of its
toes, moved outwards because the robot is wider and longer; `fitting` does the rest.
"""

from dataclasses import dataclass, field

import numpy as np

from keystride import geometry
from keystride.motion.clip import CLIP_FPS
from keystride.motion.retargeting.fitting import FitSettings, FittedClip, fit
from keystride.motion.retargeting.planting import detect_planted, free_fall
from keystride.motion.retargeting.trunk import Trunk, half_length, heading_of, pitch_of, roll_of, trunk_length
from keystride.motion.signals import gaussian_smooth, resample, soft_max, soft_min
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints


@dataclass(frozen=True)
class Proportions:
    """The animal, standing squarely, seen in its own heading frame."""

    height: float  # m, between ground and the middle of hips and shoulders
    pitch: float  # rad, of the line from hips to shoulders (up is positive)
    toes: tuple[tuple[float, float, float], ...]  # m, four toes: ahead and left of the middle, above ground


@dataclass(frozen=True)
class Capture:
    """Keypoints over time. World frame z up, metres; legs front left, front right, rear left, rear right."""

    name: str
    fps: float
    hips: Floats  # (T, 4, 3) shoulders in front, hips behind
    toes: Floats  # (T, 4, 3)
    proportions: Proportions
    bones: Floats = field(default_factory=lambda: np.zeros((0, 0, 3)))  # (T, N, 3) all nodes, for viewing
    parents: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.toes)


@dataclass(frozen=True)
class Animal:
    """What is drawn of the source of a clip, at the clip's frames and size."""

    nodes: Floats  # (T, N, 3) m, world
    parents: tuple[int, ...]


@dataclass(frozen=True)
class RetargetSettings:
    body_height: float = 0.31  # m, of the robot's base when the animal stands squarely
    stance_width: float = 0.95  # of the distance between the leg planes
    smoothing: float = 0.018  # s of the robot's time, Gaussian, on the animal's keypoints
    lowest_hip: float = 0.125  # m: with the leg folded, foot and knee both touch the ground
    standing_hip: float = 0.26  # m: a hip well below it sits or lies, and keeps its place when the pitch changes
    steepest: float = 1.15  # rad of pitch in rearing: nearer to upright, roll and yaw would lose their meaning
    fit: FitSettings = field(default_factory=FitSettings)


RETARGET_DEFAULTS = RetargetSettings()


def retarget(capture: Capture, robot: Robot, settings: RetargetSettings = RETARGET_DEFAULTS) -> FittedClip:
    hips, toes = scaled_keypoints(capture, settings)  # (T, 4, 3) m at 50 frames/s, the size of the robot
    trunk = _trunk(hips, capture, robot, settings)
    standing = np.array(capture.proportions.toes) * length_scale(capture, settings)  # (4, 3)
    planted = detect_planted(toes, hips.mean(axis=1), standing[:, 2], settings.fit.planting)
    wanted = _wanted_soles(toes, standing, trunk, robot, settings)
    extra = free_fall(0.5 * (trunk.front + trunk.rear), wanted)  # (T,) m
    wanted[..., 2] += extra[:, None]
    trunk = trunk.lifted(extra, extra)
    return fit(trunk, wanted, planted, name=capture.name, robot=robot, settings=settings.fit)


def length_scale(capture: Capture, settings: RetargetSettings = RETARGET_DEFAULTS) -> float:
    """Return the scale from the animal's lengths to the robot's; times scale with its square root."""
    return settings.body_height / capture.proportions.height


def frame_rate(capture: Capture, settings: RetargetSettings = RETARGET_DEFAULTS) -> float:
    """Return the number of clip frames per frame of the capture."""
    return CLIP_FPS / capture.fps * float(np.sqrt(length_scale(capture, settings)))


def scaled_points(points: Floats, capture: Capture, settings: RetargetSettings = RETARGET_DEFAULTS) -> Floats:
    """Return keypoints (T, N, 3) of the capture at the frames and in the size of the clip."""
    times = np.arange(len(points), dtype=np.float64) * frame_rate(capture, settings)
    at = np.arange(int(np.floor(times[-1] + 1e-9)) + 1, dtype=np.float64)
    return resample(points, times, at) * length_scale(capture, settings)


def scaled_keypoints(capture: Capture, settings: RetargetSettings) -> tuple[Floats, Floats]:
    sigma = settings.smoothing * CLIP_FPS / frame_rate(capture, settings)  # frames of the capture
    hips, toes = (
        scaled_points(gaussian_smooth(points, sigma), capture, settings) for points in (capture.hips, capture.toes)
    )
    return hips, toes


def _trunk(hips: Floats, capture: Capture, robot: Robot, settings: RetargetSettings) -> Trunk:
    """Return the trunk with the animal's pitch, both ends above what folded legs allow, and less roll the lower it is."""
    middle = hips.mean(axis=1)  # (T, 3)
    pitch = soft_min(pitch_of(hips) - capture.proportions.pitch, settings.steepest, 0.1)
    rise = 0.5 * trunk_length(robot) * np.sin(pitch)
    rear = soft_max(middle[:, 2] - rise, settings.lowest_hip, 0.02)
    front = soft_max(rear + 2 * rise, settings.lowest_hip, 0.02)
    low = np.clip((settings.standing_hip - np.stack([front, rear])) / 0.1, 0.0, 1.0)  # (2, T)
    return Trunk(
        middle=middle[:, :2],
        front=front,
        rear=rear,
        yaw=heading_of(hips),
        roll=_roll(hips, np.minimum(front, rear) - settings.lowest_hip, robot),
        anchor=low[0] - low[1],
        half=half_length(front, rear, robot),
    )


def _roll(hips: Floats, room: Floats, robot: Robot) -> Floats:
    """Return the roll of the animal, as far as the space under the hips allows."""
    most = np.maximum(room, 0.0) / (2 * robot.legs[0].thigh_in_hip[1]) + 0.02
    roll = roll_of(hips)
    return np.sign(roll) * soft_min(np.abs(roll), most, 0.02)


def _wanted_soles(toes: Floats, standing: Floats, trunk: Trunk, robot: Robot, settings: RetargetSettings) -> Floats:
    """Return scaled toes, moved outwards by as much as the robot is wider and longer than the scaled animal; heights from ground."""
    stance = feet_from_joints(robot, robot.stance)[:, :2] * [1.0, settings.stance_width]  # (4, 2)
    outwards = np.broadcast_to(stance - standing[:, :2], (len(toes), 4, 2))
    across = toes[..., :2] + geometry.rotate_yaw(np.repeat(trunk.yaw[:, None], 4, axis=1), outwards)
    return np.concatenate([across, (toes[..., 2] - standing[:, 2])[..., None]], axis=-1)
