"""A library: the clips that training samples from.

In memory they are laid end to end in contiguous arrays, from which thousands of frames are drawn at a time. On disk it is a
folder of clips with an index that says what they are and how they are split."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from keystride import geometry
from keystride.errors import FileError
from keystride.files import part_folder, recover
from keystride.motion.clip import Clip, load_clip, mirror_clip, save_clip
from keystride.reading import check_model, read_json
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Balance:
    """How often frames are drawn by the speed of the base, regardless of how common each speed is in the clips.

    Dogs mostly stand: with uniform sampling, standing still would earn a good style reward and policies would not walk.
    """

    speeds: tuple[float, ...] = (0.15, 0.6, 1.2)
    """Boundaries in m/s between the classes still, slow, medium and fast."""
    shares: tuple[float, ...] = (0.1, 0.25, 0.4, 0.25)


@dataclass(frozen=True)
class Frames:
    """Poses and velocities of n frames."""

    position: Floats  # (n, 3) world
    orientation: Floats  # (n, 4)
    joint_angles: Floats  # (n, 12)
    linear_velocity: Floats  # (n, 3) world
    angular_velocity: Floats  # (n, 3) base frame
    joint_velocities: Floats  # (n, 12)

    def __getitem__(self, rows: Indices) -> "Frames":
        return Frames(*(getattr(self, field.name)[rows] for field in fields(self)))


class Library:
    """The clips that training samples from. Frames are numbered across all clips; `first` and `last` are those of a frame's clip."""

    def __init__(
        self, robot: Robot, clips: Sequence[Clip], *, mirrored: bool = True, balance: Balance | None = None
    ) -> None:
        if not clips:
            raise ValueError("a library needs at least one clip")
        for clip in clips:
            if clip.joint_names != robot.joint_names:
                raise FileError(f"clip {clip.name}: its joints are not those of {robot.name}, or in another order")
        clips = [*clips, *(mirror_clip(clip, robot) for clip in clips)] if mirrored else list(clips)
        self.robot = robot
        self.names = tuple(clip.name for clip in clips)
        self.frames = _stack(clips)
        self.feet = feet_from_joints(robot, self.frames.joint_angles)  # (N, 4, 3) base frame
        lengths = np.array([len(clip) for clip in clips])
        self.clip = np.repeat(np.arange(len(clips)), lengths)  # (N,)
        self.last = np.repeat(np.cumsum(lengths) - 1, lengths)  # (N,)
        self.first = self.last - np.repeat(lengths - 1, lengths)  # (N,)
        self.authored = np.array([clip.metadata.get("source") == "authored" for clip in clips])  # by clip
        self.tagged = _frames_by_tag(clips, np.cumsum(lengths) - lengths)
        self._weight = _weights(self.frames, clips, self.clip, balance or Balance())
        self._drawable: dict[int, tuple[Indices, Floats]] = {}  # by number of frames ahead: frames, cumulative weights

    def __len__(self) -> int:
        return len(self.clip)

    def draw(self, random: np.random.Generator, count: int, *, ahead: int = 0) -> Indices:
        """Draw frames that are followed by at least `ahead` more frames of their clip."""
        if ahead not in self._drawable:
            allowed = np.flatnonzero((self.last - np.arange(len(self)) >= ahead) & (self._weight > 0))
            if not len(allowed):
                raise ValueError(f"no clip of the library is longer than {ahead} frames")
            self._drawable[ahead] = allowed, np.cumsum(self._weight[allowed])
        allowed, total = self._drawable[ahead]
        picks = np.searchsorted(total, random.random(count) * total[-1], side="right")
        return allowed[np.minimum(picks, len(allowed) - 1)]

    def grounded(self, rows: Indices) -> Floats:
        """Return base positions (n, 3), raised where a foot would be below the ground."""
        position = self.frames.position[rows].copy()
        feet = geometry.rotate(self.frames.orientation[rows][:, None], self.feet[rows])[..., 2] + position[:, 2:]
        position[:, 2] += np.maximum(self.robot.foot_radius - feet.min(axis=1), 0.0)
        return position


def _stack(clips: Sequence[Clip]) -> Frames:
    def all_of(name: str) -> Floats:
        return np.concatenate([getattr(clip, name) for clip in clips])

    orientation = all_of("base_orientation")
    return Frames(
        position=all_of("base_position"),
        orientation=orientation,
        joint_angles=all_of("joint_angles"),
        linear_velocity=all_of("base_linear_velocity"),
        angular_velocity=geometry.rotate_inverse(orientation, all_of("base_angular_velocity")),
        joint_velocities=all_of("joint_velocities"),
    )


