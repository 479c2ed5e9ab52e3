"""Poses of a robot as files hold them, and the checks that every importer makes before they become a clip."""

from dataclasses import dataclass

import numpy as np

from keystride import geometry
from keystride.errors import FileError
from keystride.motion.clip import CLIP_FPS, continuous, make_clip
from keystride.motion.retargeting.fitting import FittedClip
from keystride.motion.signals import resample
from keystride.reading import one_line
from keystride.robot.description import Floats, Robot

MAX_FRAMES = 100_000  # of a file and of the clip made from it: half an hour
FRAME_RATES = (1.0, 1000.0)  # per second
HEIGHTS = (0.03, 2.0)  # m: a base whose median height is outside is in another unit
FARTHEST = 10_000.0  # m from the origin
LARGEST_ANGLE = 2 * np.pi  # rad: beyond, angles must be degrees
LEGS = ("FL", "FR", "RL", "RR")


class ImportProblem(FileError):
    """One clear line about one file: truncated, of another skeleton, not finite, of the wrong unit."""


def require_finite(values: Floats, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=-1))
    if len(bad):
        raise ImportProblem(f"non-finite {what} in {len(bad)} frames, the first is frame {bad[0]}")


def require_frames(count: int, least: int = 2) -> None:
    if count < least:
        raise ImportProblem(f"truncated: {count} frames, at least {least} are needed")
    if count > MAX_FRAMES:
        raise ImportProblem(f"{count} frames; allowed: at most {MAX_FRAMES}")


def require_rate(fps: float, frames: int, clip_fps: float = 50.0) -> None:
    """The rate has to be plausible, and the clip made from the frames not too long."""
    low, high = FRAME_RATES
    if not low <= fps <= high:  # NaN is not
        raise ImportProblem(f"the frame rate is {fps:g} per second; allowed: {low:g} to {high:g}")
    require_frames(int(frames / fps * clip_fps), least=0)


@dataclass(frozen=True)
class PoseTable:
    name: str
    fps: float
    position: Floats  # (T, 3) world, m
    orientation: Floats  # (T, 4) w x y z
    joints: Floats  # (T, 12) rad, legs FL FR RL RR

    def __len__(self) -> int:
        return len(self.position)


def checked(poses: PoseTable) -> PoseTable:
    """The same poses, or a problem that says what is wrong with them."""
    require_frames(len(poses))
    for what, columns in (("position", 3), ("orientation", 4), ("joints", 12)):
        values = getattr(poses, what)
        if values.shape != (len(poses), columns):
            raise ImportProblem(f"{what} is {values.shape}, ({len(poses)}, {columns}) expected")
        require_finite(values, what)
    require_rate(poses.fps, len(poses))
    norm = np.linalg.norm(poses.orientation, axis=-1)
    if np.abs(norm - 1).max() > 0.05:
        raise ImportProblem(
            f"quaternions are not of unit length (frame {int(np.abs(norm - 1).argmax())}): other columns?"
        )
    height = float(np.median(poses.position[:, 2]))
    if not HEIGHTS[0] < height < HEIGHTS[1]:
        raise ImportProblem(f"wrong unit: the base is {height:.3g} m high, metres and z up expected")
    farthest = np.abs(poses.position).max(axis=1)
    if farthest.max() > FARTHEST:
        raise ImportProblem(
            f"the base is {farthest.max():.3g} m from the origin in frame {farthest.argmax()}; "
            f"allowed: at most {FARTHEST:g} m"
        )
    if np.abs(poses.joints).max() > LARGEST_ANGLE:
        raise ImportProblem(f"wrong unit: a joint angle of {np.abs(poses.joints).max():.3g}, radians expected")
    return poses


def at_clip_rate(poses: PoseTable) -> PoseTable:
    """The same motion at 50 frames/s."""
    if abs(poses.fps - CLIP_FPS) < 1e-6:
        return poses
    times = np.arange(len(poses)) / poses.fps
    at = np.arange(int(np.floor(times[-1] * CLIP_FPS + 1e-6)) + 1) / CLIP_FPS
    orientation = resample(continuous(geometry.normalize(poses.orientation)), times, at)
    position, joints = resample(poses.position, times, at), resample(poses.joints, times, at)
    return PoseTable(poses.name, CLIP_FPS, position, geometry.normalize(orientation), joints)


def take_as_is(poses: PoseTable, robot: Robot) -> FittedClip:
    """A motion of this very robot: nothing to retarget."""
    poses = at_clip_rate(checked(poses))
    clip = make_clip(poses.name, robot, poses.position, poses.orientation, poses.joints)
    return FittedClip(clip, np.zeros((0, 4)), np.zeros(len(clip), dtype=bool))


def in_leg_order(columns: Floats, order: tuple[str, ...], width: int = 3) -> Floats:
    """Columns (T, 4 * width) of legs in some order, brought to FL FR RL RR."""
    legs = columns.reshape(len(columns), 4, width)
    return legs[:, [order.index(leg) for leg in LEGS]].reshape(len(columns), -1)


def parse_leg_order(words: object) -> tuple[str, ...]:
    """ "FR FL RR RL", "FR,FL,RR,RL" or a list of the four; hind legs may be called H or R."""
    names = words.replace(",", " ").split() if isinstance(words, str) else words if isinstance(words, list) else []
    order = tuple(str(name).strip().upper().replace("H", "R") for name in names)
    if sorted(order) != sorted(LEGS):
        raise ImportProblem(
            f"joint order {one_line(repr(words), 60)}: the four legs FL, FR, RL, RR are expected, in the file's order"
        )
    return order


def from_xyzw(quaternion: Floats) -> Floats:
    return quaternion[..., [3, 0, 1, 2]]
