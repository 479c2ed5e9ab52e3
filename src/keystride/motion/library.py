"""A library: clips laid end to end in contiguous arrays, from which training draws thousands of frames at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.errors import FileError
from keystride.motion.clip import Clip, mirror_clip
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Balance:
    """How often frames are drawn by how fast the base moves, whatever the clips hold most of.

    Dogs mostly stand; drawn evenly, standing still would earn a good style reward and nothing would walk.
    """

    speeds: tuple[float, ...] = (0.15, 0.6, 1.2)
    """m/s between the classes: still, slow, medium, fast."""
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
    """Training draws from this. Frame numbers run through all clips; `first` and `last` are those of a frame's clip."""

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
        self._drawable: dict[int, tuple[Indices, Floats]] = {}  # by frames ahead: frames, cumulated weights

    def __len__(self) -> int:
        return len(self.clip)

    def draw(self, random: np.random.Generator, count: int, *, ahead: int = 0) -> Indices:
        """Frames that have at least `ahead` more frames behind them in their clip."""
        if ahead not in self._drawable:
            allowed = np.flatnonzero((self.last - np.arange(len(self)) >= ahead) & (self._weight > 0))
            if not len(allowed):
                raise ValueError(f"no clip of the library is longer than {ahead} frames")
            self._drawable[ahead] = allowed, np.cumsum(self._weight[allowed])
        allowed, total = self._drawable[ahead]
        picks = np.searchsorted(total, random.random(count) * total[-1], side="right")
        return allowed[np.minimum(picks, len(allowed) - 1)]

    def grounded(self, rows: Indices) -> Floats:
        """Return (n, 3) base positions, raised where a foot would start below the ground."""
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
    """Frames by what happens in them, as the clips' segments say."""
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
    """Running mean over half a second, so that a pause between strides is not standing."""
    return np.convolve(np.pad(values, width // 2, mode="edge"), np.ones(width) / width, mode="valid")
