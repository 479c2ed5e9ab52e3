"""Where the robot is: one small protocol, and the source that needs nothing installed (JSON over UDP).

The world is x forward, y left, z up, in metres, with quaternions w x y z. A motion-capture system has axes of its own,
and what it tracks is a cluster of markers, not the base; `Mounting` says both, and every source converts by it:

    world_from_base = world_from_capture * capture_from_body * body_from_base

JSON over UDP: one datagram a pose, an object with "position": [x, y, z] and "orientation": [w, x, y, z]; other members
are ignored. A datagram that is not that is counted and dropped.
"""

import json
import math
import socket
import threading
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from keystride import geometry
from keystride.deploy.clock import Latest
from keystride.robot.description import Floats

DEFAULT_PORT = 9870
AXES = {
    "z-up": np.array([1.0, 0.0, 0.0, 0.0]),
    "y-up": np.array([0.5, 0.5, 0.5, 0.5]),  # x y z become y z x: forward is the capture's z, left its x
}


@dataclass(frozen=True)
class Pose:
    position: Floats  # (3,) m
    orientation: Floats  # (4,) w x y z

    def __post_init__(self) -> None:
        """Raises ValueError for anything that is no pose."""
        if self.position.shape != (3,) or self.orientation.shape != (4,):
            raise ValueError("a pose has 3 coordinates and a quaternion of 4 numbers")
        if not (np.isfinite(self.position).all() and np.isfinite(self.orientation).all()):
            raise ValueError("a pose has finite numbers")
        if abs(math.sqrt(float(self.orientation @ self.orientation)) - 1.0) > 0.05:
            raise ValueError("a pose has a quaternion of length 1")


class PoseSource(Protocol):
    """A running stream of poses of the robot's base in the world."""

    @property
    def poses(self) -> Latest[Pose]: ...

    @property
    def rejected(self) -> int:
        """Messages that were no pose."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Mounting:
    """The capture's axes, and where the tracked body sits on the base."""

    axes: str = "z-up"
    """Which way is up for the capture system: z-up or y-up."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where the base's centre is, seen from the tracked body, in base axes, m."""
    yaw: float = 0.0
    """The base's heading, seen from the tracked body, degrees."""

    def base(self, body: Pose) -> Pose:
        """The base in the world, from the tracked body in the capture's frame."""
        world_from_capture = AXES[self.axes]
        # The tracked body's axes are the capture's when it stands as it was when it was defined.
        world_from_body = geometry.multiply(
            geometry.multiply(world_from_capture, geometry.normalize(body.orientation)),
            geometry.conjugate(world_from_capture),
        )
        world_from_base = geometry.multiply(world_from_body, geometry.from_yaw(np.asarray(math.radians(self.yaw))))
        position = geometry.rotate(world_from_capture, body.position)
        return Pose(position + geometry.rotate(world_from_base, np.array(self.offset)), world_from_base)


class Poses:
    """Where every source puts what it receives: conversion, the newest pose, and the count of what was no pose."""

    def __init__(self, mounting: Mounting) -> None:
        self.mounting = mounting
        self.poses: Latest[Pose] = Latest()
        self.rejected = 0

    def receive(self, position: object, orientation: object) -> None:
        """In the capture's frame; anything that came over the network."""
        try:
            body = Pose(np.asarray(position, dtype=np.float64), np.asarray(orientation, dtype=np.float64))
        except (ValueError, TypeError):
            self.rejected += 1
            return
        self.poses.put(self.mounting.base(body))


class UdpPoses(Poses):
    """JSON over UDP, in the core. Listens on loopback unless told another address."""

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
            self.receive(message["position"], message["orientation"])
        except (ValueError, KeyError, TypeError, RecursionError):
            self.rejected += 1

    def close(self) -> None:
        self._closed.set()
        self._thread.join(timeout=1.0)
        self._socket.close()


def pose_message(pose: Pose) -> bytes:
    """A datagram for `UdpPoses`."""
    return json.dumps({"position": pose.position.tolist(), "orientation": pose.orientation.tolist()}).encode()
