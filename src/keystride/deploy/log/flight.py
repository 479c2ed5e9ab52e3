"""The flight log: every command with the data that led to it, at the full rate of the stream, in a folder of .npz parts.

The command stream writes rows to memory; a separate thread writes full parts to disk. A log keeps only the latest
parts, so it never fills a disk, and a process that is killed loses at most the part in memory.
"""

import json
import queue
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keystride.deploy.fault_checks import DeployState
from keystride.errors import FileError
from keystride.files import write_atomically
from keystride.reading import JSON_BYTES, one_line, parse_json, read_arrays, read_json, read_text

ROW = np.dtype(
    [
        ("time", "f8"),  # s, monotonic clock
        ("late", "f4"),  # s by which this command was sent too late
        ("state", "i1"),  # index in `DeployState`
        ("state_age", "f4"),  # s since the robot's last new state
        ("pose_age", "f4"),  # s since the last accepted pose
        ("tick", "u4"),  # of the robot's state
        ("joint_angles", "f4", 12),
        ("joint_velocities", "f4", 12),
        ("torques", "f4", 12),
        ("quaternion", "f4", 4),  # IMU
        ("gyroscope", "f4", 3),
        ("accelerometer", "f4", 3),
        ("battery", "f4"),
        ("temperature", "f4"),  # degrees Celsius, of the hottest motor
        ("base_position", "f4", 3),  # estimated; nan before the first pose
        ("base_orientation", "f4", 4),
        ("base_velocity", "f4", 3),  # base frame
        ("odometry", "f4", 3),  # m, from the legs alone
        ("pose_position", "f4", 3),  # the newest, as captured
        ("pose_orientation", "f4", 4),
        ("pose_count", "i4"),  # poses received
        ("pose_rejected", "i4"),  # poses rejected
        ("policy_target", "f4", 12),  # the policy's; nan when it is not in control
        ("target", "f4", 12),  # sent to the robot
        ("stiffness", "f4", 12),
        ("damping", "f4", 12),
    ]
)
PART = 1000  # rows per part: 2 s
MAX_LOG_PARTS = 900  # half an hour, about 450 MB
EVENTS = 10_000  # number of events kept: the first ones
PENDING = 8  # full parts that may wait for a slow disk


class FlightLog:
    """Writes a log. Only the command stream may call `row`; any thread may call `note`. Neither blocks nor raises."""

    def __init__(self, folder: Path, about: dict[str, Any], parts: int = MAX_LOG_PARTS) -> None:
        """Raise OSError when the folder cannot be made or already holds a log."""
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("part-*.npz")):
            raise FileExistsError(17, "holds a flight log already", str(folder))
        write_atomically(folder / "about.json", json.dumps(about, indent=2))
        self.folder = folder
        self.lost = 0  # rows lost to a slow or full disk
        self.problem = ""  # why the first of them was lost
        self._rows = np.zeros(PART, ROW)
        self._filled = 0
        self._events: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        self._noted = 0
        self._kept: deque[Path] = deque()
        self._parts = parts
        self._number = 0
        self._full: queue.Queue[np.ndarray | None] = queue.Queue(PENDING)
        self._thread = threading.Thread(target=self._write_all, name="flight log", daemon=True)
        self._thread.start()

    def row(self) -> np.void:
        """Return the row to fill in next."""
        if self._filled == PART:
            self._hand_over()
        self._filled += 1
        return self._rows[self._filled - 1]

    def note(self, now: float, text: str) -> None:
        """Log an event; those beyond EVENTS are dropped."""
        self._noted += 1
        if self._noted <= EVENTS:
            self._events.put((now, text))

    def close(self, seconds: float = 5.0) -> None:
        """Write what is left, unless the disk takes longer than `seconds`."""
        self._hand_over()
        try:
            self._full.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _hand_over(self) -> None:
        if self._filled:
            try:
                self._full.put_nowait(self._rows[: self._filled])
            except queue.Full:
                self.lost += self._filled
                self.problem = self.problem or "the disk is too slow"
            self._rows = np.zeros(PART, ROW)
            self._filled = 0

    def _write_all(self) -> None:
        while (rows := self._full.get()) is not None:
            try:
                self._write(rows)
                self._write_events()
            except Exception as error:  # a full disk; closing an unfinished archive raises other errors too
                self.lost += len(rows)
                self.problem = self.problem or str(error) or type(error).__name__

    def _write(self, rows: np.ndarray) -> None:
        path = self.folder / f"part-{self._number:05d}.npz"
        self._number += 1
        part = path.with_suffix(".part")
        columns: dict[str, Any] = {name: rows[name] for name in ROW.names or ()}
        with part.open("wb") as file:
            np.savez(file, **columns)
        part.replace(path)
        self._kept.append(path)
        while len(self._kept) > self._parts:
            self._kept.popleft().unlink(missing_ok=True)

    def _write_events(self) -> None:
        with (self.folder / "events.jsonl").open("a") as file:
            while not self._events.empty():
                at, text = self._events.get()
                file.write(json.dumps({"time": at, "event": text}) + "\n")


@dataclass(frozen=True)
class Flight:
    """A log that was read back."""

    rows: np.ndarray  # (T,) of ROW
    events: list[tuple[float, str]]
    about: dict[str, Any]

    @property
    def time(self) -> np.ndarray:
        """(T,) s from the first row."""
        return self.rows["time"] - self.rows["time"][0]


def read_log(folder: Path) -> Flight:
    """Read a log. Raise FileError if there is none in the folder, or it is damaged or of another version."""
    parts = sorted(folder.glob("part-*.npz"))
    if not parts or len(parts) > MAX_LOG_PARTS:
        raise FileError(f"{folder}: no flight log (1 to {MAX_LOG_PARTS} files part-*.npz)")
    rows = np.concatenate([_read_part(path) for path in parts])
    if not np.isfinite(rows["time"]).all() or (np.diff(rows["time"]) < 0.0).any():
        raise FileError(f"{folder}: the times of the rows are not in order")
    about = folder / "about.json"
    metadata = read_json(about) if about.exists() else {}
    if not isinstance(metadata, dict):
        raise FileError(f"{about}: not a mapping")
    return Flight(rows, list(_read_events(folder / "events.jsonl")), metadata)


def _read_part(path: Path) -> np.ndarray:
    try:
        columns = read_arrays(path)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    if columns.keys() != set(ROW.names or ()):
        raise FileError(f"{path}: written by another version of this program")
    count = len(columns["time"]) if columns["time"].ndim else 0
    part = np.zeros(count, ROW)
    for name, values in columns.items():
        if values.shape != part[name].shape or values.dtype.kind not in "fiu" or not 1 <= count <= PART:
            raise FileError(
                f"{path}: {name} is {values.shape} of {values.dtype}; allowed: numbers, 1 to {PART} rows in all columns"
            )
        with np.errstate(invalid="ignore", over="ignore"):
            part[name] = values
    if not ((part["state"] >= 0) & (part["state"] < len(DeployState))).all():
        raise FileError(f"{path}: state is not one of 0 to {len(DeployState) - 1}")
    return part


def _read_events(path: Path) -> Iterator[tuple[float, str]]:
    try:
        lines = read_text(path, JSON_BYTES).split("\n") if path.exists() else []
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    for number, line in enumerate(lines[:-1], 1):  # the last line is incomplete if the process was killed
        try:
            event = parse_json(line)
            yield float(event["time"]), one_line(event["event"])
        except (FileError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise FileError(f'{path}:{number}: not an event; allowed: {{"time": S, "event": TEXT}}') from error
