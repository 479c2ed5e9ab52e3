"""Pose sources: the protocol, and the source that needs no extra library (JSON over UDP).

The world frame is x forward, y left, z up, in metres; quaternions are w x y z. A motion-capture system has its own axes
and tracks a cluster of markers rather than the base. `Mounting` describes both, and every source converts with it:

    world_from_base = world_from_capture * capture_from_body * body_from_base

JSON over UDP: one datagram per pose, an object with "position": [x, y, z] and "orientation": [w, x, y, z], and optionally
"time" (s, the sender's clock) and "sequence" (a number that counts up). Other members are ignored. Invalid,
repeated, late and out-of-order poses are counted and dropped.
"""

import json
import math
import socket
import threading
import time as clock
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from keystride import geometry
from keystride.deploy.clock import Latest
from keystride.robot.description import Floats

if TYPE_CHECKING:
    from keystride.deploy.pose.estimator import LegOdometry

DEFAULT_PORT = 9870
FARTHEST = 1e4  # m from the origin; a pose beyond it is invalid
LATEST = 0.1  # s by which a pose may arrive later than the fastest one
CLOCK_DRIFT = 1e-4  # s per second, largest drift between the source's clock and ours
RESTARTED = 1.0  # s without a pose after which a source may restart its numbering
CAPTURE_AXES = {
    "z-up": np.array([1.0, 0.0, 0.0, 0.0]),
    "y-up": np.array([0.5, 0.5, 0.5, 0.5]),  # maps x y z to y z x: forward is the capture system's z, left its x
}


@dataclass(frozen=True)
class Pose:
    position: Floats  # (3,) m
    orientation: Floats  # (4,) w x y z
    time: float | None = None  # s, on the source's own clock
    sequence: int | None = None  # number given by the source
    delay: float = 0.0  # s by which it arrived later than the fastest pose of this source

    def __post_init__(self) -> None:
        """Raise ValueError for values that are not a pose."""
        if self.position.shape != (3,) or self.orientation.shape != (4,):
            raise ValueError("a pose has 3 coordinates and a quaternion of 4 numbers")
        if not (np.abs(self.position) <= FARTHEST).all():
            raise ValueError(f"a pose has coordinates within {FARTHEST:g} m")
        if not abs(math.sqrt(float(self.orientation @ self.orientation)) - 1.0) <= 0.05:
            raise ValueError("a pose has a quaternion of length 1")


class PoseSource(Protocol):
    """A running stream of poses of the robot's base in the world."""

    @property
    def poses(self) -> Latest[Pose]: ...

    @property
    def rejected(self) -> int:
        """Number of messages that were dropped."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for the first pose; return whether it arrived."""
        ...

    def follow(self, now: float, odometry: "LegOdometry") -> None:
        """Process a low state; called after each one, for sources that are computed from them."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Mounting:
    """The axes of the capture system and the pose of the base relative to the tracked body."""

    axes: str = "z-up"
    """Up axis of the capture system: z-up or y-up."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position of the base centre relative to the tracked body, in base axes, m."""
    yaw: float = 0.0
    """Heading of the base relative to the tracked body, degrees."""

    def base(self, body: Pose) -> Pose:
        """Return the base pose in the world, given the tracked body in the capture frame."""
        world_from_capture = CAPTURE_AXES[self.axes]
        # In the pose in which the tracked body was defined, its axes are parallel to those of the capture system.
        world_from_body = geometry.multiply(
            geometry.multiply(world_from_capture, geometry.normalize(body.orientation)),
            geometry.conjugate(world_from_capture),
        )
        world_from_base = geometry.multiply(world_from_body, geometry.from_yaw(np.asarray(math.radians(self.yaw))))
        position = geometry.rotate(world_from_capture, body.position)
        position = position + geometry.rotate(world_from_base, np.array(self.offset))
        return replace(body, position=position, orientation=world_from_base)


class Poses:
    """Base class of sources: validates and converts poses, keeps the newest one and counts those that are dropped."""

    def __init__(self, mounting: Mounting) -> None:
        self.mounting = mounting
        self.poses: Latest[Pose] = Latest()
        self.invalid = 0  # not a pose
        self.repeated = 0  # identical to the last one: the system has lost the body and repeats its last pose
        self.disordered = 0  # not newer than the last one
        self.late = 0
        self._last: Pose | None = None  # as received
        self._came = -np.inf
        self._offset = np.inf  # s from the source's clock to ours, from the fastest pose

    @property
    def rejected(self) -> int:
        return self.invalid + self.repeated + self.disordered + self.late

    def receive(
        self,
        position: object,
        orientation: object,
        time: object = None,
        sequence: object = None,
        now: float | None = None,
    ) -> None:
        """Process a pose in the capture frame; the values may come from the network and be anything."""
        now = clock.monotonic() if now is None else now
        try:
            stamp = None if time is None else float(time)  # type: ignore[arg-type]
            number = None if sequence is None else int(sequence)  # type: ignore[call-overload]
            if stamp is not None and not math.isfinite(stamp):
                raise ValueError("a time is finite")
            body = Pose(np.asarray(position, np.float64), np.asarray(orientation, np.float64), stamp, number)
            base = self.mounting.base(body)
        except (ValueError, TypeError, OverflowError):
            self.invalid += 1
            return
        if self._is_old(body, now):
            return
        delay = self._delay(body, now)
        if delay > LATEST:
            self.late += 1
            return
        self._last, self._came = body, now
        self.poses.put(replace(base, delay=delay), now)

    def _is_old(self, body: Pose, now: float) -> bool:
        last = self._last
        if last is None:
            return False
        if (last.position == body.position).all() and (last.orientation == body.orientation).all():
            self.repeated += 1
            return True
        if now - self._came < RESTARTED and (
            _not_after(body.sequence, last.sequence) or _not_after(body.time, last.time)
        ):
            self.disordered += 1
            return True
        return False

    def _delay(self, body: Pose, now: float) -> float:
        """Return how much later than the fastest pose this one arrived, s."""
        silence = now - self._came
        if body.time is None:
            return 0.0
        took = now - body.time
        if silence >= RESTARTED:
            self._offset = took
        self._offset = min(self._offset + CLOCK_DRIFT * silence, took)
        return took - self._offset

    def wait(self, seconds: float) -> bool:
        return self.poses.wait(seconds)

    def follow(self, now: float, odometry: "LegOdometry") -> None:
        pass

    def close(self) -> None:
        pass


def _not_after(new: float | None, last: float | None) -> bool:
    return new is not None and last is not None and new <= last


class UdpPoses(Poses):
    """JSON over UDP. Listens on the loopback interface unless given another address."""

    def __init__(self, mounting: Mounting, host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> None:
        super().__init__(mounting)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, port))
        self._socket.settimeout(0.2)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pose", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                data = self._socket.recv(4096)
            except TimeoutError:
                continue
            except OSError:
                return
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        try:
            message = json.loads(data)
            values = message["position"], message["orientation"], message.get("time"), message.get("sequence")
        except (ValueError, KeyError, TypeError, RecursionError):
            self.invalid += 1
            return
        self.receive(*values)

    def close(self) -> None:
        self._closed.set()
        self._thread.join(timeout=1.0)
        self._socket.close()


def pose_message(pose: Pose) -> bytes:
    """Return a datagram for `UdpPoses`."""
    message: dict[str, object] = {"position": pose.position.tolist(), "orientation": pose.orientation.tolist()}
    if pose.time is not None:
        message["time"] = pose.time
    if pose.sequence is not None:
        message["sequence"] = pose.sequence
    return json.dumps(message).encode()
