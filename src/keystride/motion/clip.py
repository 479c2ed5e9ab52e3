"""A clip: one motion of the robot at 50 frames per second, stored as .npz without pickles."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from keystride import geometry
from keystride.errors import FileError
from keystride.files import open_atomically
from keystride.reading import check_model, parse_json, read_arrays
from keystride.robot.description import Floats, Robot

CLIP_FPS = 50.0
MAX_CLIP_VALUE = 1e6  # m, rad, m/s or rad/s: larger values mean a damaged file


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
    fps: float = CLIP_FPS
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
    """Make a clip from poses at 50 frames/s; velocities by finite differences, as in the paper (dataset preparation)."""
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


def difference(values: Floats, fps: float = CLIP_FPS) -> Floats:
    """Return velocities as backward differences, which sum back to the positions; the first repeats the second."""
    steps = np.diff(values, axis=0) * fps
    return np.concatenate([steps[:1], steps])


def angular_difference(orientation: Floats, fps: float = CLIP_FPS) -> Floats:
    """Return angular velocities in the world frame as backward differences, (T, 3) rad/s."""
    turn = geometry.multiply(orientation[1:], geometry.conjugate(orientation[:-1]))
    steps = geometry.rotation_vector(turn) * fps
    return np.concatenate([steps[:1], steps])


def continuous(orientation: Floats) -> Floats:
    """Return the same rotations with signs chosen so that neighbours lie in one hemisphere."""
    flips = np.cumprod(np.where(np.sum(orientation[1:] * orientation[:-1], axis=-1) < 0, -1.0, 1.0))
    return orientation * np.concatenate([[1.0], flips])[:, None]


def mirror_clip(clip: Clip, robot: Robot) -> Clip:
    """Return the clip as seen in a mirror in the x-z plane: left legs become right legs."""
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


CLIP_ARRAYS = (
    "base_position",
    "base_orientation",
    "joint_angles",
    "base_linear_velocity",
    "base_angular_velocity",
    "joint_velocities",
)


def save_clip(clip: Clip, path: Path) -> None:
    """Write the clip atomically."""
    arrays: dict[str, Any] = {name: getattr(clip, name) for name in CLIP_ARRAYS}
    with open_atomically(path) as file:
        np.savez_compressed(
            file, fps=clip.fps, joint_names=np.array(clip.joint_names), metadata=json.dumps(clip.metadata), **arrays
        )


def load_clip(path: Path) -> Clip:
    """Read a clip; FileError names the file and what is wrong with it."""
    try:
        return clip_from_arrays(path.stem, read_arrays(path))
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


def clip_from_arrays(name: str, arrays: dict[str, np.ndarray]) -> Clip:
    """Check the arrays of a file and put them together."""
    joint_names = tuple(str(one) for one in _entry(arrays, "joint_names", "U", 1))
    frames = len(_entry(arrays, "base_position", "fiu", 2))
    widths = (3, 4, len(joint_names), 3, 3, len(joint_names))
    values = {one: _table(arrays, one, (frames, width)) for one, width in zip(CLIP_ARRAYS, widths, strict=True)}
    fps = float(_entry(arrays, "fps", "fiu", 0))
    if not 1.0 <= fps <= 1000.0 or frames < 2:
        raise FileError(f"{frames} frames at {fps:g} per second; allowed: two or more at 1 to 1000 per second")
    metadata = parse_json(str(_entry(arrays, "metadata", "U", 0)))
    check_model(metadata, _Metadata, "metadata")
    return Clip(name=name, joint_names=joint_names, fps=fps, metadata=metadata, **values)


class _Metadata(BaseModel):
    """The entries of a clip's metadata that are used; others are allowed."""

    model_config = ConfigDict(strict=True)
    source: str = ""
    licence: str | None = ""
    tags: list[str] = []
    segments: list[tuple[int, int, str]] = []
    edits: dict[str, Any] = {}
    weight: float = Field(default=1.0, ge=0.0, le=1e6)


def _entry(arrays: dict[str, np.ndarray], name: str, kinds: str, dimensions: int) -> np.ndarray:
    """Return an array of the archive if it is of one of the kinds of numpy (f, i, u, U) and of the right dimension."""
    if name not in arrays:
        raise FileError(f"no array {name!r}; a clip has fps, joint_names, metadata, {', '.join(CLIP_ARRAYS)}")
    values = arrays[name]
    if values.dtype.kind not in kinds or values.ndim != dimensions:
        kind = "text" if kinds == "U" else "numbers"
        raise FileError(f"array {name!r} is {values.ndim}-dimensional {values.dtype}; allowed: {dimensions}-d {kind}")
    return values


def _table(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, int]) -> Floats:
    values = _entry(arrays, name, "fiu", 2)
    if values.shape != shape:
        raise FileError(f"array {name!r} is {values.shape}, {shape} expected")
    bad = np.flatnonzero(~(np.abs(values.astype(np.float64)) < MAX_CLIP_VALUE).all(axis=1))
    if len(bad):
        raise FileError(f"array {name!r}: frame {bad[0]} holds values that are not finite or beyond {MAX_CLIP_VALUE:g}")
    return values.astype(np.float64)
