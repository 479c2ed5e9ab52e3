"""Import a folder of files: each becomes clips, or is refused with a reason."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from keystride.errors import FileError
from keystride.motion.clip import CLIP_ARRAYS, Clip, mirror_clip
from keystride.motion.importers.catalogue import IMPORTERS, ImportOptions
from keystride.motion.importers.poses import require_finite
from keystride.motion.quality import Figures, FrameMeasures, figures, measure_clip
from keystride.motion.retargeting.fitting import FittedClip
from keystride.motion.tagging import tag_metadata
from keystride.reading import one_line
from keystride.robot.description import Floats, Robot

LONGEST_NAME = 180  # bytes of a clip's name: file systems allow 255, and a temporary name is longer
INTERNAL = "internal error"  # in a reason: not the file's fault


@dataclass(frozen=True)
class Imported:
    clip: Clip
    frames: FrameMeasures
    figures: Figures
    residual: Floats  # m, of all feet in frames that were not clamped


@dataclass(frozen=True)
class RefusedFile:
    file: str
    reason: str


def find_files(kind: str, place: Path) -> list[Path]:
    """Return one file, or the files of a folder that have the format's suffixes."""
    if place.is_file():
        return [place]
    return sorted(path for path in place.iterdir() if path.name.lower().endswith(IMPORTERS[kind].suffixes))


def import_files(
    kind: str, files: Sequence[Path], robot: Robot, options: ImportOptions
) -> Iterator[list[Imported] | RefusedFile]:
    """Yield for each file, in order, its clips or why there are none. No file keeps the others from being imported."""
    taken: set[str] = set()  # names of clips so far: a name is a file of the library
    for path in files:
        try:
            takes = IMPORTERS[kind].read(path, clip_name(path), robot, options)
            takes = [replace(take, clip=_named(take.clip, taken)) for take in takes]
            yield [one for take in takes for one in _finished(take, path, kind, robot, options)]
        except FileError as problem:
            yield RefusedFile(path.name, str(problem))
        except OSError as problem:
            yield RefusedFile(path.name, f"cannot be read: {problem.strerror or problem}")
        except Exception as fault:  # a bug in a reader must not lose the other files
            yield RefusedFile(path.name, f"{INTERNAL}: {type(fault).__name__}: {one_line(fault)}")


def clip_name(path: Path) -> str:
    """Return the name of the clip of a file, which is also a valid file name: printable, no leading dot, not too long."""
    name = path.name.removesuffix(".gz")
    name = name.rpartition(".")[0] or name
    name = "".join(letter if letter.isprintable() and letter not in "/\\" else "_" for letter in name)
    name = name.encode("utf-8", "replace")[:LONGEST_NAME].decode("utf-8", "ignore").lstrip(". ")
    return name or "clip"


def _named(clip: Clip, taken: set[str]) -> Clip:
    """Return the clip under a name that no other clip has, also where upper and lower case are the same."""
    name, number = clip.name, 1
    while {name.casefold(), f"{name}_mirrored".casefold()} & taken:
        number += 1
        name = f"{clip.name}_{number}"
    taken |= {name.casefold(), f"{name}_mirrored".casefold()}
    return clip if name == clip.name else replace(clip, name=name)


def _finished(take: FittedClip, path: Path, kind: str, robot: Robot, options: ImportOptions) -> list[Imported]:
    for what in CLIP_ARRAYS:
        require_finite(getattr(take.clip, what), what)
    clip = replace(take.clip, metadata=_metadata(take.clip, path, kind, robot, options))
    try:
        json.dumps(clip.metadata, ensure_ascii=False).encode()
    except (UnicodeEncodeError, ValueError) as error:
        raise FileError(f"metadata cannot be written: {one_line(error)}") from error
    clips = [clip, mirror_clip(clip, robot)] if options.mirrored else [clip]
    rows = take.residual[~take.clamped[: len(take.residual)]].reshape(-1)
    return [_measured(one, rows, robot) for one in clips]


def _measured(clip: Clip, residual: Floats, robot: Robot) -> Imported:
    frames = measure_clip(clip, robot)
    return Imported(clip, frames, figures(frames), residual)


def _metadata(clip: Clip, path: Path, kind: str, robot: Robot, options: ImportOptions) -> dict[str, Any]:
    facts = {
        "source": path.name.encode("utf-8", "replace").decode(),
        "licence": options.licence or IMPORTERS[kind].licence(options),
        "format": kind,
        **clip.metadata,
    }
    by_hand = facts.pop("tags_by_hand", ())
    return facts if "tags" in facts else {**facts, **tag_metadata(clip, robot, by_hand)}


def median_residual(imported: Sequence[Imported]) -> float:
    """Return the median toe residual of frames that were not clamped, m; NaN if nothing was retargeted."""
    rows = np.concatenate([one.residual for one in imported]) if imported else np.zeros(0)
    return float(np.median(rows)) if len(rows) else float("nan")
