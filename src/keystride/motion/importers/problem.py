"""What an importer says of a file that it cannot use."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from keystride.robot.description import Floats


class ImportProblem(Exception):
    """One clear line about one file: truncated, of another skeleton, not finite, of the wrong unit."""


def read_text(path: Path) -> str:
    """The text of a file, plain or gzip'd."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ImportProblem("truncated or damaged gzip file") from error
    except UnicodeDecodeError as error:
        raise ImportProblem("not a text file") from error


def require_finite(values: Floats, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=-1))
    if len(bad):
        raise ImportProblem(f"non-finite {what} in {len(bad)} frames, the first is frame {bad[0]}")


def require_frames(count: int, least: int = 2) -> None:
    if count < least:
        raise ImportProblem(f"truncated: {count} frames, at least {least} are needed")
