"""Curves over time: easing from one key to the next, and how the trunk answers to the loads on the feet.

The trunk's motion is not drawn but solved for. Each standing foot carries a load that rises and falls over its stance.
The sum of the loads drives the height, and where they act drives the sway: x'' = (g / h)(x - p), with p the centre of
pressure, has exactly one solution that stays bounded, the convolution of p with a two-sided exponential.
"""

import numpy as np

from keystride.geometry import GRAVITY
from keystride.keyframes.inbetween.legs import minimum_jerk
from keystride.motion.signals import smoothstep
from keystride.robot.description import Floats

MASS_HEIGHT = 0.3  # m, of the centre of mass
RETURN_RATE = 5.0  # 1/s: how firmly height, roll and pitch return to rest; well below every stride's frequency


def soft_limit(values: Floats, limit: Floats | float) -> Floats:
    """Small values as they are, large ones bent to stay within the limit."""
    return limit * np.tanh(values / limit)


def bump(u: Floats) -> Floats:
    """From 0 over 1 (half way) back to 0, with velocity zero at all three."""
    u = np.clip(u, 0.0, 1.0)
    return 16.0 * (u * (1.0 - u)) ** 2


def ramps(times: Floats, values: Floats, seconds: Floats, t: Floats) -> Floats:
    """Values (K, ...), each eased into from its time (K,) on, over its seconds (K,); the first holds from the start."""
    result = np.broadcast_to(values[0], (len(t), *values.shape[1:])).copy()
    for i in range(1, len(times)):
        result += np.multiply.outer(minimum_jerk((t - times[i]) / seconds[i]), values[i] - values[i - 1])
    return result


def cubic(start: tuple[Floats, Floats], end: tuple[Floats, Floats], seconds: float, t: Floats) -> Floats:
    """Return the cubic between two (value, velocity) states of any one shape, at t (T,) in [0, seconds]; (T, ...)."""
    u = t / seconds
    rise = np.multiply.outer(smoothstep(u), end[0] - start[0])
    swing = np.multiply.outer(u * (1 - u) ** 2, start[1]) - np.multiply.outer(u * u * (1 - u), end[1])
    return start[0] + rise + seconds * swing


def quintic(start: tuple[float, float, float], end: tuple[float, float, float], seconds: float, t: Floats) -> Floats:
    """Return the quintic between two (value, velocity, acceleration) states, at t (T,) in [0, seconds]."""
    powers = np.arange(6)
    coefficients = np.linalg.solve(_boundary(0.0, seconds), np.array([*start, *end]))
    return np.asarray(np.power.outer(t, powers) @ coefficients, dtype=np.float64)


def _boundary(first: float, last: float) -> Floats:
    """Return (6, 6) value, first and second derivative of the monomials at both ends."""
    rows = []
    for t in (first, last):
        rows.append([t**n for n in range(6)])
        rows.append([n * t ** (n - 1) if n >= 1 else 0.0 for n in range(6)])
        rows.append([n * (n - 1) * t ** (n - 2) if n >= 2 else 0.0 for n in range(6)])
    return np.array(rows)


def stance_load(u: Floats) -> Floats:
    """Load over a stance, u in [0, 1], with mean 1: zero at both ends."""
    return np.where((u > 0) & (u < 1), 0.5 * np.pi * np.sin(np.pi * u), 0.0)


def sway(pressure: Floats, dt: float) -> Floats:
    """Return where a pendulum of the trunk's height stays balanced over a moving centre of pressure; (T, D) m."""
    rate = np.sqrt(GRAVITY / MASS_HEIGHT)
    return rate * rate * _exponential(pressure, rate, dt)


def rebound(acceleration: Floats, dt: float) -> Floats:
    """Return the motion with this second derivative, less its slow drift; (T, D)."""
    return -_exponential(acceleration, RETURN_RATE, dt)


def _exponential(signal: Floats, rate: float, dt: float) -> Floats:
    """Return the bounded solution y of rate^2 y - y'' = signal: convolution with exp(-rate |t|) / (2 rate)."""
    half = int(np.ceil(8.0 / (rate * dt)))
    kernel = np.exp(-rate * dt * np.abs(np.arange(-half, half + 1)))
    kernel /= kernel.sum() * rate**2
    padded = np.concatenate([np.repeat(signal[:1], half, axis=0), signal, np.repeat(signal[-1:], half, axis=0)])
    return np.stack([np.convolve(column, kernel, mode="valid") for column in padded.T], axis=-1)


def local_mean(signal: Floats, dt: float, seconds: float = 0.5) -> Floats:
    """Return (T,) mean over the half second around each moment."""
    half = round(seconds / dt / 2)
    padded = np.pad(signal, half, mode="edge")
    return np.convolve(padded, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")
