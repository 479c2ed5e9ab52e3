"""The flight log: every command with what led to it, at the full rate of the stream, in a folder of .npz parts.

The command stream writes rows into memory; a thread of its own writes full parts to disk. A log keeps the latest
parts only, so it never fills a disk, and a process that is killed loses at most the part in memory.
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
        ("late", "f4"),  # s by which this command was sent after its time
        ("state", "i1"),  # index in `DeployState`
        ("state_age", "f4"),  # s since the robot's last new state
        ("pose_age", "f4"),  # s since the last believed pose
        ("tick", "u4"),  # of the robot's state
        ("joint_angles", "f4", 12),
        ("joint_velocities", "f4", 12),
        ("torques", "f4", 12),
        ("quaternion", "f4", 4),  # IMU
        ("gyroscope", "f4", 3),
        ("accelerometer", "f4", 3),
        ("battery", "f4"),
        ("temperature", "f4"),  # degrees Celsius, the hottest motor
        ("base_position", "f4", 3),  # estimated; nan before the first pose
        ("base_orientation", "f4", 4),
        ("base_velocity", "f4", 3),  # base frame
        ("odometry", "f4", 3),  # m, by the legs alone
        ("pose_position", "f4", 3),  # as captured, the newest
        ("pose_orientation", "f4", 4),
        ("pose_count", "i4"),  # poses that came
        ("pose_rejected", "i4"),  # poses that were not believed
        ("policy_target", "f4", 12),  # what the policy asked for; nan when it is not heard
        ("target", "f4", 12),  # what was sent
        ("stiffness", "f4", 12),
        ("damping", "f4", 12),
    ]
)
PART = 1000  # rows: 2 s
MAX_LOG_PARTS = 900  # kept: half an hour, some 450 MB
EVENTS = 10_000  # kept, the first ones
PENDING = 8  # full parts that may wait for a slow disk


class FlightLog:
    """Writes a log; `row` is for the command stream alone, `note` for any thread. Neither blocks nor raises."""

    def __init__(self, folder: Path, about: dict[str, Any], parts: int = MAX_LOG_PARTS) -> None:
        """Raise OSError when the folder cannot be made or already holds a log."""
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("part-*.npz")):
            raise FileExistsError(17, "holds a flight log already", str(folder))
        write_atomically(folder / "about.json", json.dumps(about, indent=2))
        self.folder = folder
        self.lost = 0  # rows that a slow or full disk cost
        self.problem = ""  # why the first of them were lost
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
        """The row to fill in next."""
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
            except Exception as error:  # a full disk; an archive that could not be finished raises others as well
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
    """Raise FileError for a folder without a log, or with one that is damaged or of another version."""
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
    for number, line in enumerate(lines[:-1], 1):  # a line without an end is one that a kill cut off
        try:
            event = parse_json(line)
            yield float(event["time"]), one_line(event["event"])
        except (FileError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise FileError(f'{path}:{number}: not an event; allowed: {{"time": S, "event": TEXT}}') from error
