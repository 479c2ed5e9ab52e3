"""Errors that the command line reports as one line with exit code 2; programming errors keep their traceback."""

import os
import sys
from collections.abc import Iterator

USER_MISTAKE = 2
INTERRUPTED = 130  # as shells report a process that Ctrl-C ended

EXTRAS = {  # optional modules, and the extra that installs each
    "torch": "train",
    "onnx": "train",
    "onnxscript": "train",
    "tensorboard": "tensorboard",
    "viser": "studio",
    "mjviser": "studio",
    "imageio_ffmpeg": "video",
    "cyclonedds": "deploy",
    "gymnasium": "gym",
    "motioncapture": "mocap",
    "natnet": "mocap",
    "qtm_rt": "mocap",
}


class UserError(Exception):
    """A request that cannot be carried out. The message says why, and what is allowed."""


class FileError(ValueError):
    """A file that cannot be used. The message says in one line what is wrong, where, and what is allowed."""


def report(error: Exception) -> int:
    """Print a user error and return the exit code; re-raise a programming error."""
    if isinstance(error, BrokenPipeError):  # as with `| head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (flushed by the interpreter on exit)
        return 0
    message = explain(error)
    if message is None or os.environ.get("KEYSTRIDE_TRACEBACK"):
        raise error
    print(f"error: {printable(message)}", file=sys.stderr)
    return USER_MISTAKE


def printable(message: str) -> str:
    """Return a message without control characters, so that a file name cannot control the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in message)


def explain(error: Exception) -> str | None:
    """Return the message for a user error, or None for a programming error."""
    if isinstance(error, (UserError, FileError)):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    if isinstance(error, OSError):
        return _file_trouble(error)
    if type(error).__name__ == "ValidationError" and type(error).__module__.startswith("pydantic"):
        return "; ".join(_invalid_fields(error))
    return None


def _missing_extra(error: ModuleNotFoundError) -> str | None:
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return f"{module} is not installed; install it with: pip install 'keystride[{EXTRAS[module]}]'"


def _file_trouble(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _invalid_fields(error: Exception) -> Iterator[str]:
    from pydantic import ValidationError  # imported here to keep --help fast

    assert isinstance(error, ValidationError)
    for entry in error.errors(include_url=False):
        place = ".".join(str(part) for part in entry["loc"])
        yield f"{place}: {entry['msg']}" if place else entry["msg"]
