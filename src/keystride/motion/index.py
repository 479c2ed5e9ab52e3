"""A library on disk: a folder of clips and an index that says what they are and how they are split."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from keystride.errors import FileError
from keystride.files import part_folder, recover
from keystride.motion.clip import Clip, load_clip, save_clip
from keystride.reading import check_model, read_json

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
        """A path would lead out of the library."""
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
    """How often the library draws the clip goes with it."""
    return replace(clip, metadata={**clip.metadata, "weight": weight})


def _write_index(folder: Path, robot_name: str, entries: list[dict[str, Any]]) -> None:
    content = {"version": 1, "robot": robot_name, "clips": entries}
    (folder / INDEX).write_text(json.dumps(content, indent=1) + "\n")
