"""Find policies, and read and write the metadata of one: strings in its ONNX file.

A policy is a bundle that ships, by name; a bundle folder; an ONNX file; a training run or a checkpoint. The first names of
the metadata, and lists separated by commas, are those of mjlab."""

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from keystride.errors import FileError
from keystride.files import recover
from keystride.keyframes.inbetween.ranges import TrainedRanges
from keystride.reading import one_line

ZEROS = "0" * 64
TRAINED = "trained_"  # prefix of the fields below that hold trained ranges
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
    action_scale: tuple[float, ...]  # rad per unit of action
    observation_names: tuple[str, ...]  # the graph's inputs
    robot: str
    control_dt: float  # s
    goals: str  # components of keyframes in training: position, pose or any
    goal_components: tuple[str, ...]  # components that the policy was trained on; the graph ignores the others
    max_keyframes: int
    see: str  # all keyframes, or the next only
    value_names: tuple[str, ...]  # names of a critic's outputs; empty for a policy
    training_steps: int
    training_data: str
    licence: str
    keystride_version: str
    weights_sha256: str  # of the trained tensors, see `policy.loading.fingerprint`
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
        metadata.ranges  # noqa: B018 (validates the ranges)
    except ValueError as error:
        raise PolicyError(f"its metadata is damaged: {error}") from error
    return metadata


def sealed(content: bytes) -> bytes:
    """Return the serialized file with its checksum in place of the zeros."""
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


SHIPPED = Path(__file__).with_name("shipped")
POLICY_FILE = "policy.onnx"  # the actor, with normalization and the computation of observations
CRITIC = "critic.onnx"  # the critics, with the same
WEIGHTS = "weights.safetensors"  # of all networks, for further training
CONFIG = "config.yaml"  # all settings of the run
CURVE = "curve.json"  # its learning curve, see policy.curve
FIGURES = "figures.json"  # rows of `keystride evaluate`; optional
NOTES_FILE = "notes.md"  # known limitations; optional
CARD = "card.md"  # the model card
METRICS_FILE = "metrics.jsonl"  # in runs only


def known() -> tuple[str, ...]:
    """Return the names of the policies that ship."""
    return tuple(sorted(path.name for path in SHIPPED.glob("*") if is_bundle(path)))


def find(name_or_path: str | Path) -> Path:
    """Return the bundle folder, ONNX file, run or checkpoint folder of a policy. Shipped names take precedence over paths."""
    if str(name_or_path) in known():
        return SHIPPED / str(name_or_path)
    path = Path(name_or_path)
    if not path.exists():
        recover(path)
    if not path.exists():
        raise PolicyError(f"no policy {str(name_or_path)!r}: {_choices()}")
    if path.is_file() or is_bundle(path) or is_trained_run(path) or is_checkpoint(path):
        return path
    raise PolicyError(f"{path} is neither a bundle nor a run with a checkpoint: {_choices()}")


def onnx_file(name_or_path: str | Path, name: str = POLICY_FILE) -> Path:
    """Return the ONNX file of a policy, or of its critics with the name CRITIC.

    Runs have one too, written whenever their best checkpoint changes.
    """
    path = find(name_or_path)
    if path.is_file():
        return path
    if (path / name).is_file():
        return path / name
    if is_bundle(path):
        raise PolicyError(f"{path} has no {name}")
    raise PolicyError(f"{path} has no {name} yet: `keystride export {path} --out FILE.onnx` makes one")


def is_bundle(path: Path) -> bool:
    return (path / POLICY_FILE).is_file() and (path / WEIGHTS).is_file()


def is_trained_run(path: Path) -> bool:
    return (path / CONFIG).is_file() and run_checkpoint(path) is not None


def is_checkpoint(path: Path) -> bool:
    return (path / "learner.safetensors").is_file()


def run_checkpoint(run: Path, *, newest: bool = False) -> Path | None:
    """Return the best checkpoint of a run, or its newest."""
    if is_checkpoint(run / "best") and not newest:
        return run / "best"
    numbered = sorted(path for path in (run / "checkpoints").glob("[0-9]*") if path.name.isdigit())
    return numbered[-1] if numbered else None


def home(place: Path) -> Path:
    """Return the folder with a policy's configuration: the bundle, the run, or the run of a checkpoint."""
    for folder in (place, place.parent, place.parent.parent):
        if (folder / CONFIG).is_file():
            return folder
    raise PolicyError(f"{place}: it has no {CONFIG}")


def _choices() -> str:
    names = known()
    shipped = f"known names are {', '.join(names)}; " if names else ""
    return f"{shipped}or give a bundle folder, an .onnx file or a run folder"
