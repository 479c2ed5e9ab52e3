"""A clip: one motion of the robot, 50 frames a second, on file as .npz without pickles."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from keystride import geometry
from keystride.robot.description import Floats, Robot

FPS = 50.0


@dataclass(frozen=True)
class Clip:
    """Frames of a motion. World frame x forward, y left, z up; metres, radians, seconds."""

    name: str
    joint_names: tuple[str, ...]
    base_position: Floats  # (T, 3) world
    base_orientation: Floats  # (T, 4) w x y z, sign continuous
    joint_angles: Floats  # (T, 12)
    base_linear_velocity: Floats  # (T, 3) world
    base_angular_velocity: Floats  # (T, 3) world
    joint_velocities: Floats  # (T, 12)
    fps: float = FPS
    metadata: dict[str, Any] = field(default_factory=dict)  # source, licence, tags, edits

    def __len__(self) -> int:
        return len(self.base_position)

    @property
    def seconds(self) -> float:
        return (len(self) - 1) / self.fps

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.metadata.get("tags", ()))


def make_clip(
    name: str,
    robot: Robot,
    position: Floats,
    orientation: Floats,
    joints: Floats,
    metadata: dict[str, Any] | None = None,
) -> Clip:
    """A clip from poses at 50 frames/s; velocities by finite differences, as in the paper (dataset preparation)."""
    orientation = continuous(geometry.normalize(orientation))
    return Clip(
        name=name,
        joint_names=robot.joint_names,
        base_position=position,
        base_orientation=orientation,
        joint_angles=joints,
        base_linear_velocity=difference(position),
        base_angular_velocity=angular_difference(orientation),
        joint_velocities=difference(joints),
        metadata=metadata or {},
    )


def difference(values: Floats, fps: float = FPS) -> Floats:
    """Backward differences: frame t moved from t-1, so velocities sum back to positions. The first repeats the second."""
    steps = np.diff(values, axis=0) * fps
    return np.concatenate([steps[:1], steps])


def angular_difference(orientation: Floats, fps: float = FPS) -> Floats:
    """Angular velocity in the world frame by backward differences; (T, 3) rad/s."""
    turn = geometry.multiply(orientation[1:], geometry.conjugate(orientation[:-1]))
    steps = geometry.rotation_vector(turn) * fps
    return np.concatenate([steps[:1], steps])


def continuous(orientation: Floats) -> Floats:
    """The same rotations with signs chosen so that neighbours lie in one hemisphere."""
    flips = np.cumprod(np.where(np.sum(orientation[1:] * orientation[:-1], axis=-1) < 0, -1.0, 1.0))
    return orientation * np.concatenate([[1.0], flips])[:, None]


def mirror(clip: Clip, robot: Robot) -> Clip:
    """The clip as seen in a mirror in the x-z plane: left legs become right legs."""
    return replace(
        clip,
        name=f"{clip.name}_mirrored",
        base_position=clip.base_position * geometry.MIRROR_VECTOR,
        base_orientation=clip.base_orientation * geometry.MIRROR_QUATERNION,
        joint_angles=robot.mirror_joints(clip.joint_angles),
        base_linear_velocity=clip.base_linear_velocity * geometry.MIRROR_VECTOR,
        base_angular_velocity=clip.base_angular_velocity * geometry.MIRROR_ROTATION,
        joint_velocities=robot.mirror_joints(clip.joint_velocities),
    )


ARRAYS = (
    "base_position",
    "base_orientation",
    "joint_angles",
    "base_linear_velocity",
    "base_angular_velocity",
    "joint_velocities",
)


def save_clip(clip: Clip, path: Path) -> None:
    """Written beside its place and moved there, so that no half-written clip is ever left."""
    part = path.with_suffix(".part")
    arrays: dict[str, Any] = {name: getattr(clip, name) for name in ARRAYS}
    with part.open("wb") as file:
        np.savez_compressed(
            file, fps=clip.fps, joint_names=np.array(clip.joint_names), metadata=json.dumps(clip.metadata), **arrays
        )
    part.replace(path)


def load_clip(path: Path) -> Clip:
    with np.load(path, allow_pickle=False) as file:
        return Clip(
            name=path.stem,
            joint_names=tuple(str(name) for name in file["joint_names"]),
            fps=float(file["fps"]),
            metadata=json.loads(str(file["metadata"])),
            **{name: file[name].astype(np.float64) for name in ARRAYS},
        )
