"""Import a folder of files: whatever can be used becomes clips, whatever cannot is named with its reason."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keystride.motion.clip import Clip, mirror
from keystride.motion.fitting import Take
from keystride.motion.importers.amp import read_amp
from keystride.motion.importers.animal import read_animal
from keystride.motion.importers.csv import read_csv
from keystride.motion.importers.lifelike import read_lifelike
from keystride.motion.importers.npz import read_npz
from keystride.motion.importers.poses import LEGS
from keystride.motion.importers.problem import ImportProblem
from keystride.motion.importers.skeleton import Skeleton, load_skeleton
from keystride.motion.quality import Figures, Frames, figures, measure
from keystride.motion.selection import Selection, load_selection
from keystride.motion.tagging import tag_metadata
from keystride.robot.description import Floats, Robot

Reader = Callable[[Path, str, Robot], list[Take]]

SUFFIXES = {  # what files of each kind are called
    "mann": (".bvh", ".bvh.gz"),
    "lifelike": (".txt", ".txt.gz", ".json", ".json.gz"),
    "amp": (".txt", ".txt.gz", ".json", ".json.gz"),
    "csv": (".csv", ".csv.gz"),
    "npz": (".npz",),
}
LICENCES = {"lifelike": "MIT, research purpose only", "amp": "BSD-3-Clause, derived from CC BY-NC 4.0"}


@dataclass(frozen=True)
class ImportOptions:
    order: tuple[str, ...] = LEGS
    fps: float = 50.0
    skeleton: Skeleton | None = None
    selection: Selection | None = None
    licence: str | None = None
    mirrored: bool = False


@dataclass(frozen=True)
class Imported:
    clip: Clip
    frames: Frames
    figures: Figures
    residual: Floats  # m, of all feet in frames that were not clamped


@dataclass(frozen=True)
class Refused:
    file: str
    reason: str


def find_files(kind: str, place: Path) -> list[Path]:
    """One file, or the files of a folder that are of the kind."""
    if place.is_file():
        return [place]
    return sorted(path for path in place.iterdir() if path.name.lower().endswith(SUFFIXES[kind]))


def reader_for(kind: str, options: ImportOptions) -> Reader:
    readers: dict[str, Reader] = {
        "mann": partial(
            read_animal,
            skeleton=options.skeleton or load_skeleton(),
            selection=options.selection or load_selection(),
        ),
        "lifelike": read_lifelike,
        "amp": partial(read_amp, order=options.order),
        "csv": partial(read_csv, order=options.order, fps=options.fps),
        "npz": partial(read_npz, order=options.order),
    }
    return readers[kind]


def import_files(
    kind: str, files: Sequence[Path], robot: Robot, options: ImportOptions
) -> Iterator[list[Imported] | Refused]:
    """One result a file, in order: its clips, or why there are none."""
    read = reader_for(kind, options)
    for path in files:
        try:
            takes = read(path, clip_name(path), robot)
            yield [one for take in takes for one in _finished(take, path, kind, robot, options)]
        except ImportProblem as problem:
            yield Refused(path.name, str(problem))
        except OSError as problem:
            yield Refused(path.name, f"cannot be read: {problem.strerror or problem}")


def clip_name(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


def _finished(take: Take, path: Path, kind: str, robot: Robot, options: ImportOptions) -> list[Imported]:
    clip = replace(take.clip, metadata=_metadata(take.clip, path, kind, robot, options))
    clips = [clip, mirror(clip, robot)] if options.mirrored else [clip]
    rows = take.residual[~take.clamped[: len(take.residual)]].reshape(-1)
    return [_measured(one, rows, robot) for one in clips]


def _measured(clip: Clip, residual: Floats, robot: Robot) -> Imported:
    frames = measure(clip, robot)
    return Imported(clip, frames, figures(frames), residual)


def _metadata(clip: Clip, path: Path, kind: str, robot: Robot, options: ImportOptions) -> dict[str, Any]:
    skeleton = (options.skeleton or load_skeleton()).licence if kind == "mann" else None
    facts = {
        "source": path.name,
        "licence": options.licence or skeleton or LICENCES.get(kind, "unknown"),
        "format": kind,
        **clip.metadata,
    }
    by_hand = facts.pop("tags_by_hand", ())
    return facts if "tags" in facts else {**facts, **tag_metadata(clip, robot, by_hand)}


def median_residual(imported: Sequence[Imported]) -> float:
    """Median toe residual away from clamped frames, m; not a number where nothing was retargeted."""
    rows = np.concatenate([one.residual for one in imported]) if imported else np.zeros(0)
    return float(np.median(rows)) if len(rows) else float("nan")
