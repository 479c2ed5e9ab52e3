"""The handles of the selected ghost: their size, which one is under the pointer, and what dragging it changes.

This is geometry only. Points are in the frame of the stage, in metres.
"""

from dataclasses import dataclass, field
from math import atan2

import numpy as np

from keystride import geometry
from keystride.robot.description import Floats
from keystride.studio.document.keyframe_poses import Ghost
from keystride.studio.document.posing import ghost_feet

RING_RADIUS, RING_TUBE = 0.5, 0.03  # m
ARROW_FROM, ARROW_TO, ARROW_RADIUS = 0.16, 0.46, 0.04  # m above the base
FOOT_RADIUS = 0.055  # m
FLAT = 0.15  # slope of a ray that is too flat to point at a place on the ground
MAX_DRAG_DISTANCE = 30.0  # m; limits drags near the horizon
FEET = ("front left foot", "front right foot", "rear left foot", "rear right foot")


@dataclass(frozen=True)
class Ray:
    """The ray from the camera through the pointer."""

    origin: Floats  # (3,)
    direction: Floats  # (3,) unit length

    @classmethod
    def through(cls, origin: Floats, point: Floats) -> "Ray":
        return cls(origin, (point - origin) / max(float(np.linalg.norm(point - origin)), 1e-9))

    def at_height(self, z: float) -> Floats:
        """Return the point (3,) of a horizontal plane under the pointer."""
        down = float(self.direction[2])
        way = (z - float(self.origin[2])) / down if abs(down) > 1e-6 else MAX_DRAG_DISTANCE
        return self.origin + self.direction * (min(way, MAX_DRAG_DISTANCE) if way > 0 else MAX_DRAG_DISTANCE)

    def distance_to(self, point: Floats) -> float:
        along = max(float((point - self.origin) @ self.direction), 0.0)
        return float(np.linalg.norm(self.origin + along * self.direction - point))

    def height_on(self, foot: Floats) -> float:
        """Return the height at which the vertical line through a point comes closest to the ray."""
        offset, slope = self.origin - foot, float(self.direction[2])
        level = 1.0 - slope**2
        if level < 1e-6:  # seen from directly above
            return float(foot[2])
        return float(foot[2] + (offset[2] - slope * float(self.direction @ offset)) / level)


def pick(ghost: Ghost, ray: Ray) -> str | None:
    """Return the handle under the pointer: a foot, `height` or `yaw`. Handles take precedence over ghosts."""
    feet = ghost_feet(ghost)
    distances = {name: ray.distance_to(foot) / FOOT_RADIUS for name, foot in zip(FEET, feet, strict=True)}
    shaft = np.linspace(ARROW_FROM, ARROW_TO, 13)[:, None] * [0.0, 0.0, 1.0] + ghost.position
    distances["height"] = min(ray.distance_to(point) for point in shaft) / ARROW_RADIUS
    on_plane = ray.at_height(float(ghost.position[2])) - ghost.position
    distances["yaw"] = abs(float(np.linalg.norm(on_plane[:2])) - RING_RADIUS) / RING_TUBE
    nearest = min(distances, key=lambda name: distances[name])
    return nearest if distances[nearest] <= 1.0 else None


@dataclass(frozen=True)
class Move:
    """The change to a keyframe that a drag asks for; None leaves a value unchanged."""

    key: int
    ground: Floats | None = None  # (2,) m
    yaw: float | None = None  # rad
    height: float | None = None  # m
    foot: tuple[int, Floats] | None = None  # leg, (3,) m


@dataclass(frozen=True)
class Grab:
    """A handle or ghost being dragged, as it was when the drag began."""

    handle: str  # as from `pick`, or `ground` for the ghost itself
    key: int
    ghost: Ghost
    point: Floats  # (3,) where it was grabbed
    ray: Ray
    start_angle: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start_angle", self._angle(self.ray))

    def move(self, ray: Ray, point: Floats) -> Move:
        """Return the change for a pointer position; `point` lies under it in the plane that faces the camera."""
        position = self.ghost.position
        if self.handle == "yaw":
            turn = self._angle(ray) - self.start_angle
            return Move(self.key, yaw=float(geometry.wrap(np.array(self.ghost.angles[2] + turn))))
        if self.handle == "height":
            lift = ray.height_on(position) - self.ray.height_on(position)
            return Move(self.key, height=max(float(position[2]) + lift, 0.0))
        if self.handle in FEET:
            leg = FEET.index(self.handle)
            foot = ghost_feet(self.ghost)[leg] + point - self.point
            foot[2] = max(foot[2], self.ghost.robot.foot_radius)
            return Move(self.key, foot=(leg, foot))
        if abs(float(self.ray.direction[2])) < FLAT:  # a plane at its height is seen from its edge
            return Move(self.key, ground=position[:2] + (point - self.point)[:2])
        level = float(self.point[2])
        shift = ray.at_height(level) - self.ray.at_height(level)
        return Move(self.key, ground=position[:2] + shift[:2])

    def _angle(self, ray: Ray) -> float:
        offset = ray.at_height(float(self.ghost.position[2])) - self.ghost.position
        return atan2(float(offset[1]), float(offset[0]))
