"""NumPy archives: our own clips, and the key layout of mjlab and BeyondMimic."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

from keystride.motion.clip import Clip, load_clip
from keystride.motion.fitting import Take
from keystride.motion.importers.poses import LEGS, Poses, checked, in_leg_order, take_as_is
from keystride.motion.importers.problem import ImportProblem
from keystride.robot.description import Robot

OWN_KEYS = {"fps", "base_position", "base_orientation", "joint_angles", "joint_names"}
TRACKING_KEYS = {"fps", "joint_pos", "body_pos_w", "body_quat_w"}
JOINTS = 12


def read_npz(path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS) -> list[Take]:
    try:
        with np.load(path, allow_pickle=False) as file:
            keys = set(file.files)
            if keys >= OWN_KEYS:
                return [_own(path, name, robot)]
            if keys >= TRACKING_KEYS:
                return [take_as_is(_tracking(file, name, order), robot)]
    except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise ImportProblem(f"truncated or not a NumPy archive without pickles: {error}") from error
    raise ImportProblem(f"another layout: keys {', '.join(sorted(keys))}")


def _own(path: Path, name: str, robot: Robot) -> Take:
    clip = load_clip(path)
    if set(clip.joint_names) != set(robot.joint_names):
        raise ImportProblem(f"another skeleton: joints {', '.join(clip.joint_names[:3])}, ...")
    columns = [clip.joint_names.index(joint) for joint in robot.joint_names]
    poses = Poses(name, clip.fps, clip.base_position, clip.base_orientation, clip.joint_angles[:, columns])
    take = take_as_is(checked(poses), robot)
    return Take(_with_metadata(take.clip, clip), take.residual, take.clamped)


def _with_metadata(clip: Clip, original: Clip) -> Clip:
    clip.metadata.update(original.metadata)
    return clip


def _tracking(file: NpzFile, name: str, order: tuple[str, ...]) -> Poses:
    """Bodies are the robot's links in the model's order; the first is the base."""
    joints = np.asarray(file["joint_pos"], dtype=np.float64)
    bodies = np.asarray(file["body_pos_w"], dtype=np.float64)
    if joints.ndim != 2 or joints.shape[1] != JOINTS:
        raise ImportProblem(f"another skeleton: joint_pos is {joints.shape}, (frames, {JOINTS}) expected")
    if bodies.ndim != 3 or len(bodies) != len(joints):
        raise ImportProblem(f"body_pos_w is {bodies.shape}, ({len(joints)}, bodies, 3) expected")
    orientation = np.asarray(file["body_quat_w"], dtype=np.float64)[:, 0]
    fps = float(np.asarray(file["fps"]).reshape(-1)[0])
    return Poses(name, fps, bodies[:, 0], orientation, in_leg_order(joints, order))
