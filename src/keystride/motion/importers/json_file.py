"""Motions in JSON: a frame time and a table of frames."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from keystride.motion.importers.problem import ImportProblem, read_text, require_finite, require_frames
from keystride.robot.description import Floats


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ImportProblem(f"truncated or not JSON: {error.msg} in line {error.lineno}") from error
    if not isinstance(content, dict) or not {"Frames", "FrameDuration"} <= set(content):
        raise ImportProblem("not a motion: no Frames and FrameDuration in it")
    if not isinstance(content["FrameDuration"], float | int) or content["FrameDuration"] <= 0:
        raise ImportProblem(f"the frame duration is {content['FrameDuration']!r}")
    return content


def frame_table(content: dict[str, Any], columns: int) -> Floats:
    """The frames as (T, columns)."""
    rows = content["Frames"]
    require_frames(len(rows))
    widths = {len(row) for row in rows}
    if widths != {columns}:
        raise ImportProblem(f"another layout: rows of {sorted(widths)} values, {columns} expected")
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ImportProblem("a value in the frames is not a number") from error
    require_finite(table, "values")
    return table
