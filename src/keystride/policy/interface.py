"""Inputs and outputs of exported graphs, and the checks that a file must pass before it is run."""

from collections.abc import Iterator
from math import prod

import numpy as np

from keystride.policy.bundle import PolicyError
from keystride.reading import MIB, one_line

# B robots, K keyframes; both may be any number from one on.
INPUTS = {
    "base_position": (3,),  # world, m
    "base_orientation": (4,),  # w x y z, world from base
    "base_linear_velocity": (3,),  # base frame, m/s
    "base_angular_velocity": (3,),  # base frame, rad/s
    "joint_angles": (12,),  # rad
    "joint_velocities": (12,),  # rad/s
    "previous_action": (12,),
    "goal_position": ("K", 3),  # world, m
    "goal_angles": ("K", 3),  # roll, pitch, yaw, rad
    "goal_posture": ("K", 12),  # rad
    "goal_time": ("K",),  # s until it is due
    "goal_presence": ("K", 5),  # bool, in the order of COMPONENTS
    "goal_height": ("K",),  # bool: whether z belongs to the position
    "goal_visible": ("K",),  # bool
}
BITS = ("goal_presence", "goal_height", "goal_visible")
OUTPUTS = ("joint_targets", "action")
VALUES = ("values",)

MAX_POLICY_BYTES = 256 * MIB
MOST_VALUES = 1 << 24  # of a tensor whose shape is written in the file
FLOAT, INT64 = 1, 7  # element types of ONNX
OPERATOR_NAMES = """
    Abs Add And ArgMax ArgMin Atan Cast Ceil Clip Concat Constant Cos Div Elu Equal Erf Exp Expand Flatten Floor Gather
    GatherElements Gelu Gemm Greater GreaterOrEqual Identity IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log MatMul Max
    Min Mul Neg Not Or Pow Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Round Selu Shape Sigmoid Sign
    Sin Slice Softmax Softplus Split Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where
"""  # of exported networks; none allocates more than its inputs and constants ask for
OPERATORS = frozenset(OPERATOR_NAMES.split())
BROKEN = "it is not an ONNX file, or a broken one"


def read_properties(content: bytes) -> dict[str, str]:
    """Return the metadata of an ONNX file, after checking its whole graph.

    A policy needs no external data, nested graphs or custom operators. A file with any of these is refused, even if the
    runtime would accept it.
    """
    properties: dict[str, str] = {}
    graphs = 0
    for number, value in _fields(memoryview(content)):
        if number == 7:
            _check_graph(_message(value))
            graphs += 1
        elif number == 14:
            entry = dict(_fields(_message(value)))
            properties[_text(entry.get(1, b""))] = _text(entry.get(2, b""))
        elif number in (20, 25):
            raise PolicyError("it holds training code or functions of its own, which a policy does not need")
    if graphs != 1:
        raise PolicyError(BROKEN)
    return properties


Value = int | memoryview | bytes


def _fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    """Yield field numbers and values of a protobuf message, which stays where it is."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise PolicyError(BROKEN)
        if length > len(data) - at or number == 0:
            raise PolicyError(BROKEN)
        yield number, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & ((1 << 64) - 1), at
    raise PolicyError(BROKEN)


def _message(value: Value) -> memoryview:
    if isinstance(value, int):
        raise PolicyError(BROKEN)
    return memoryview(value)


def _text(value: Value) -> str:
    try:
        return bytes(_message(value)).decode()
    except UnicodeDecodeError as error:
        raise PolicyError("its metadata is damaged: not text in UTF-8") from error


def _check_graph(graph: memoryview) -> None:
    for number, value in _fields(graph):
        if number == 1:
            _check_node(_message(value))
        elif number == 5:
            _check_tensor(_message(value))
        elif number == 15:
            raise PolicyError("it holds sparse tensors, which a policy does not need")


def _check_node(node: memoryview) -> None:
    for number, value in _fields(node):
        if number == 7 and _text(value) not in ("", "ai.onnx"):
            raise PolicyError(f"it needs operators from {one_line(_text(value), 40)!r}; allowed: those of ONNX itself")
        if number == 4 and _text(value) not in OPERATORS:
            raise PolicyError(
                f"it uses the operator {one_line(_text(value), 40)!r}, which an exported policy does not need"
            )
        if number == 5:
            integers: list[int] = []
            for inside, entry in _fields(_message(value)):
                if inside in (3, 8):
                    integers += [entry] if isinstance(entry, int) else _varints(_message(entry))
                if inside in (6, 11, 22, 23):
                    raise PolicyError("it holds graphs inside of its graph, or sparse tensors; a policy needs neither")
                if inside in (5, 10):
                    _check_tensor(_message(entry))
            _check_integers(integers)


def _check_tensor(tensor: memoryview) -> None:
    """Raise PolicyError unless all values are in the file, as many as the shape says, and shapes made from them are plausible."""
    dims: list[int] = []
    kind, stored = 0, 0
    integers: list[int] = []
    for number, value in _fields(tensor):
        if number in (13, 14) and value != 0:
            raise PolicyError("its weights are in other files (external data); allowed: one file that holds all")
        if number == 1:
            dims += [value] if isinstance(value, int) else _varints(_message(value))
        elif number == 2:
            kind = value if isinstance(value, int) else 0
        elif number in (4, 5, 6, 7, 9, 10, 11):
            stored += 8 if isinstance(value, int) else len(value)
            if number == 7:
                integers += [value] if isinstance(value, int) else _varints(_message(value))
            elif number == 9 and kind in (0, INT64):
                raw = _message(value)
                integers += np.frombuffer(raw[: len(raw) // 8 * 8], dtype="<i8").tolist() if kind == INT64 else []
    if prod(dims) > max(stored * 8, 1):
        raise PolicyError(f"it is damaged: a tensor of shape {dims[:8]} holds {stored} bytes")
    _check_integers(integers)


def _check_integers(values: list[int]) -> None:
    """Raise PolicyError if integers, which are shapes and indices, are too large; the largest stand for `to the end`."""
    sizes = [abs(value) for value in values if abs(value) < 1 << 62]
    if max(sizes, default=0) > MOST_VALUES or (len(sizes) <= 8 and prod(max(size, 1) for size in sizes) > MOST_VALUES):
        raise PolicyError(f"it holds integers up to {max(sizes)}; allowed: shapes of at most {MOST_VALUES} values")


def _varints(data: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value - (1 << 64) if value >> 63 else value)
    return found


def check_shapes(what: str, found: dict[str, tuple[str, list[object]]], expected: dict[str, tuple[str, tuple]]) -> None:
    """Compare inputs or outputs of a session by name: element type, and shape after the number of robots."""
    for name in found.keys() ^ expected.keys():
        fault = "lacks the" if name in expected else "has an unknown"
        raise PolicyError(f"it {fault} {what} {one_line(name, 40)!r}; allowed: {', '.join(expected)}")
    for name, (kind, shape) in found.items():
        right, lengths = expected[name]
        same = [
            length == size if isinstance(size, int) else not isinstance(length, int)
            for length, size in zip(shape, ("B", *lengths), strict=False)
        ]
        if kind != right or len(shape) != len(lengths) + 1 or not all(same):
            wanted = ", ".join(["B", *map(str, lengths)])
            raise PolicyError(f"its {what} {name} is {kind} {one_line(shape, 60)}; allowed: {right} [{wanted}]")
