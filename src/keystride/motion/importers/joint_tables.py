"""Files that hold joint angles of this robot: Unitree-style CSV, and NumPy archives.

A CSV row is base position, quaternion x y z w and twelve joint angles; a header is optional. An archive is one of our own
clips, or has the keys of mjlab and BeyondMimic.
"""

from pathlib import Path

import numpy as np

from keystride.motion.clip import Clip, clip_from_arrays
from keystride.motion.importers.poses import (
    LEGS,
    ImportProblem,
    PoseTable,
    from_xyzw,
    in_leg_order,
    require_frames,
    take_as_is,
)
from keystride.motion.retargeting.fitting import FittedClip
from keystride.reading import one_line, read_arrays, read_text
from keystride.robot.description import Floats, Robot

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
    )  # before it is cut into lines: a file of empty ones would fill the memory
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not _is_number(lines[0].partition(",")[0]):
        lines = lines[1:]
    rows = [_row(line, number) for number, line in enumerate(lines)]
    require_frames(len(rows))
    return np.array(rows)


def _row(line: str, number: int) -> list[float]:
    count = line.count(",") + 1
    if count != COLUMNS:
        raise ImportProblem(f"truncated or another layout: {count} values in row {number}, {COLUMNS} expected")
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
    raise ImportProblem(f"another layout: keys {one_line(', '.join(sorted(arrays)))}")


def _own(arrays: dict[str, np.ndarray], name: str, robot: Robot) -> FittedClip:
    clip = clip_from_arrays(name, arrays)
    if len(clip.joint_names) != len(robot.joint_names) or set(clip.joint_names) != set(robot.joint_names):
        raise ImportProblem(f"another skeleton: joints {one_line(', '.join(clip.joint_names[:3]), 60)}, ...")
    columns = [clip.joint_names.index(joint) for joint in robot.joint_names]
    poses = PoseTable(name, clip.fps, clip.base_position, clip.base_orientation, clip.joint_angles[:, columns])
    take = take_as_is(poses, robot)
    return FittedClip(_with_metadata(take.clip, clip), take.residual, take.clamped)


def _with_metadata(clip: Clip, original: Clip) -> Clip:
    clip.metadata.update(original.metadata)
    return clip


def _tracking(arrays: dict[str, np.ndarray], name: str, order: tuple[str, ...]) -> PoseTable:
    """Bodies are the robot's links in the model's order; the first is the base."""
    joints = _numbers(arrays, "joint_pos")
    bodies, turns = _numbers(arrays, "body_pos_w"), _numbers(arrays, "body_quat_w")
    if joints.ndim != 2 or joints.shape[1] != JOINTS:
        raise ImportProblem(f"another skeleton: joint_pos is {joints.shape}, (frames, {JOINTS}) expected")
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
