"""Motion capture of an animal in BVH files: which node is which hip and toe, retargeting, and which frames to leave out.

A small YAML file describes each skeleton, another one the frames that are left out and why."""

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from keystride.keyframes.document import parse_model, read_model
from keystride.motion.clip import CLIP_FPS, Clip, make_clip
from keystride.motion.importers.bvh import Bvh, node_positions, parse_bvh
from keystride.motion.importers.poses import MAX_DISTANCE, ImportProblem
from keystride.motion.retargeting.fitting import FittedClip
from keystride.motion.retargeting.retarget import (
    Animal,
    Capture,
    Proportions,
    frame_rate,
    length_scale,
    retarget,
    scaled_points,
)
from keystride.reading import read_text
from keystride.robot.description import Floats, Robot

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
    """Return the selection in this file, by default the one for the MANN files that ships."""
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
    """Return the tags set by hand, in frames of the part of the clip that begins at `first`."""
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
    """Return the names of the parts of a clip: numbered, or the clip's own name if it is in one part."""
    return [clip] if parts == 1 else [f"{clip}-{number}" for number in range(1, parts + 1)]


Four = tuple[str, str, str, str]
_Metres = Annotated[float, Field(ge=-10, le=10)]
_Point = tuple[_Metres, _Metres, _Metres]

CYCLES = {"x": (1, 2, 0), "y": (2, 0, 1), "z": (0, 1, 2)}  # even permutations, so that left stays left
UNIT_SPAN = (0.4, 2.5)  # of the expected size of the trunk: outside, the unit must be wrong


class Standing(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    height: float = Field(ge=0.01, le=10)
    pitch: float = Field(ge=-1.5, le=1.5)
    toes: tuple[_Point, _Point, _Point, _Point]


class Skeleton(BaseModel):
    """Which nodes are hips and toes. Lists of four are in the order front left, front right, rear left, rear right."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    unit: float = Field(ge=1e-6, le=1e3)
    up: Literal["x", "y", "z"]
    hips: Four
    toes: Four
    standing: Standing
    licence: str = "unknown"


def load_skeleton(path: Path | None = None) -> Skeleton:
    """Return the skeleton in this file, by default the one of the MANN dog that ships."""
    if path is not None:
        return read_model(path, Skeleton)
    built_in = resources.files("keystride.motion").joinpath("data/mann.yaml")
    return parse_model(built_in.read_bytes(), Skeleton, built_in.name)


def capture_from_bvh(name: str, bvh: Bvh, skeleton: Skeleton) -> Capture:
    missing = sorted({*skeleton.hips, *skeleton.toes} - set(bvh.names))
    if missing:
        raise ImportProblem(f"wrong skeleton: no node {', '.join(missing)} (expected the {skeleton.name} skeleton)")
    nodes = node_positions(bvh)[..., CYCLES[skeleton.up]] * skeleton.unit  # (T, N, 3) m
    hips = nodes[:, [bvh.names.index(node) for node in skeleton.hips]]
    toes = nodes[:, [bvh.names.index(node) for node in skeleton.toes]]
    _require_size(hips, toes, skeleton)
    standing = skeleton.standing
    return Capture(
        name=name,
        fps=1.0 / bvh.frame_time,
        hips=hips,
        toes=toes,
        proportions=Proportions(standing.height, standing.pitch, standing.toes),
        bones=nodes,
        parents=tuple(node.parent for node in bvh.nodes),
    )


def _require_size(hips: Floats, toes: Floats, skeleton: Skeleton) -> None:
    """Raise ImportProblem for a size that no animal has: a trunk ten times too long means another unit."""
    farthest = np.abs(np.concatenate([hips, toes], axis=1)).max(axis=(1, 2))
    if not farthest.max() < MAX_DISTANCE:
        raise ImportProblem(
            f"a hip or toe is {farthest.max():.3g} m from the origin in frame {farthest.argmax()}; "
            f"allowed: at most {MAX_DISTANCE:g} m"
        )
    length = float(np.median(np.linalg.norm(hips[:, :2].mean(1) - hips[:, 2:].mean(1), axis=-1)))
    expected = skeleton.standing.toes[0][0] - skeleton.standing.toes[2][0]
    if not UNIT_SPAN[0] < length / expected < UNIT_SPAN[1]:
        raise ImportProblem(f"wrong unit: the trunk is {length:.3g} m long, about {expected:.2g} m expected")


def read_capture(path: Path, name: str, skeleton: Skeleton) -> Capture:
    return capture_from_bvh(name, parse_bvh(read_text(path)), skeleton)


def read_animal(path: Path, name: str, robot: Robot, skeleton: Skeleton, selection: Selection) -> list[FittedClip]:
    if any(cut.clip == name and cut.frames is None for cut in selection.cuts):
        return []
    capture = read_capture(path, name, skeleton)
    take = retarget(capture, robot)
    rate = frame_rate(capture)
    parts = kept_parts(selection, name, len(take.clip), rate)
    if not parts:
        raise ImportProblem(
            f"nothing is left: ends and selected frames are cut from a motion of {len(take.clip) / CLIP_FPS:.2g} s; "
            f"allowed: parts of at least {SHORTEST / CLIP_FPS:g} s"
        )
    edits = [cut.model_dump(exclude={"clip"}) for cut in selection.cuts if cut.clip == name]
    facts = {"skeleton": skeleton.name, "scale": length_scale(capture), "frames_per_source_frame": rate, "cuts": edits}
    return [
        _part(
            take,
            part,
            (first, last),
            robot,
            {"edits": {**facts, "first_frame": first}, "tags_by_hand": corrections_in(selection, name, first, rate)},
        )
        for part, (first, last) in zip(part_names(name, len(parts)), parts, strict=True)
    ]


def _part(take: FittedClip, name: str, span: tuple[int, int], robot: Robot, metadata: dict[str, object]) -> FittedClip:
    first, last = span
    clip = replace(sliced(take.clip, name, first, last, robot), metadata=metadata)
    return FittedClip(clip, take.residual[first:last], take.clamped[first:last])


def sliced(clip: Clip, name: str, first: int, last: int, robot: Robot) -> Clip:
    """Return some frames of a clip as a separate clip, in the same place."""
    rows = slice(first, last)
    return make_clip(name, robot, clip.base_position[rows], clip.base_orientation[rows], clip.joint_angles[rows])


def animal_of(clip: Clip, folder: Path, skeleton: Skeleton) -> Animal | None:
    """Return the animal that a clip was retargeted from, at the clip's frames, or None if its file is not in the folder."""
    source, first = Path(str(clip.metadata.get("source", ""))), clip.metadata.get("edits", {}).get("first_frame")
    path = folder / source.name
    if not source.name or not path.is_file() or not isinstance(first, int) or first < 0:
        return None
    capture = read_capture(path, clip.name, skeleton)
    return Animal(scaled_points(capture.bones, capture)[first : first + len(clip)], capture.parents)
