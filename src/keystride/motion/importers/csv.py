"""Unitree-style CSV: base position, quaternion x y z w, twelve joint angles in a row; a header is optional."""

from pathlib import Path

import numpy as np

from keystride.motion.fitting import Take
from keystride.motion.importers.poses import LEGS, Poses, from_xyzw, in_leg_order, take_as_is
from keystride.motion.importers.problem import ImportProblem, read_text
from keystride.robot.description import Floats, Robot

COLUMNS = 19


def read_csv(path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS, fps: float = 50.0) -> list[Take]:
    table = parse_table(read_text(path))
    joints = in_leg_order(table[:, 7:], order)
    return [take_as_is(Poses(name, fps, table[:, :3], from_xyzw(table[:, 3:7]), joints), robot)]


def parse_table(text: str) -> Floats:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and not _is_number(lines[0].split(",")[0]):
        lines = lines[1:]
    rows = [line.split(",") for line in lines]
    wrong = next((number for number, row in enumerate(rows) if len(row) != COLUMNS), None)
    if wrong is not None:
        raise ImportProblem(
            f"truncated or another layout: {len(rows[wrong])} values in row {wrong}, {COLUMNS} expected"
        )
    try:
        return np.array(rows, dtype=np.float64).reshape(-1, COLUMNS)
    except ValueError as error:
        raise ImportProblem("a value is not a number") from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
