"""What keystride does with a file, by reader: the call that its commands make, and a look at what came out."""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from seeds import tiny_trainer

from keystride.errors import FileError
from keystride.keyframes.feasibility import warnings
from keystride.keyframes.files import load_script, parse_script
from keystride.keyframes.resolve import resolve
from keystride.motion.clip import ARRAYS, Clip, load_clip
from keystride.motion.importers.animal import load_skeleton
from keystride.motion.importers.importing import INTERNAL, ImportOptions, RefusedFile, import_files
from keystride.motion.importers.selection import load_selection
from keystride.motion.index import load_library_clips
from keystride.motion.library import Library
from keystride.policy.curve import read_curve
from keystride.policy.runtime import Critics, Policy
from keystride.robot.go2 import GO2
from keystride.studio.document.draft import from_script


def import_motion(kind: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        (result,) = import_files(kind, [path], GO2, ImportOptions())
        if isinstance(result, RefusedFile):
            if result.reason.startswith(INTERNAL):
                raise RuntimeError(result.reason)
            raise FileError(f"{result.file}: {result.reason}")
        for imported in result:
            check_clip(imported.clip)

    return read


def check_clip(clip: Clip) -> None:
    for name in ARRAYS:
        values = getattr(clip, name)
        assert len(values) == len(clip), name
        assert np.isfinite(values).all(), name
    ", ".join(clip.tags)


def read_clip(path: Path) -> None:
    check_clip(load_clip(path))


def read_library(path: Path) -> None:
    clips = load_library_clips(path.parent)
    if clips:
        library = Library(GO2, clips)
        assert np.isfinite(library.frames.position).all()


def read_script(path: Path) -> None:
    script = load_script(path)
    warnings(script)
    resolve(script)


def read_upload(path: Path) -> None:
    from keystride.keyframes.problems import ScriptError

    try:
        from_script(parse_script(path.read_bytes()))
    except ScriptError as error:
        raise ScriptError(error.problems, source=path.name) from None


def read_bundle(path: Path) -> None:
    from keystride.policy.trained import load_trained

    load_trained(path.parent)


def pack_bundle(path: Path) -> None:
    from keystride.policy.packing import pack

    with tempfile.TemporaryDirectory() as folder:
        pack(path.parent, Path(folder) / "packed")


@cache
def trainer() -> Any:
    return tiny_trainer()


def read_checkpoint(path: Path) -> None:
    from keystride.policy.weights import load_weights

    trainer().load(path.parent)
    load_weights(path.parent)


def read_metrics(path: Path) -> None:
    read_curve(path)


READERS: dict[str, Callable[[Path], Any]] = {
    **{kind: import_motion(kind) for kind in ("mann", "lifelike", "amp", "csv", "npz")},
    "clip": read_clip,
    "library": read_library,
    "skeleton": load_skeleton,
    "selection": load_selection,
    "script": read_script,
    "upload": read_upload,
    "policy": Policy.load,
    "critic": Critics.load,
    "bundle": read_bundle,
    "pack": pack_bundle,
    "curve": read_metrics,
    "checkpoint": read_checkpoint,
}
