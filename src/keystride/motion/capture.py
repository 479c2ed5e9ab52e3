"""A captured quadruped: where its hips and toes are. What an importer hands to retargeting."""

from dataclasses import dataclass, field

import numpy as np

from keystride.robot.description import Floats


@dataclass(frozen=True)
class Proportions:
    """The animal, standing squarely, seen in its own heading frame."""

    height: float  # m, between ground and the middle of hips and shoulders
    pitch: float  # rad, of the line from hips to shoulders (up is positive)
    toes: tuple[tuple[float, float, float], ...]  # m, four toes: ahead and left of the middle, above ground


@dataclass(frozen=True)
class Capture:
    """Keypoints over time. World frame z up, metres; legs front left, front right, rear left, rear right."""

    name: str
    fps: float
    hips: Floats  # (T, 4, 3) shoulders in front, hips behind
    toes: Floats  # (T, 4, 3)
    proportions: Proportions
    bones: Floats = field(default_factory=lambda: np.zeros((0, 0, 3)))  # (T, N, 3) all nodes, for viewing
    parents: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.toes)


@dataclass(frozen=True)
class Animal:
    """What is drawn of the source of a clip, at the clip's frames and size."""

    nodes: Floats  # (T, N, 3) m, world
    parents: tuple[int, ...]
