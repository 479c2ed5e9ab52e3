"""The list of frames that are left out of an import, and why."""

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from keystride.keyframes.document import parse_model, read_model

SHORTEST = 50  # frames of the result: a part of under a second is dropped


Frame = Annotated[int, Field(ge=0, le=10_000_000)]


class Cut(BaseModel):
    """Frames of the source, both ends included; without frames, the whole clip."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    clip: str
    frames: tuple[Frame, Frame] | None = None
    reason: str


class Correction(BaseModel):
    """A tag set by hand where the automatic one is wrong. Frames of the source, both ends included."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    clip: str
    frames: tuple[Frame, Frame]
    tag: Literal["stand", "walk", "trot", "canter", "turn", "jump", "sit", "lie", "rear", "paw_up"]


class Selection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    ends: Frame = 0  # frames of the source dropped at either end of every clip
    cuts: tuple[Cut, ...] = ()
    tags: tuple[Correction, ...] = ()
    held_out: tuple[str, ...] = ()  # clips kept from training, for evaluation


def load_selection(path: Path | None = None) -> Selection:
    """The built-in list for the MANN files, or one on file."""
    if path is not None:
        return read_model(path, Selection)
    built_in = resources.files("keystride.motion").joinpath("data/mann_selection.yaml")
    return parse_model(built_in.read_bytes(), Selection, built_in.name)


def kept_parts(selection: Selection, clip: str, frames: int, rate: float) -> list[tuple[int, int]]:
    """Return what remains of a clip with that many frames, as (first, last + 1); rate is clip frames per source frame."""
    cuts = sorted(_in_clip_frames(cut, rate, frames) for cut in selection.cuts if cut.clip == clip)
    ends = int(np.ceil(selection.ends * rate))
    parts: list[tuple[int, int]] = []
    start = ends
    for first, last in [*cuts, (frames - ends, frames)]:
        if first - start >= SHORTEST:
            parts.append((start, first))
        start = max(start, last)
    return parts


def corrections_in(selection: Selection, clip: str, first: int, rate: float) -> list[tuple[int, int, str]]:
    """Tags set by hand, in frames of the part of the clip that begins at `first`."""
    return [
        (int(one.frames[0] * rate) - first, int((one.frames[1] + 1) * rate) - first, one.tag)
        for one in selection.tags
        if one.clip == clip
    ]


def _in_clip_frames(cut: Cut, rate: float, frames: int) -> tuple[int, int]:
    if cut.frames is None:
        return 0, frames
    first, last = cut.frames
    return min(int(first * rate), frames), min(int((last + 1) * rate) + 1, frames)


def part_names(clip: str, parts: int) -> list[str]:
    """A clip that was cut in pieces numbers them; one that stays whole keeps its name."""
    return [clip] if parts == 1 else [f"{clip}-{number}" for number in range(1, parts + 1)]
