"""Which node of a BVH is which hip and toe: a small YAML file for each skeleton."""

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from keystride.keyframes.document import parse_model, read_model
from keystride.motion.capture import Capture, Proportions
from keystride.motion.importers.bvh import Bvh, node_positions
from keystride.motion.importers.poses import FARTHEST
from keystride.motion.importers.problem import ImportProblem
from keystride.robot.description import Floats

Four = tuple[str, str, str, str]
Metres = Annotated[float, Field(ge=-10, le=10)]
Point = tuple[Metres, Metres, Metres]

CYCLES = {"x": (1, 2, 0), "y": (2, 0, 1), "z": (0, 1, 2)}  # even permutations, so that left stays left
UNIT_SPAN = (0.4, 2.5)  # of the expected size of the trunk: outside, the unit must be wrong


class Standing(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    height: float = Field(ge=0.01, le=10)
    pitch: float = Field(ge=-1.5, le=1.5)
    toes: tuple[Point, Point, Point, Point]


class Skeleton(BaseModel):
    """Front left, front right, rear left, rear right, wherever four names are listed."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    unit: float = Field(ge=1e-6, le=1e3)
    up: Literal["x", "y", "z"]
    hips: Four
    toes: Four
    standing: Standing
    licence: str = "unknown"


def load_skeleton(path: Path | None = None) -> Skeleton:
    """The built-in skeleton of the MANN dog, or the one on file."""
    if path is not None:
        return read_model(path, Skeleton)
    built_in = resources.files("keystride.motion").joinpath("data/mann.yaml")
    return parse_model(built_in.read_bytes(), Skeleton, built_in.name)


def capture_from_bvh(name: str, bvh: Bvh, skeleton: Skeleton) -> Capture:
    missing = sorted({*skeleton.hips, *skeleton.toes} - set(bvh.names))
    if missing:
        raise ImportProblem(f"another skeleton: no node {', '.join(missing)} (expected the {skeleton.name} skeleton)")
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
    """A trunk ten times too long means another unit, not another dog."""
    farthest = np.abs(np.concatenate([hips, toes], axis=1)).max(axis=(1, 2))
    if not farthest.max() < FARTHEST:
        raise ImportProblem(
            f"a hip or toe is {farthest.max():.3g} m from the origin in frame {farthest.argmax()}; "
            f"allowed: at most {FARTHEST:g} m"
        )
    length = float(np.median(np.linalg.norm(hips[:, :2].mean(1) - hips[:, 2:].mean(1), axis=-1)))
    expected = skeleton.standing.toes[0][0] - skeleton.standing.toes[2][0]
    if not UNIT_SPAN[0] < length / expected < UNIT_SPAN[1]:
        raise ImportProblem(f"wrong unit: the trunk is {length:.3g} m long, about {expected:.2g} m expected")
