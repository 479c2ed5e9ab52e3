"""BVH: a tree of nodes with offsets, then a line of channel values for each frame."""

from dataclasses import dataclass, replace
from functools import reduce
from math import isfinite

import numpy as np

from keystride.motion.importers.poses import ImportProblem, require_finite, require_frames, require_rate
from keystride.reading import one_line
from keystride.robot.description import Floats

AXES = {"X": 0, "Y": 1, "Z": 2}
CHANNELS = tuple(f"{axis}{kind}" for kind in ("position", "rotation") for axis in AXES)
MAX_HIERARCHY = 1 << 20  # characters
MAX_NODES = 1000
MAX_WRAPS = 10  # lines of a frame
MAX_DIGITS = 64  # of a value, with the space around it
MAX_POSITIONS = 4_000_000  # nodes times frames


@dataclass(frozen=True)
class Node:
    name: str  # an end site is named after its parent, with "_end"
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
    """Read the text of a file; ImportProblem says what is wrong, by line or by frame."""
    if not text[:200].lstrip().startswith("HIERARCHY"):
        raise ImportProblem("not a BVH file: it does not begin with HIERARCHY")
    end = text.find("MOTION", 0, MAX_HIERARCHY)
    if end < 0:
        raise ImportProblem("truncated: no MOTION section")
    nodes = _parse_nodes(text[:end])
    motion = text[end + len("MOTION") :]
    count, frame_time, numbers = _parse_motion(motion)
    if count * len(nodes) > MAX_POSITIONS:
        raise ImportProblem(f"{len(nodes)} nodes in {count} frames; allowed: a product of at most {MAX_POSITIONS}")
    return Bvh(nodes, frame_time, _table(numbers, count, sum(len(node.channels) for node in nodes)))


def node_positions(bvh: Bvh) -> Floats:
    """Return world positions of all nodes, (T, N, 3), in the file's units and axes."""
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
    """Return translation (T, 3) and rotation (T, 3, 3) in the parent's frame. Position channels replace the offset."""
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
    """Return the matrices (T, 3, 3) of rotations about one axis."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.zeros((len(angle), 3, 3))
    matrix[:, axis, axis] = 1.0
    matrix[:, first, first] = matrix[:, second, second] = np.cos(angle)
    matrix[:, second, first] = np.sin(angle)
    matrix[:, first, second] = -np.sin(angle)
    return matrix


class _Words:
    """The words of the hierarchy, taken one by one, with their line numbers."""

    def __init__(self, text: str) -> None:
        self._words = [(word, number) for number, line in enumerate(text.split("\n"), 1) for word in line.split()]
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._words)

    def take(self, what: str) -> str:
        if not self.left:
            raise ImportProblem(f"truncated: the hierarchy ends where {what} is expected")
        self._at += 1
        return self._words[self._at - 1][0]

    def problem(self, message: str) -> ImportProblem:
        """Return an error about the word that was taken last."""
        word, line = self._words[self._at - 1]
        return ImportProblem(f"line {line}: {one_line(repr(word), 40)} {message}")

    def number(self) -> float:
        word = self.take("a number")
        try:
            value = float(word)
        except ValueError as error:
            raise self.problem("is not a number") from error
        if not isfinite(value):
            raise self.problem("is not a finite number")
        return value

    def channels(self) -> tuple[str, ...]:
        count = self.take("a number of channels")
        if count not in "0123456" or len(count) != 1:
            raise self.problem(f"is not a number of channels; allowed: 0 to {len(CHANNELS)}")
        return tuple(self._channel() for _ in range(int(count)))

    def _channel(self) -> str:
        name = self.take("a channel")
        if name not in CHANNELS:
            raise self.problem(f"is not a channel; allowed: {', '.join(CHANNELS)}")
        return name


def _parse_nodes(text: str) -> tuple[Node, ...]:
    words = _Words(text)
    words.take("HIERARCHY")
    nodes: list[Node] = []
    ancestors: list[int] = []
    while words.left:
        word = words.take("a node")
        if word in ("ROOT", "JOINT", "End"):
            if bool(ancestors) == (word == "ROOT") or len(nodes) == MAX_NODES:
                raise words.problem(f"is not allowed here: one ROOT around all others, at most {MAX_NODES} nodes")
            name = words.take("a name")
            parent = ancestors[-1] if ancestors else -1
            nodes.append(Node(name if word != "End" else f"{nodes[parent].name}_end", parent, (0.0, 0.0, 0.0), ()))
            if words.take("{") != "{":
                raise words.problem("stands where { is expected")
            ancestors.append(len(nodes) - 1)
        elif not ancestors:
            raise words.problem("is not inside a node")
        elif word == "}":
            ancestors.pop()
        elif word == "OFFSET":
            offset = (words.number(), words.number(), words.number())
            nodes[ancestors[-1]] = replace(nodes[ancestors[-1]], offset=offset)
        elif word == "CHANNELS":
            nodes[ancestors[-1]] = replace(nodes[ancestors[-1]], channels=words.channels())
        else:
            raise words.problem("is not known; allowed: ROOT, JOINT, End, OFFSET, CHANNELS, { and }")
    if ancestors or not nodes:
        raise ImportProblem("truncated: the hierarchy is not closed")
    return tuple(nodes)


def _parse_motion(motion: str) -> tuple[int, float, str]:
    """Return the number of frames, the seconds of one, and the text of their values."""
    _, _, rest = motion.partition("Frames:")
    count, _, rest = rest.partition("Frame Time:")
    frame_time, _, numbers = rest.lstrip().partition("\n")
    try:
        frames, seconds = int(count[:100]), float(frame_time[:100])
    except ValueError as error:
        raise ImportProblem("truncated: no frame count or frame time after MOTION") from error
    require_frames(frames)
    require_rate(1.0 / seconds if seconds else float("inf"), frames)
    return frames, seconds, numbers


def _table(numbers: str, count: int, width: int) -> Floats:
    """Return the channel values (T, width). A frame may span several lines, whose number and length are bounded to save memory."""
    lines = numbers.count("\n")
    if lines > MAX_WRAPS * count:
        raise ImportProblem(f"{count} frames announced, {lines} lines found; allowed: {MAX_WRAPS} for each frame")
    rows: list[Floats] = []
    for number, line in enumerate(numbers.split("\n"), 1):
        if len(line) > MAX_DIGITS * (width + 1):
            raise ImportProblem(f"line {number} after the frame time is longer than a frame of {width} values")
        try:
            rows.append(np.array(line.split(), dtype=np.float64))
        except ValueError as error:
            raise ImportProblem(f"a channel value in line {number} after the frame time is not a number") from error
    values = np.concatenate(rows)
    if len(values) != count * width:
        raise ImportProblem(f"truncated: {count} frames of {width} values announced, {len(values)} values found")
    table = values.reshape(count, width)
    require_finite(table, "channel values")
    return table
