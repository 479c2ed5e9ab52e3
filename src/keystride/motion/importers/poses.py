"""Poses of a robot as files hold them, the checks that every importer makes before they become a clip, and two file formats.

A CSV row is base position, quaternion x y z w and twelve joint angles; a header is optional. An .npz archive is one of
Keystride's own clips, or has the keys of mjlab and BeyondMimic."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keystride import geometry
from keystride.errors import FileError
from keystride.motion.clip import CLIP_FPS, Clip, clip_from_arrays, continuous, make_clip
from keystride.motion.retargeting.fitting import FittedClip
from keystride.motion.signals import resample
from keystride.reading import one_line, read_arrays, read_text
from keystride.robot.description import Floats, Robot

MAX_FRAMES = 100_000  # of a file and of the clip made from it: half an hour
FRAME_RATES = (1.0, 1000.0)  # per second
HEIGHTS = (0.03, 2.0)  # m: a base whose median height is outside is in another unit
MAX_DISTANCE = 10_000.0  # m from the origin
LARGEST_ANGLE = 2 * np.pi  # rad: beyond, angles must be degrees
LEGS = ("FL", "FR", "RL", "RR")


class ImportProblem(FileError):
    """A file cannot be imported: it is truncated, of the wrong skeleton, not finite, or in the wrong unit."""


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
    """Raise ImportProblem if the rate is implausible, or the clip made from the frames would be too long."""
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
    """Return the poses unchanged; raise ImportProblem if something is wrong with them."""
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
    if farthest.max() > MAX_DISTANCE:
        raise ImportProblem(
            f"the base is {farthest.max():.3g} m from the origin in frame {farthest.argmax()}; "
            f"allowed: at most {MAX_DISTANCE:g} m"
        )
    if np.abs(poses.joints).max() > LARGEST_ANGLE:
        raise ImportProblem(f"wrong unit: a joint angle of {np.abs(poses.joints).max():.3g}, radians expected")
    return poses


def at_clip_rate(poses: PoseTable) -> PoseTable:
    """Return the same motion at 50 frames/s."""
    if abs(poses.fps - CLIP_FPS) < 1e-6:
        return poses
    times = np.arange(len(poses)) / poses.fps
    at = np.arange(int(np.floor(times[-1] * CLIP_FPS + 1e-6)) + 1) / CLIP_FPS
    orientation = resample(continuous(geometry.normalize(poses.orientation)), times, at)
    position, joints = resample(poses.position, times, at), resample(poses.joints, times, at)
    return PoseTable(poses.name, CLIP_FPS, position, geometry.normalize(orientation), joints)


def take_as_is(poses: PoseTable, robot: Robot) -> FittedClip:
    """Return the clip of a motion of the robot itself, which needs no retargeting."""
    poses = at_clip_rate(checked(poses))
    clip = make_clip(poses.name, robot, poses.position, poses.orientation, poses.joints)
    return FittedClip(clip, np.zeros((0, 4)), np.zeros(len(clip), dtype=bool))


def in_leg_order(columns: Floats, order: tuple[str, ...], width: int = 3) -> Floats:
    """Return columns (T, 4 * width) of legs, given in some order, in the order FL FR RL RR."""
    legs = columns.reshape(len(columns), 4, width)
    return legs[:, [order.index(leg) for leg in LEGS]].reshape(len(columns), -1)


def parse_leg_order(words: object) -> tuple[str, ...]:
    """Return the order of the legs from text such as "FR FL RR RL" or "FR,FL,HR,HL", or from a list of the four."""
    names = words.replace(",", " ").split() if isinstance(words, str) else words if isinstance(words, list) else []
    order = tuple(str(name).strip().upper().replace("H", "R") for name in names)
    if sorted(order) != sorted(LEGS):
        raise ImportProblem(
            f"joint order {one_line(repr(words), 60)}: the four legs FL, FR, RL, RR are expected, in the file's order"
        )
    return order


def from_xyzw(quaternion: Floats) -> Floats:
    return quaternion[..., [3, 0, 1, 2]]


COLUMNS = 19
OWN_KEYS = {"fps", "base_position", "base_orientation", "joint_angles", "joint_names"}
TRACKING_KEYS = {"fps", "joint_pos", "body_pos_w", "body_quat_w"}
JOINTS = 12


def read_csv(path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS, fps: float = 50.0) -> list[FittedClip]:
    table = parse_table(read_text(path))
    joints = in_leg_order(table[:, 7:], order)
    return [take_as_is(PoseTable(name, fps, table[:, :3], from_xyzw(table[:, 3:7]), joints), robot)]


def parse_table(text: str) -> Floats:
    require_frames(
        text.count("\n") + 1, least=0
    )  # before splitting into lines: a file of empty ones would fill the memory
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not _is_number(lines[0].partition(",")[0]):
        lines = lines[1:]
    rows = [_row(line, number) for number, line in enumerate(lines)]
    require_frames(len(rows))
    return np.array(rows)


def _row(line: str, number: int) -> list[float]:
    count = line.count(",") + 1
    if count != COLUMNS:
        raise ImportProblem(f"truncated or wrong layout: {count} values in row {number}, {COLUMNS} expected")
    try:
        return [float(word) for word in line.split(",")]
    except ValueError as error:
        raise ImportProblem(f"a value in row {number} is not a number") from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_npz(path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS) -> list[FittedClip]:
    arrays = read_arrays(path)
    if arrays.keys() >= OWN_KEYS:
        return [_own(arrays, name, robot)]
    if arrays.keys() >= TRACKING_KEYS:
        return [take_as_is(_tracking(arrays, name, order), robot)]
    raise ImportProblem(f"wrong layout: keys {one_line(', '.join(sorted(arrays)))}")


def _own(arrays: dict[str, np.ndarray], name: str, robot: Robot) -> FittedClip:
    clip = clip_from_arrays(name, arrays)
    if len(clip.joint_names) != len(robot.joint_names) or set(clip.joint_names) != set(robot.joint_names):
        raise ImportProblem(f"wrong skeleton: joints {one_line(', '.join(clip.joint_names[:3]), 60)}, ...")
    columns = [clip.joint_names.index(joint) for joint in robot.joint_names]
    poses = PoseTable(name, clip.fps, clip.base_position, clip.base_orientation, clip.joint_angles[:, columns])
    take = take_as_is(poses, robot)
    return FittedClip(_with_metadata(take.clip, clip), take.residual, take.clamped)


def _with_metadata(clip: Clip, original: Clip) -> Clip:
    clip.metadata.update(original.metadata)
    return clip


def _tracking(arrays: dict[str, np.ndarray], name: str, order: tuple[str, ...]) -> PoseTable:
    """Return the poses of a tracking file, whose bodies are the robot's links in the model's order, the base first."""
    joints = _numbers(arrays, "joint_pos")
    bodies, turns = _numbers(arrays, "body_pos_w"), _numbers(arrays, "body_quat_w")
    if joints.ndim != 2 or joints.shape[1] != JOINTS:
        raise ImportProblem(f"wrong skeleton: joint_pos is {joints.shape}, (frames, {JOINTS}) expected")
    for what, values, width in (("body_pos_w", bodies, 3), ("body_quat_w", turns, 4)):
        if values.ndim != 3 or len(values) != len(joints) or values.shape[1] < 1 or values.shape[2] != width:
            raise ImportProblem(f"{what} is {values.shape}, ({len(joints)}, bodies, {width}) expected")
    fps = _numbers(arrays, "fps").reshape(-1)
    if not len(fps):
        raise ImportProblem("fps is empty; allowed: one number")
    return PoseTable(name, float(fps[0]), bodies[:, 0], turns[:, 0], in_leg_order(joints, order))


def _numbers(arrays: dict[str, np.ndarray], name: str) -> Floats:
    if arrays[name].dtype.kind not in "fiu":
        raise ImportProblem(f"array {name!r} is {arrays[name].dtype}; allowed: numbers")
    return arrays[name].astype(np.float64)
