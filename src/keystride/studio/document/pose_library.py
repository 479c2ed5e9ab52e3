"""The library of poses: the named postures and the user's own, which are stored in a hidden file beside the scripts.

Scripts know only the built-in names, so a pose of the user's own is written to a keyframe as joint angles.
"""

import json
import threading
from math import radians
from pathlib import Path
from typing import Any

import numpy as np

from keystride.errors import FileError
from keystride.files import write_atomically
from keystride.keyframes.postures import Posture, named_postures
from keystride.reading import parse_json, read_text
from keystride.robot.description import Robot

FILE = ".keystride-poses.json"
MAX_NAME = 40
MAX_POSES = 200
MAX_LIBRARY_BYTES = 1 << 20
MAX_HEIGHT, MAX_TILT = 2.0, 180.0  # m, degrees
_writing = threading.Lock()  # shared by all sessions


class PoseExists(ValueError):
    """The user already has a pose with that name."""


class PoseLibrary:
    def __init__(self, scripts: Path, robot: Robot) -> None:
        self._path, self._robot = scripts / FILE, robot
        self.built_in = named_postures(robot)
        self._seen: tuple[int, int] | None = None  # time and size of the file at the last check

    def poses(self) -> dict[str, Posture]:
        """Return all poses, the built-in ones first. An unreadable file counts as empty."""
        try:
            return {**self.built_in, **self.own()}
        except (OSError, ValueError):
            return dict(self.built_in)

    def own(self) -> dict[str, Posture]:
        """Return the user's own poses by name. Raise ValueError if the file is invalid, OSError if it cannot be read."""
        try:
            return _parse(parse_json(read_text(self._path, MAX_LIBRARY_BYTES)), self._robot)
        except FileNotFoundError:
            return {}
        except FileError as error:
            raise ValueError(f"{FILE} is not a pose library: {error}") from error

    def changed(self) -> bool:
        """Return whether the file has changed since the last call; other sessions write to it too."""
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size)
        except OSError:
            seen = None
        seen, self._seen = self._seen, seen
        return seen != self._seen

    def save(self, name: str, pose: Posture, *, replace: bool = False) -> None:
        """Save a pose. Raise PoseExists if the name is taken and `replace` is not set, ValueError if it is not allowed."""
        name = name.strip()
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise ValueError(f"a pose needs a name of 1 to {MAX_NAME} printable characters")
        if name in self.built_in:
            raise ValueError(f"{name} is a built-in pose; choose another name")
        with _writing:
            own = self.own()
            if name in own and not replace:
                raise PoseExists(f"There is already a pose called {name}.")
            if len(own) >= MAX_POSES and name not in own:
                raise ValueError(f"there are already {MAX_POSES} poses; delete one first")
            self._write({**own, name: pose})

    def delete(self, name: str) -> None:
        with _writing:
            self._write({kept: pose for kept, pose in self.own().items() if kept != name})

    def _write(self, own: dict[str, Posture]) -> None:
        fields = {name: _fields(own[name]) for name in sorted(own)}
        write_atomically(self._path, json.dumps({"version": 1, "poses": fields}, indent=1))


def _fields(pose: Posture) -> dict[str, Any]:
    roll, pitch = (round(float(np.degrees(angle)), 1) for angle in (pose.roll, pose.pitch))
    joints = np.degrees(pose.joints).round(1).tolist()
    return {"height": round(pose.height, 3), "roll": roll, "pitch": pitch, "airborne": pose.airborne, "joints": joints}


def _parse(stored: Any, robot: Robot) -> dict[str, Posture]:
    try:
        if stored["version"] != 1 or len(stored["poses"]) > MAX_POSES:
            raise ValueError("unknown version, or too many poses")
        return {str(name)[:MAX_NAME]: _pose(fields, robot) for name, fields in stored["poses"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{FILE} is not a pose library: {error}") from error


def _pose(fields: dict[str, Any], robot: Robot) -> Posture:
    numbers = [float(fields[name]) for name in ("height", "roll", "pitch")]
    joints = np.radians(np.array(fields["joints"], dtype=float))
    if joints.shape != robot.stance.shape or not np.isfinite([*numbers, *joints]).all():
        raise ValueError(f"a pose needs a height, a tilt and {len(robot.stance)} joint angles")
    height, roll, pitch = numbers
    if not 0.0 <= height <= MAX_HEIGHT or max(abs(roll), abs(pitch)) > MAX_TILT:
        raise ValueError("a height or tilt is out of range")
    joints = np.clip(joints, robot.lower, robot.upper)
    return Posture(joints, height, radians(roll), radians(pitch), bool(fields["airborne"]))
