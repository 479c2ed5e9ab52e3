"""The library of poses: the named postures and the user's own, which are stored in a hidden file beside the scripts.

Scripts know only the built-in names, so a pose of the user's own is written to a keyframe as joint angles.
"""

import json
import threading
from math import radians
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat

from keystride.errors import FileError
from keystride.files import write_atomically
from keystride.keyframes.postures import Posture, named_postures
from keystride.reading import check_model, one_line, parse_json, read_text
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
        """Return the user's own poses by name. Raise FileError if the file is invalid, OSError if it cannot be read."""
        try:
            return _parse(parse_json(read_text(self._path, MAX_LIBRARY_BYTES)), self._robot)
        except FileNotFoundError:
            return {}
        except FileError as error:
            raise FileError(f"{FILE} is not a pose library: {error}") from error

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


class _StoredPose(BaseModel):
    height: float = Field(ge=0.0, le=MAX_HEIGHT)
    roll: float = Field(ge=-MAX_TILT, le=MAX_TILT)
    pitch: float = Field(ge=-MAX_TILT, le=MAX_TILT)
    airborne: bool
    joints: list[FiniteFloat]


class _Stored(BaseModel):
    version: Literal[1]
    poses: dict[str, _StoredPose] = Field(max_length=MAX_POSES)


def _parse(stored: Any, robot: Robot) -> dict[str, Posture]:
    poses = check_model(stored, _Stored, "version 1").poses
    for name in poses:
        if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
            shown = one_line(repr(name), 60)
            raise FileError(f"poses: {shown} is not a name; allowed: 1 to {MAX_NAME} printable characters")
    return {name: _pose(name, pose, robot) for name, pose in poses.items()}


def _pose(name: str, stored: _StoredPose, robot: Robot) -> Posture:
    if len(stored.joints) != len(robot.stance):
        shown = one_line(repr(name), 60)
        raise FileError(f"poses: {shown}: {len(stored.joints)} joint angles; allowed: {len(robot.stance)}")
    joints = np.clip(np.radians(stored.joints), robot.lower, robot.upper)
    return Posture(joints, stored.height, radians(stored.roll), radians(stored.pitch), stored.airborne)