def _frames_by_tag(clips: Sequence[Clip], starts: NDArray[np.int64]) -> dict[str, Indices]:
    """Return frame numbers by the tag of the segment they belong to."""
    found: dict[str, list[Indices]] = {}
    for clip, start in zip(clips, starts, strict=True):
        for begin, end, tag in clip.metadata.get("segments", ()):
            found.setdefault(str(tag), []).append(start + np.arange(int(begin), min(int(end), len(clip))))
    return {tag: np.concatenate(parts) for tag, parts in found.items()}


def _weights(frames: Frames, clips: Sequence[Clip], clip_of: Indices, balance: Balance) -> Floats:
    """Return one weight per frame: the clip's own, scaled so that each speed class gets its share."""
    speed = _smooth(np.linalg.norm(frames.linear_velocity[:, :2], axis=1))
    kind = np.searchsorted(balance.speeds, speed)
    weight = np.array([float(clip.metadata.get("weight", 1.0)) for clip in clips])[clip_of]
    held = np.bincount(kind, weights=weight, minlength=len(balance.shares))
    scale = np.divide(balance.shares, held, out=np.zeros(len(balance.shares)), where=held > 0)
    return weight * scale[kind]


def _smooth(values: Floats, width: int = 25) -> Floats:
    """Return the running mean over half a second, so that a pause between strides does not count as standing."""
    return np.convolve(np.pad(values, width // 2, mode="edge"), np.ones(width) / width, mode="valid")


INDEX = "index.json"


def save_library(
    clips: Iterable[Clip],
    folder: Path,
    robot_name: str,
    *,
    held_out: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Path:
    """Write all clips and the index, replacing a library that is there atomically."""
    if folder.exists() and any(folder.iterdir()) and not (folder / INDEX).exists():
        raise FileExistsError(f"{folder} holds something that is not a library; name another folder")
    kept, weights = set(held_out), weights or {}
    with part_folder(folder) as part:
        entries = []
        for clip in clips:
            save_clip(clip, part / f"{clip.name}.npz")
            split = "held_out" if clip.name in kept else "train"
            entries.append(index_entry(clip, split, weights.get(clip.name, 1.0)))
        _write_index(part, robot_name, entries)
    return folder / INDEX


def index_entry(clip: Clip, split: str = "train", weight: float = 1.0) -> dict[str, Any]:
    return {
        "file": f"{clip.name}.npz",
        "tags": list(clip.tags),
        "split": split,
        "seconds": round(clip.seconds, 3),
        "weight": weight,
        "source": clip.metadata.get("source", ""),
        "licence": clip.metadata.get("licence", ""),
    }


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True)
    file: str = Field(max_length=250)
    tags: list[str] = []
    split: Literal["train", "held_out"]
    seconds: float = Field(ge=0.0, le=1e6)
    weight: float = Field(ge=0.0, le=1e6)
    source: str = ""
    licence: str | None = ""

    @field_validator("file")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        """Require a plain file name; a path could point outside the library."""
        if not re.fullmatch(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*\.npz", name):
            raise ValueError("input should be the name of an .npz file, without a folder")
        return name


class _Index(BaseModel):
    model_config = ConfigDict(strict=True)
    version: Literal[1]
    robot: str
    clips: list[_Entry] = Field(max_length=100_000)


def read_index(folder: Path) -> dict[str, Any]:
    """Return the index of a library; FileError names the entries that are wrong."""
    path = folder / INDEX
    if not folder.exists():
        recover(folder)
    if not path.exists():
        raise FileNotFoundError(2, f"not a library: it has no {INDEX}", str(folder))
    index = check_model(read_json(path), _Index, str(path))
    names = [entry.file for entry in index.clips]
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise FileError(f"{path}: {twice!r} is listed more than once")
    return index.model_dump()


def load_library_clips(folder: Path, split: str | None = None) -> list[Clip]:
    """Return the clips of a library, or those of one split, in the order of its index."""
    entries = [entry for entry in read_index(folder)["clips"] if split in (None, entry["split"])]
    clips = [_weighted(load_clip(folder / entry["file"]), float(entry["weight"])) for entry in entries]
    for clip in clips:
        if clip.joint_names != clips[0].joint_names:
            raise FileError(f"{folder / clip.name}.npz: its joints are not those of {clips[0].name}.npz")
    return clips


def _weighted(clip: Clip, weight: float) -> Clip:
    """Return the clip with the weight that the library's index gives it."""
    return replace(clip, metadata={**clip.metadata, "weight": weight})


def _write_index(folder: Path, robot_name: str, entries: list[dict[str, Any]]) -> None:
    content = {"version": 1, "robot": robot_name, "clips": entries}
    (folder / INDEX).write_text(json.dumps(content, indent=1) + "\n")
