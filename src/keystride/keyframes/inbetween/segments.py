"""Path segments between keyframes: their shape, the speed along them, and which way the robot faces.

Everything is computed for all segments of all robots at once. E is robots, S segments, W samples. Distances are in m, angles in
rad, times in s from the beginning of a segment.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.inbetween.ranges import Mask
from keystride.robot.description import Floats


@dataclass(frozen=True)
class Pace:
    """How the robot moves where a script leaves it the choice."""

    speed: float = 0.6
    """Walking speed in m/s."""
    ramp: float = 1.0
    """Seconds to reach that speed from a standstill, and to stop."""
    turn_rate: float = 1.4
    """Turn rate on the spot in rad/s, not counting the set-up time."""
    turn_setup: float = 0.75
    """Seconds that a turn on the spot takes in addition."""
    max_speedup: float = 2.0
    """Largest factor by which it speeds up when time is short; if that is not enough, it turns while walking."""
    least_wait: float = 1.0
    """Seconds. Instead of waiting for less than this, it walks more slowly."""
    still: float = 0.08
    """Metres. Two keyframes closer than this count as the same place."""


DEFAULT_PACE = Pace()


@dataclass(frozen=True)
class Segments:
    """(E, S) each, or (E, S, 2) for points in the plane."""

    begin: Floats  # m, world
    end: Floats
    depart: Floats  # m, world: directions of the curve at both ends, as long as the segment
    arrive: Floats
    speed_in: Floats  # m/s
    speed_out: Floats
    yaw: Floats  # rad, at the beginning
    turn: Floats  # to the end, for segments on which the robot does not face along the path
    turn_in: Floats  # from the path's direction at its beginning back to yaw
    turn_out: Floats  # from the path's direction at its end to the yaw there
    along: Mask  # whether the robot faces along the path
    wait: Floats  # s before anything moves
    first: Floats  # s of turning before walking
    walk: Floats  # s
    last: Floats  # s of turning after walking
    ramp: Floats  # s of speeding up, and of slowing down

    def __getitem__(self, at: tuple[NDArray[np.intp], ...]) -> "Segments":
        return Segments(*(getattr(self, field.name)[at] for field in fields(self)))

    @property
    def length(self) -> Floats:
        return np.linalg.norm(self.end - self.begin, axis=-1)

    @property
    def cruise(self) -> Floats:
        """Return the speed between the ramps, m/s."""
        gained = 0.5 * self.ramp * (self.speed_in + self.speed_out)
        return (self.length - gained) / np.maximum(self.walk - self.ramp, 1e-9)

    @property
    def top_speed(self) -> Floats:
        return np.maximum(self.cruise, np.maximum(self.speed_in, self.speed_out))

    @property
    def top_turn_rate(self) -> Floats:
        """Return the largest turn rate, rad/s; a minimum-jerk turn is 15/8 times as fast in its middle as on average."""
        spans = [(np.abs(self.turn) * ~self.along, self.walk + self.first + self.last)]
        spans += [(np.abs(self.turn_in) * self.along, _turning(self.first, self.walk))]
        spans += [(np.abs(self.turn_out) * self.along, _turning(self.last, self.walk))]
        return 1.875 * np.max([angle / np.maximum(seconds, 1e-9) for angle, seconds in spans], axis=0)


def sample(segments: Segments, time: Floats) -> tuple[Floats, Floats, Mask, Mask]:
    """Return position (W, 2), yaw (W,), whether the robot has set off, and whether it walks; segments and time are (W,)."""
    set_off = segments.wait + segments.first
    walked = np.clip(time - set_off, 0.0, segments.walk)
    share = np.divide(
        _distance(segments, walked), segments.length, out=np.zeros_like(walked), where=segments.length > 0
    )
    position, tangent = _curve(segments, np.clip(share, 0.0, 1.0)[:, None])
    facing_path = _facing(segments, tangent, time)
    turning = segments.first + segments.walk + segments.last
    facing_turn = segments.yaw + segments.turn * minimum_jerk((time - segments.wait) / np.maximum(turning, 1e-9))
    yaw = geometry.wrap(np.where(segments.along, facing_path, facing_turn))
    return (
        position,
        yaw,
        time > segments.wait,
        (time > set_off) & (time < set_off + segments.walk) & (segments.length > 0),
    )


def minimum_jerk(share: Floats) -> Floats:
    """Return a curve from 0 to 1 with minimum jerk."""
    s = np.clip(share, 0.0, 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)


def _distance(segments: Segments, time: Floats) -> Floats:
    """Return the distance walked, m. The speed ramps up and down as a cubic in time."""
    ramp, cruise = np.maximum(segments.ramp, 1e-9), segments.cruise
    rising = segments.speed_in * time + (cruise - segments.speed_in) * ramp * _ramp_integral(time / ramp)
    left = segments.walk - time
    falling = (
        segments.length - segments.speed_out * left - (cruise - segments.speed_out) * ramp * _ramp_integral(left / ramp)
    )
    return np.where(time < 0.5 * segments.walk, rising, falling)


def _ramp_integral(s: Floats) -> Floats:
    """Return the integral of 3 s^2 - 2 s^3 up to s = 1, and of 1 beyond."""
    inside = np.clip(s, 0.0, 1.0)
    return inside**3 - 0.5 * inside**4 + np.maximum(s - 1.0, 0.0)


def _curve(segments: Segments, s: Floats) -> tuple[Floats, Floats]:
    """Return point and derivative of the cubic through both ends with their directions; s (W, 1) from 0 to 1."""
    chord = segments.end - segments.begin
    bend_in, bend_out = segments.depart - chord, segments.arrive - chord
    point = segments.begin + s * chord + s * (1 - s) * ((1 - s) * bend_in - s * bend_out)
    tangent = chord + (1 - s) * (1 - 3 * s) * bend_in + s * (3 * s - 2) * bend_out
    return point, tangent


def _facing(segments: Segments, tangent: Floats, time: Floats) -> Floats:
    """Return the yaw of a robot that faces along its path, except for turns at both ends, on the spot or while walking."""
    path = np.arctan2(tangent[:, 1], tangent[:, 0])
    over = time - segments.wait
    ending = segments.first + segments.walk + segments.last - over
    into = _turning(segments.first, segments.walk)
    out_of = _turning(segments.last, segments.walk)
    return (
        path
        + segments.turn_in * (1 - minimum_jerk(over / np.maximum(into, 1e-9)))
        + segments.turn_out * (1 - minimum_jerk(ending / np.maximum(out_of, 1e-9)))
    )


def _turning(on_the_spot: Floats, walk: Floats) -> Floats:
    """Return the seconds that a turn at an end takes."""
    return np.where(on_the_spot > 0, on_the_spot, np.minimum(1.0, 0.5 * walk))
