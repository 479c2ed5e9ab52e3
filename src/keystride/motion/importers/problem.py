"""What an importer says of a file that it cannot use."""

import numpy as np

from keystride.errors import FileError
from keystride.robot.description import Floats

MAX_FRAMES = 100_000  # of a file and of the clip made from it: half an hour
FRAME_RATES = (1.0, 1000.0)  # per second


class ImportProblem(FileError):
    """One clear line about one file: truncated, of another skeleton, not finite, of the wrong unit."""


def require_finite(values: Floats, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=-1))
    if len(bad):
        raise ImportProblem(f"non-finite {what} in {len(bad)} frames, the first is frame {bad[0]}")


def require_frames(count: int, least: int = 2) -> None:
    if count < least:
        raise ImportProblem(f"truncated: {count} frames, at least {least} are needed")
    if count > MAX_FRAMES:
        raise ImportProblem(f"{count} frames; allowed: at most {MAX_FRAMES}")


def require_rate(fps: float, frames: int, clip_fps: float = 50.0) -> None:
    """The rate has to be plausible, and the clip made from the frames not too long."""
    low, high = FRAME_RATES
    if not low <= fps <= high:  # NaN is not
        raise ImportProblem(f"the frame rate is {fps:g} per second; allowed: {low:g} to {high:g}")
    require_frames(int(frames / fps * clip_fps), least=0)
