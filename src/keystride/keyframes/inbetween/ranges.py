"""The ranges of keyframes that a policy was trained on, and where keyframes exceed them."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import degrees, inf, pi

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals, used
from keystride.robot.description import Floats

SHORTEST_MOVE = 0.25  # m, distance below which the direction to the next keyframe means little
RANGE_TOLERANCE = 0.05  # share of a limit by which it may be exceeded, because scripts are written in round figures
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class TrainedRanges:
    """Ranges between one keyframe and the next, as in training. The defaults are the paper's."""

    gap_s: tuple[float, float] = (0.5, 1.0)
    """Seconds from one keyframe to the next."""
    distance_m: tuple[float, float] = (0.0, 1.0)
    """Metres over the ground, from 0 (standing still) for keyframes taken from clips."""
    direction_rad: tuple[float, float] = (-pi / 3, pi / 3)
    """Direction to the next keyframe, relative to the heading at the previous one; positive to the left."""
    turn_rad: tuple[float, float] = (-pi / 3, pi / 3)
    """Change of yaw."""
    speed_m_s: tuple[float, float, float] = (2.0, 2.0, 2.0)
    """Highest average speeds from one keyframe to the next: ahead, sideways, backwards."""
    turn_rate_rad_s: float = 2 * pi / 3
    """Highest average turn rate from one keyframe to the next."""
    height_m: tuple[float, float] = (0.12, 0.55)
    """Height of the base above the ground; those of the authored clips, from lying down to leaping."""
    components: tuple[str, ...] = COMPONENTS
    """Components that keyframes had in training; the policy ignores the others."""

    def __post_init__(self) -> None:
        for name in ("gap_s", "distance_m", "direction_rad", "turn_rad", "height_m"):
            limits = getattr(self, name)
            if len(limits) != 2 or not -inf < limits[0] <= limits[1] < inf:
                raise ValueError(f"{name} is {limits}, not a lower and an upper limit")
        positive = (self.gap_s[0] / CONTROL_DT, self.distance_m[1], self.turn_rad[1], *self.speed_m_s)
        if len(self.speed_m_s) != 3 or not all(0.0 < value < inf for value in (*positive, self.turn_rate_rad_s)):
            raise ValueError("gaps, distances, turns and speeds must be positive and finite")

    @property
    def gap_steps(self) -> tuple[int, int]:
        """Control steps from one keyframe to the next."""
        return max(round(self.gap_s[0] / CONTROL_DT), 1), max(round(self.gap_s[1] / CONTROL_DT), 1)

    def knows(self, component: str) -> bool:
        return component in self.components

    def __str__(self) -> str:
        def span(limits: tuple[float, float], unit: str, scale: float = 1.0) -> str:
            return f"{scale * limits[0]:.3g} to {scale * limits[1]:.3g} {unit}"

        _, sideways, back = self.speed_m_s
        everywhere = self.direction_rad[1] > pi / 2
        sides = f" ahead, {sideways:.3g} sideways, {back:.3g} backwards" if everywhere else ""
        return (
            f"{span(self.gap_s, 's')} and {span(self.distance_m, 'm')} apart, "
            f"directions {span(self.direction_rad, 'degrees', degrees(1.0))}, "
            f"turns {span(self.turn_rad, 'degrees', degrees(1.0))}, "
            f"up to {self.speed_m_s[0]:.3g} m/s{sides} and {degrees(self.turn_rate_rad_s):.0f} degrees/s, "
            f"heights {span(self.height_m, 'm')}; holding {', '.join(self.components)}"
        )


@dataclass(frozen=True)
class Departure:
    """A keyframe, counted from 0 among a plan's rows, and how it exceeds the trained ranges."""

    row: int
    message: str


def exceeds(values: Floats, limits: tuple[float, float]) -> Mask:
    """Return whether values lie outside limits by more than the tolerance."""
    slack = RANGE_TOLERANCE * max(abs(limits[0]), abs(limits[1])) + 1e-9
    return (values < limits[0] - slack) | (values > limits[1] + slack)


def departures(goals: Goals, path: Floats, ranges: TrainedRanges, start: Floats) -> list[Departure]:
    """Return where one robot's keyframes (1, N), in order of time, leave the ranges.

    path (N, 3) is x, y, yaw at each, with what a keyframe leaves open filled in; start (3,) is where the robot begins.
    """
    rows = np.flatnonzero(used(goals)[0])
    x, y, yaw = np.concatenate([start[None], path[rows]]).T
    gap = np.diff(goals.step[0, rows], prepend=0) * CONTROL_DT
    distance = np.hypot(np.diff(x), np.diff(y))
    moves = distance > SHORTEST_MOVE
    direction = np.where(moves, geometry.wrap(np.arctan2(np.diff(y), np.diff(x)) - yaw[:-1]), 0.0)
    speed = np.where(moves, distance / np.maximum(gap, CONTROL_DT) / _fastest(ranges, direction), 0.0)
    turn = geometry.wrap(np.diff(yaw)) * ranges.knows("yaw")
    height = np.where(goals.height[0, rows], goals.position[0, rows, 2], np.mean(ranges.height_m))
    deg = degrees(1.0)
    found = [
        *_named(rows, gap, ranges.gap_s, "comes {value:.2f} s after the one before; trained: {low:g} to {high:g} s"),
        *_named(rows, distance, ranges.distance_m, "is {value:.2f} m from the one before; trained: up to {high:.3g} m"),
        *_named(
            rows,
            direction * deg,
            (ranges.direction_rad[0] * deg, ranges.direction_rad[1] * deg),
            "lies {value:.0f} degrees off the robot's heading; trained: {low:.0f} to {high:.0f} degrees",
        ),
        *_named(rows, speed, (0.0, 1.0), "asks for {value:.1f} times the trained speed in its direction"),
        *_named(
            rows,
            turn * deg,
            (ranges.turn_rad[0] * deg, ranges.turn_rad[1] * deg),
            "asks for a turn by {value:.0f} degrees; trained: {low:.0f} to {high:.0f} degrees",
        ),
        *_named(
            rows,
            np.abs(turn) / np.maximum(gap, CONTROL_DT) / ranges.turn_rate_rad_s,
            (0.0, 1.0),
            "asks for {value:.1f} times the trained turn rate",
        ),
        *_named(rows, height, ranges.height_m, "has a height of {value:.2f} m; trained: {low:.2f} to {high:.2f} m"),
    ]
    return sorted(found, key=lambda departure: departure.row)


def _fastest(ranges: TrainedRanges, direction: Floats) -> Floats:
    """Return the highest trained speed in each direction, m/s: an ellipse through the speeds ahead (or backwards) and sideways."""
    ahead, sideways, back = ranges.speed_m_s
    along = np.where(np.cos(direction) >= 0, ahead, back)
    return 1.0 / np.hypot(np.cos(direction) / along, np.sin(direction) / sideways)


def _named(rows: NDArray[np.intp], values: Floats, limits: tuple[float, float], message: str) -> Iterator[Departure]:
    for row in np.flatnonzero(exceeds(values, limits)):
        yield Departure(int(rows[row]), message.format(value=values[row], low=limits[0], high=limits[1]))
