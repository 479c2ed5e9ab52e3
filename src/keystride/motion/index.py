"""A library on disk: a folder of clips and an index that says what they are and how they are split."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from keystride.motion.clip import Clip, load_clip, save_clip

INDEX = "index.json"


def save_library(
    clips: Iterable[Clip],
    folder: Path,
    robot_name: str,
    *,
    held_out: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Path:
    """Write all clips and the index beside their place, then move them there: a library is whole or absent."""
    if folder.exists() and any(folder.iterdir()) and not (folder / INDEX).exists():
        raise FileExistsError(f"{folder} holds something that is not a library; name another folder")
    kept, weights = set(held_out), weights or {}
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        entries = []
        for clip in clips:
            save_clip(clip, part / f"{clip.name}.npz")
            split = "held_out" if clip.name in kept else "train"
            entries.append(index_entry(clip, split, weights.get(clip.name, 1.0)))
        _write_index(part, robot_name, entries)
        _replace_folder(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
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


def read_index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    if not path.exists():
        raise FileNotFoundError(f"{folder} is not a library: it has no {INDEX}")
    index = json.loads(path.read_text())
    if index.get("version") != 1:
        raise ValueError(f"{path}: version {index.get('version')!r} is not known, 1 expected")
    return index


def load_library_clips(folder: Path, split: str | None = None) -> list[Clip]:
    """The clips of a library, or those of one split, in the order of its index."""
    entries = [entry for entry in read_index(folder)["clips"] if split in (None, entry["split"])]
    return [_weighted(load_clip(folder / entry["file"]), float(entry["weight"])) for entry in entries]


def _weighted(clip: Clip, weight: float) -> Clip:
    """How often the library draws the clip goes with it."""
    return replace(clip, metadata={**clip.metadata, "weight": weight})


def _write_index(folder: Path, robot_name: str, entries: list[dict[str, Any]]) -> None:
    content = {"version": 1, "robot": robot_name, "clips": entries}
    (folder / INDEX).write_text(json.dumps(content, indent=1) + "\n")


def _replace_folder(new: Path, place: Path) -> None:
    old = place.with_name(f".{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)
