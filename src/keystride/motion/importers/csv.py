"""Unitree-style CSV: base position, quaternion x y z w, twelve joint angles in a row; a header is optional."""

from pathlib import Path

import numpy as np

from keystride.motion.importers.poses import LEGS, Poses, from_xyzw, in_leg_order, take_as_is
from keystride.motion.importers.problem import ImportProblem, require_frames
from keystride.motion.retargeting.fitting import Take
from keystride.reading import read_text
from keystride.robot.description import Floats, Robot

COLUMNS = 19


def read_csv(path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS, fps: float = 50.0) -> list[Take]:
    table = parse_table(read_text(path))
    joints = in_leg_order(table[:, 7:], order)
    return [take_as_is(Poses(name, fps, table[:, :3], from_xyzw(table[:, 3:7]), joints), robot)]


def parse_table(text: str) -> Floats:
    require_frames(
        text.count("\n") + 1, least=0
    )  # before it is cut into lines: a file of empty ones would fill the memory
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not _is_number(lines[0].partition(",")[0]):
        lines = lines[1:]
    rows = [_row(line, number) for number, line in enumerate(lines)]
    require_frames(len(rows))
    return np.array(rows)


def _row(line: str, number: int) -> list[float]:
    count = line.count(",") + 1
    if count != COLUMNS:
        raise ImportProblem(f"truncated or another layout: {count} values in row {number}, {COLUMNS} expected")
    try:
        return [float(word) for word in line.split(",")]
    except ValueError as error:
        raise ImportProblem(f"a value in row {number} is not a number") from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
