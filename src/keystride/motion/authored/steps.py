"""When each foot swings, where it lands and how it gets there."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from keystride import geometry
from keystride.motion.authored.balance import stance_load
from keystride.motion.authored.easing import bump, minimum_jerk, smooth
from keystride.robot.description import Floats

WORTH_A_STEP = 0.0005  # m: a foot that would land nearer than this to where it stands stays there
FULL_STEP = 0.04  # m: shorter steps are lower, too


@dataclass(frozen=True)
class Path:
    """The commanded way of the base over the ground, on a fine clock."""

    t: Floats  # (N,) s
    place: Floats  # (N, 2) m
    heading: Floats  # (N,) rad

    def under(self, spot: Floats, time: float) -> Floats:
        """(2,) where a spot (2,) of the moving frame is in the world at a time."""
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
    """The swings of one foot, whose phase (N,) starts a stance at each whole number, over the whole path.

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
        if length > WORTH_A_STEP:
            rise = float(np.interp(lift, path.t, height)) * (0.3 + 0.7 * min(length / FULL_STEP, 1.0))
            swings.append(Swing(lift, touch, foothold, target, rise))
            foothold = target
    return swings


def foot_motion(t: Floats, swings: list[Swing], spot: Floats, radius: float) -> Floats:
    """(N, 3) the foot's centre: it rests on the ground, but for its swings."""
    feet = np.tile([*spot, radius], (len(t), 1))
    for swing in swings:
        u = (t - swing.lift) / (swing.touch - swing.lift)
        feet[t >= swing.lift, :2] = swing.end
        going = (u > 0) & (u < 1)
        feet[going, :2] = swing.start + np.multiply.outer(smooth(u[going]), swing.end - swing.start)
        feet[going, 2] += swing.height * bump(u[going])
    return feet


def foot_load(t: Floats, swings: list[Swing], fade: float = 0.12) -> Floats:
    """(N,) what the foot carries, in quarters of the robot's weight: 1 when standing, and on average over strides."""
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
