"""Motions in JSON: a frame time and a table of frames."""

from pathlib import Path
from typing import Any

import numpy as np

from keystride.motion.importers.problem import ImportProblem, require_finite, require_frames, require_rate
from keystride.reading import JSON_BYTES, one_line, parse_json, read_text
from keystride.robot.description import Floats


def read_motion(path: Path) -> dict[str, Any]:
    """Return a JSON object with a list of frames and a frame duration that is a plausible number."""
    content = parse_json(read_text(path, JSON_BYTES), finite=False)
    if not isinstance(content, dict) or not {"Frames", "FrameDuration"} <= set(content):
        raise ImportProblem("not a motion: no Frames and FrameDuration in it")
    duration, frames = content["FrameDuration"], content["Frames"]
    if isinstance(duration, bool) or not isinstance(duration, float | int) or not 0 < duration < 1e9:
        raise ImportProblem(f"the frame duration is {one_line(repr(duration), 40)}; allowed: seconds, a number above 0")
    if not isinstance(frames, list):
        raise ImportProblem("Frames is not a list of rows of numbers")
    require_frames(len(frames))
    require_rate(1.0 / duration, len(frames))
    return content


def frame_table(content: dict[str, Any], columns: int) -> Floats:
    """The frames as (T, columns)."""
    rows = content["Frames"]
    for number, row in enumerate(rows):
        if not isinstance(row, list):
            raise ImportProblem(f"frame {number} is not a list of {columns} numbers")
        if len(row) != columns:
            raise ImportProblem(f"another layout: {len(row)} values in frame {number}, {columns} expected")
        if not all(type(value) in (float, int) for value in row):
            raise ImportProblem(f"a value in frame {number} is not a number")
    try:
        table = np.array(rows, dtype=np.float64)
    except OverflowError as error:
        raise ImportProblem("an integer in the frames is too large") from error
    require_finite(table, "values")
    return table
