"""The trunk over stepping feet: the commanded path, plus the sway, bob and tilt that its weight on them asks for."""

import numpy as np

from keystride import geometry
from keystride.motion.authored.balance import GRAVITY, HEIGHT, local_mean, rebound, sway
from keystride.motion.authored.easing import minimum_jerk, soft_limit
from keystride.motion.authored.steps import Path
from keystride.robot.description import Floats

PITCH_SHARE = 0.3  # of the fore-aft moment of the loads turns the trunk; the rest shifts it
ROLL_SHARE = 0.025  # likewise from side to side
PITCH_RADIUS = 0.16  # m, radius of gyration
ROLL_RADIUS = 0.09  # m
# Changes of gait load the feet unevenly for a stride or two; real muscles would stiffen.
MOST_TILT = np.radians([4.0, 7.0])  # roll, pitch
MOST_BOB = 0.03  # m
FADE = 0.4  # s
BANK = 0.4  # of a cyclist's lean into a turn


def trunk_over(path: Path, feet: Floats, load: Floats, spots: Floats, height: Floats) -> tuple[Floats, Floats]:
    """(N, 3) position and (N, 3) roll, pitch, yaw of the base over feet (N, 4, 3) that carry loads (N, 4)."""
    dt = float(path.t[1] - path.t[0])
    load = load / local_mean(load.mean(axis=-1), dt)[:, None]
    pressure = _pressure(path, feet, load, spots)  # (N, 2) world
    acceleration = np.gradient(np.gradient(path.place, dt, axis=0), dt, axis=0)  # (N, 2) world
    moment = geometry.rotate_yaw(-path.heading, pressure)  # (N, 2) forward, left
    kept = geometry.rotate_yaw(path.heading, moment * (1.0 - np.array([PITCH_SHARE, ROLL_SHARE])))
    lean = sway(kept + HEIGHT / GRAVITY * acceleration, dt)
    bob = soft_limit(rebound(GRAVITY * (load.mean(axis=-1, keepdims=True) - 1.0), dt), MOST_BOB)
    tilt = _tilt(moment, geometry.rotate_yaw(-path.heading, acceleration)[:, 1], dt)
    fade = _fade(path.t)[:, None]
    position = np.concatenate([path.place + fade * lean, height[:, None] + fade * bob], axis=-1)
    return position, np.concatenate([fade * tilt, path.heading[:, None]], axis=-1)


def _fade(t: Floats) -> Floats:
    """(N,) from 0 to 1 and back at the ends, so that a performance starts and ends exactly standing."""
    return minimum_jerk((t - t[0]) / FADE) * minimum_jerk((t[-1] - t) / FADE)


def _pressure(path: Path, feet: Floats, load: Floats, spots: Floats) -> Floats:
    """(N, 2) how far the centre of pressure is from where it is when standing; world, m."""
    heading = np.repeat(path.heading[:, None], 4, axis=1)
    middle = path.place[:, None] + geometry.rotate_yaw(
        heading, np.broadcast_to(spots.mean(axis=0), (*heading.shape, 2))
    )
    return np.mean(load[..., None] * (feet[..., :2] - middle), axis=1)


def _tilt(moment: Floats, inward: Floats, dt: float) -> Floats:
    """(N, 2) roll and pitch from the loads' moment (N, 2) and the acceleration to the left (N,)."""
    roll = ROLL_SHARE * GRAVITY / ROLL_RADIUS**2 * moment[:, 1]
    pitch = -PITCH_SHARE * GRAVITY / PITCH_RADIUS**2 * moment[:, 0]
    tilt = soft_limit(rebound(np.stack([roll, pitch], axis=-1), dt), MOST_TILT)
    tilt[:, 0] -= BANK * inward / GRAVITY
    return tilt
