"""BVH: a tree of nodes with offsets, then one line of channel values a frame."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from keystride.motion.importers.problem import ImportProblem, require_finite, require_frames
from keystride.robot.description import Floats

AXES = {"X": 0, "Y": 1, "Z": 2}


@dataclass(frozen=True)
class Node:
    name: str  # an end site is called after its parent, with "_end"
    parent: int  # -1 for the root
    offset: tuple[float, ...]
    channels: tuple[str, ...]


@dataclass(frozen=True)
class Bvh:
    nodes: tuple[Node, ...]
    frame_time: float  # s
    values: Floats  # (T, channels)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)


def parse_bvh(text: str) -> Bvh:
    head, keyword, motion = text.partition("MOTION")
    if not head.lstrip().startswith("HIERARCHY"):
        raise ImportProblem("not a BVH file: it does not begin with HIERARCHY")
    if not keyword:
        raise ImportProblem("truncated: no MOTION section")
    nodes = _parse_nodes(head.split()[1:])
    count, frame_time, numbers = _parse_motion(motion)
    width = sum(len(node.channels) for node in nodes)
    return Bvh(nodes, frame_time, _table(numbers, count, width))


def node_positions(bvh: Bvh) -> Floats:
    """World positions of every node, (T, N, 3), in the file's units and axes."""
    column = 0
    rotations: list[Floats] = []
    positions: list[Floats] = []
    for node in bvh.nodes:
        values = bvh.values[:, column : column + len(node.channels)]
        column += len(node.channels)
        moved, turned = _local(node, values)
        if node.parent >= 0:
            parent = rotations[node.parent]
            moved = positions[node.parent] + np.einsum("tij,tj->ti", parent, moved)
            turned = parent @ turned
        positions.append(moved)
        rotations.append(turned)
    return np.stack(positions, axis=1)


def _local(node: Node, values: Floats) -> tuple[Floats, Floats]:
    """Translation (T, 3) and rotation (T, 3, 3) in the parent's frame. Position channels replace the offset."""
    moved = np.tile(np.array(node.offset), (len(values), 1))
    turns: list[Floats] = [np.broadcast_to(np.eye(3), (len(values), 3, 3))]
    for column, channel in enumerate(node.channels):
        axis = AXES[channel[0]]
        if channel.endswith("position"):
            moved[:, axis] = values[:, column]
        else:
            turns.append(_rotation(axis, np.radians(values[:, column])))
    return moved, reduce(np.matmul, turns)


def _rotation(axis: int, angle: Floats) -> Floats:
    """Matrices (T, 3, 3) of a turn about one axis."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.zeros((len(angle), 3, 3))
    matrix[:, axis, axis] = 1.0
    matrix[:, first, first] = matrix[:, second, second] = np.cos(angle)
    matrix[:, second, first] = np.sin(angle)
    matrix[:, first, second] = -np.sin(angle)
    return matrix


def _parse_nodes(words: list[str]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    ancestors: list[int] = []
    at = 0
    try:
        while at < len(words):
            word = words[at]
            if word in ("ROOT", "JOINT", "End"):
                name = words[at + 1] if word != "End" else f"{nodes[ancestors[-1]].name}_end"
                nodes.append(Node(name, ancestors[-1] if ancestors else -1, (), ()))
                at += 2
            elif word == "{":
                ancestors.append(len(nodes) - 1)
                at += 1
            elif word == "}":
                ancestors.pop()
                at += 1
            elif word == "OFFSET":
                offset = tuple(float(value) for value in words[at + 1 : at + 4])
                nodes[-1] = Node(nodes[-1].name, nodes[-1].parent, offset, ())
                at += 4
            elif word == "CHANNELS":
                count = int(words[at + 1])
                channels = tuple(words[at + 2 : at + 2 + count])
                nodes[-1] = Node(nodes[-1].name, nodes[-1].parent, nodes[-1].offset, channels)
                at += 2 + count
            else:
                raise ImportProblem(f"BVH hierarchy: unexpected word {word!r}")
    except (IndexError, ValueError) as error:
        raise ImportProblem("BVH hierarchy is malformed") from error
    if ancestors:
        raise ImportProblem("truncated: the hierarchy is not closed")
    return tuple(nodes)


def _parse_motion(motion: str) -> tuple[int, float, str]:
    try:
        _, _, rest = motion.partition("Frames:")
        count, _, rest = rest.partition("Frame Time:")
        frame_time, _, numbers = rest.lstrip().partition("\n")
        return int(count), float(frame_time), numbers
    except ValueError as error:
        raise ImportProblem("truncated: no frame count or frame time") from error


def _table(numbers: str, count: int, width: int) -> Floats:
    try:
        values = np.array(numbers.split(), dtype=np.float64)
    except ValueError as error:
        raise ImportProblem("a channel value is not a number") from error
    require_frames(count)
    if len(values) != count * width:
        raise ImportProblem(f"truncated: {count} frames of {width} values announced, {len(values)} values found")
    table = values.reshape(count, width)
    require_finite(table, "channel values")
    return table
