"""Gaits and steps: which foot swings when, where it lands and how it gets there.

Legs are listed front left, front right, rear left, rear right.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from keystride import geometry
from keystride.keyframes.inbetween.legs import minimum_jerk
from keystride.motion.authored.curves import bump, stance_load
from keystride.motion.signals import smoothstep
from keystride.robot.description import Floats

SHORTEST_STEP = 0.0005  # m: a foot that would land nearer than this to where it stands stays there
FULL_STEP = 0.04  # m: shorter steps are lower, too
TURN_RADIUS = 0.4  # m: what turning on the spot adds to the speed of stepping; beyond the feet, for quick short steps


@dataclass(frozen=True)
class Path:
    """The commanded way of the base over the ground, on a fine clock."""

    t: Floats  # (N,) s
    place: Floats  # (N, 2) m
    heading: Floats  # (N,) rad

    def under(self, spot: Floats, time: float) -> Floats:
        """Return (2,) where a spot (2,) of the moving frame is in the world at a time."""
        place = [np.interp(time, self.t, self.place[:, axis]) for axis in range(2)]
        return geometry.rotate_yaw(np.interp(time, self.t, self.heading), spot) + place


@dataclass(frozen=True)
class Swing:
    """A foot in the air, from one foothold to the next."""

    lift: float  # s
    touch: float  # s
    start: Floats  # (2,) m
    end: Floats  # (2,) m
    height: float  # m


def walked_path(t: Floats, velocity: Floats) -> Path:
    """Commanded velocities (N, 3) forward, sideways, turn, integrated from the origin."""
    heading = _integral(t, velocity[:, 2])
    world = geometry.rotate_yaw(heading, velocity[:, :2])  # (N, 2)
    return Path(t, np.stack([_integral(t, world[:, axis]) for axis in range(2)], axis=-1), heading)


def swings_of(path: Path, phase: Floats, duty: Floats, height: Floats, spot: Floats) -> list[Swing]:
    """Return the swings of one foot, whose phase (N,) starts a stance at each whole number, over the whole path.

    A foot lands where its spot (2,) under the moving trunk will be in the middle of the coming stance.
    """
    cycles = np.arange(np.ceil((phase - duty)[0]), np.floor(phase[-1]))
    lifts = np.interp(cycles, phase - duty, path.t)
    touches = np.interp(cycles + 1, phase, path.t)
    leaves = np.append(lifts[1:], np.inf)  # what ends the stance after each touch-down
    swings, foothold = [], spot
    for lift, touch, leave in zip(lifts, touches, leaves, strict=True):
        target = path.under(spot, min((touch + leave) / 2, path.t[-1]))
        length = float(np.hypot(*(target - foothold)))
        if length > SHORTEST_STEP:
            rise = float(np.interp(lift, path.t, height)) * (0.3 + 0.7 * min(length / FULL_STEP, 1.0))
            swings.append(Swing(lift, touch, foothold, target, rise))
            foothold = target
    return swings


def foot_motion(t: Floats, swings: list[Swing], spot: Floats, radius: float) -> Floats:
    """Return (N, 3) the foot's centre: it rests on the ground, but for its swings."""
    feet = np.tile([*spot, radius], (len(t), 1))
    for swing in swings:
        u = (t - swing.lift) / (swing.touch - swing.lift)
        feet[t >= swing.lift, :2] = swing.end
        going = (u > 0) & (u < 1)
        feet[going, :2] = swing.start + np.multiply.outer(smoothstep(u[going]), swing.end - swing.start)
        feet[going, 2] += swing.height * bump(u[going])
    return feet


def foot_load(t: Floats, swings: list[Swing], fade: float = 0.12) -> Floats:
    """Return (N,) what the foot carries, in quarters of the robot's weight: 1 when standing, and on average over strides."""
    if not swings:
        return np.ones_like(t)
    load = 1.0 - minimum_jerk((t - swings[0].lift + fade) / fade)
    load += minimum_jerk((t - swings[-1].touch) / fade)
    for before, after in pairwise(swings):
        stance = after.lift - before.touch
        stride = (after.lift + after.touch - before.lift - before.touch) / 2
        load += stride / stance * stance_load((t - before.touch) / stance)
    return load


def _integral(t: Floats, values: Floats) -> Floats:
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(t)
    return np.concatenate([[0.0], np.cumsum(steps)])


@dataclass(frozen=True)
class Gait:
    """Pairs are (at the slowest, at the fastest) speed of the gait; in between, linear."""

    name: str
    touchdown: tuple[float, float, float, float]  # of each leg, as a share of the stride
    speed: tuple[float, float]  # m/s
    frequency: tuple[float, float]  # strides/s
    duty: tuple[float, float]  # share of the stride on the ground
    lift: tuple[float, float]  # m, height of the swinging foot
    height: tuple[float, float]  # m, of the base


WALK_GAIT = Gait("walk", (0.25, 0.75, 0.0, 0.5), (0.2, 0.8), (1.1, 1.7), (0.72, 0.62), (0.045, 0.06), (0.315, 0.31))
TROT_GAIT = Gait("trot", (0.0, 0.5, 0.5, 0.0), (0.4, 1.6), (1.8, 2.7), (0.6, 0.48), (0.05, 0.07), (0.31, 0.305))
PACE_GAIT = Gait("pace", (0.0, 0.5, 0.0, 0.5), (0.4, 1.2), (1.9, 2.5), (0.6, 0.52), (0.045, 0.06), (0.31, 0.305))
# Right hind, the diagonal pair, left front, then the flight: a canter on the left lead.
CANTER_GAIT = Gait("canter", (0.54, 0.27, 0.27, 0.0), (1.0, 2.0), (2.0, 2.4), (0.44, 0.36), (0.06, 0.08), (0.305, 0.3))


def stepping_speed(velocity: Floats) -> Floats:
    """Of velocities (..., 3) forward, sideways, turn: how fast the feet have to move; m/s."""
    return np.hypot(velocity[..., 0], velocity[..., 1]) + TURN_RADIUS * np.abs(velocity[..., 2])


def between(pair: tuple[float, float], gait: Gait, speed: Floats) -> Floats:
    """Return a gait's figure at a speed; beyond its range, the nearest."""
    return np.interp(speed, gait.speed, pair)
