"""Gaits: who steps when, how fast and how high. The legs are front left, front right, rear left, rear right."""

from dataclasses import dataclass

import numpy as np

from keystride.robot.description import Floats

TURN_RADIUS = 0.4  # m: what turning on the spot adds to the speed of stepping; beyond the feet, for quick short steps


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


WALK = Gait("walk", (0.25, 0.75, 0.0, 0.5), (0.2, 0.8), (1.1, 1.7), (0.72, 0.62), (0.045, 0.06), (0.315, 0.31))
TROT = Gait("trot", (0.0, 0.5, 0.5, 0.0), (0.4, 1.6), (1.8, 2.7), (0.6, 0.48), (0.05, 0.07), (0.31, 0.305))
PACE = Gait("pace", (0.0, 0.5, 0.0, 0.5), (0.4, 1.2), (1.9, 2.5), (0.6, 0.52), (0.045, 0.06), (0.31, 0.305))
# Right hind, the diagonal pair, left front, then the flight: a canter on the left lead.
CANTER = Gait("canter", (0.54, 0.27, 0.27, 0.0), (1.0, 2.0), (2.0, 2.4), (0.44, 0.36), (0.06, 0.08), (0.305, 0.3))


def stepping_speed(velocity: Floats) -> Floats:
    """Of velocities (..., 3) forward, sideways, turn: how fast the feet have to move; m/s."""
    return np.hypot(velocity[..., 0], velocity[..., 1]) + TURN_RADIUS * np.abs(velocity[..., 2])


def between(pair: tuple[float, float], gait: Gait, speed: Floats) -> Floats:
    """A gait's figure at a speed; beyond its range, the nearest."""
    return np.interp(speed, gait.speed, pair)
