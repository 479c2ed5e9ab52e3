"""The formats that motion can be imported from: one record each. To add a format, write its reader and add a record here.

Readers are imported when they are used, so that the command line can list the formats without loading them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keystride.motion.importers.animal import Selection, Skeleton
    from keystride.motion.retargeting.fitting import FittedClip
    from keystride.robot.description import Robot

JSON = (".txt", ".txt.gz", ".json", ".json.gz")


@dataclass(frozen=True)
class ImportOptions:
    """Options for what files do not contain; each format uses some of them."""

    order: tuple[str, ...] = ("FL", "FR", "RL", "RR")
    """Order of the legs in the file."""
    fps: float = 50.0
    """Frames per second, for formats that do not store it."""
    skeleton: "Skeleton | None" = None
    """Which node of a BVH is which hip and toe; None: the MANN dog's."""
    selection: "Selection | None" = None
    """Frames to leave out; None: the list for the MANN files."""
    licence: str | None = None
    """Licence of the clips; None: the format's."""
    mirrored: bool = False
    """Also import every clip mirrored, left for right."""


@dataclass(frozen=True)
class Importer:
    """A file format: its suffixes, its licence, and its reader."""

    name: str
    about: str
    """One line of help."""
    suffixes: tuple[str, ...]
    licence: Callable[[ImportOptions], str]
    read: "Callable[[Path, str, Robot, ImportOptions], list[FittedClip]]"
    """Path, name of the clip, robot and options to takes; raises ImportProblem for a file that cannot be used."""
    held_out: bool = False
    """Whether all clips are kept out of training, for evaluation on motions never seen."""
    has_selection: bool = False
    """Whether the selection list applies: frames to leave out, clips to hold out."""


def _mann(path: Path, name: str, robot: "Robot", options: ImportOptions) -> "list[FittedClip]":
    from keystride.motion.importers.animal import load_selection, load_skeleton, read_animal

    skeleton, selection = options.skeleton or load_skeleton(), options.selection or load_selection()
    return read_animal(path, name, robot, skeleton=skeleton, selection=selection)


def _mann_licence(options: ImportOptions) -> str:
    from keystride.motion.importers.animal import load_skeleton

    return (options.skeleton or load_skeleton()).licence or "unknown"


def _lifelike(path: Path, name: str, robot: "Robot", options: ImportOptions) -> "list[FittedClip]":
    from keystride.motion.importers.relatives import read_lifelike

    return read_lifelike(path, name, robot)


def _amp(path: Path, name: str, robot: "Robot", options: ImportOptions) -> "list[FittedClip]":
    from keystride.motion.importers.relatives import read_amp

    return read_amp(path, name, robot, order=options.order)


def _csv(path: Path, name: str, robot: "Robot", options: ImportOptions) -> "list[FittedClip]":
    from keystride.motion.importers.poses import read_csv

    return read_csv(path, name, robot, order=options.order, fps=options.fps)


def _npz(path: Path, name: str, robot: "Robot", options: ImportOptions) -> "list[FittedClip]":
    from keystride.motion.importers.poses import read_npz

    return read_npz(path, name, robot, order=options.order)


IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Importer(
            "mann",
            "BVH of a dog or another quadruped, plain or .gz",
            (".bvh", ".bvh.gz"),
            _mann_licence,
            _mann,
            has_selection=True,
        ),
        Importer(
            "lifelike", "JSON of the MAX robot", JSON, lambda _: "MIT, research purpose only", _lifelike, held_out=True
        ),
        Importer("amp", "61-column JSON of the A1", JSON, lambda _: "BSD-3-Clause, derived from CC BY-NC 4.0", _amp),
        Importer(
            "csv",
            "base position, quaternion x y z w, twelve joint angles",
            (".csv", ".csv.gz"),
            lambda _: "unknown",
            _csv,
        ),
        Importer(
            "npz", "Keystride's own clips, or those of mjlab and BeyondMimic", (".npz",), lambda _: "unknown", _npz
        ),
    )
}
