"""The metadata of a policy: strings in its ONNX file.

The first names, and lists separated by commas, are those of mjlab.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

from keystride.errors import FileError
from keystride.keyframes.inbetween.ranges import TrainedRanges
from keystride.reading import one_line

ZEROS = "0" * 64
TRAINED = "trained_"  # begins the names of the trained ranges
RANGE_NAMES = tuple(entry.name for entry in fields(TrainedRanges) if entry.name != "components")
MARK = b"file_sha256\x12\x40"  # in the file: the key, then the tag and the length of its value


class PolicyError(FileError):
    """A policy cannot be found, read or used; the message gives the reason in one line."""


@dataclass(frozen=True)
class Metadata:
    joint_names: tuple[str, ...]
    joint_stiffness: tuple[float, ...]  # N m/rad
    joint_damping: tuple[float, ...]  # N m s/rad
    default_joint_pos: tuple[float, ...]  # rad, where the action is zero
    action_scale: tuple[float, ...]  # rad a unit of action
    observation_names: tuple[str, ...]  # the graph's inputs
    robot: str
    control_dt: float  # s
    goals: str  # position, pose or any: what its keyframes held in training
    goal_components: tuple[str, ...]  # those it knows; the graph ignores the others
    max_keyframes: int
    see: str  # all keyframes, or the next only
    value_names: tuple[str, ...]  # of a critic's outputs; a policy has none
    training_steps: int
    training_data: str
    licence: str
    keystride_version: str
    weights_sha256: str  # of the trained tensors, see policy.weights
    # Ranges from one keyframe to the next in training; files without these were trained on the paper's ranges.
    trained_gap_s: tuple[float, ...] = TrainedRanges.gap_s
    trained_distance_m: tuple[float, ...] = TrainedRanges.distance_m
    trained_direction_rad: tuple[float, ...] = TrainedRanges.direction_rad
    trained_turn_rad: tuple[float, ...] = TrainedRanges.turn_rad
    trained_speed_m_s: tuple[float, ...] = TrainedRanges.speed_m_s  # ahead, sideways, backwards
    trained_turn_rate_rad_s: float = TrainedRanges.turn_rate_rad_s
    trained_height_m: tuple[float, ...] = TrainedRanges.height_m
    file_sha256: str = ZEROS  # of the whole file, with these digits as zeros

    @property
    def ranges(self) -> TrainedRanges:
        """The trained ranges, as the planner of in-betweens reads them."""
        trained = {name: getattr(self, f"{TRAINED}{name}") for name in RANGE_NAMES}
        return TrainedRanges(**trained, components=self.goal_components)

    def as_strings(self) -> dict[str, str]:
        return {field.name: _text(getattr(self, field.name)) for field in fields(self)}


def from_strings(strings: Mapping[str, str]) -> Metadata:
    if "joint_names" not in strings or "robot" not in strings:
        raise PolicyError("it has no keystride metadata; `keystride export` writes files that have it")
    kinds = get_type_hints(Metadata)
    absent = [entry.name for entry in fields(Metadata) if entry.default is MISSING and entry.name not in strings]
    if absent:
        raise PolicyError(f"its metadata lacks {', '.join(absent)}")
    metadata = Metadata(**{name: _value(kind, name, strings[name]) for name, kind in kinds.items() if name in strings})
    try:
        metadata.ranges  # noqa: B018 (it checks itself)
    except ValueError as error:
        raise PolicyError(f"its metadata is damaged: {error}") from error
    return metadata


def sealed(content: bytes) -> bytes:
    """Return the serialised file with its checksum in place of the zeros."""
    start = _digits(content)
    return content[:start] + file_checksum(content).encode() + content[start + len(ZEROS) :]


def file_checksum(content: bytes) -> str:
    start = _digits(content)
    digest = hashlib.sha256(content[:start])
    digest.update(ZEROS.encode())
    digest.update(content[start + len(ZEROS) :])
    return digest.hexdigest()


def _digits(content: bytes) -> int:
    place = content.find(MARK)
    if place < 0:
        raise PolicyError("it has no checksum")
    return place + len(MARK)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(kind: Any, name: str, text: str) -> Any:
    try:
        if kind in (str, int, float):
            return kind(text)
        entry = kind.__args__[0]  # tuple[entry, ...]
        return tuple(entry(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise PolicyError(f"its metadata is damaged: {name} is {one_line(repr(text), 40)}") from error
