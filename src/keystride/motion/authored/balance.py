"""How the trunk moves over stepping feet: solutions of the equations of motion that stay bounded, not drawn curves.

Each standing foot carries a load that rises and falls over its stance. The sum of loads drives the height, and where
they act drives the sway: x'' = (g / h)(x - p), with p the centre of pressure, has exactly one solution that runs away
neither before nor after, the convolution of p with a two-sided exponential.
"""

import numpy as np

from keystride.robot.description import Floats

GRAVITY = 9.81  # m/s^2
HEIGHT = 0.3  # m, of the centre of mass
RETURN_RATE = 5.0  # 1/s: how firmly height, roll and pitch return to rest; well below every stride's frequency


def stance_load(u: Floats) -> Floats:
    """Load over a stance, u in [0, 1], with mean 1: zero at both ends."""
    return np.where((u > 0) & (u < 1), 0.5 * np.pi * np.sin(np.pi * u), 0.0)


def sway(pressure: Floats, dt: float) -> Floats:
    """Where a pendulum of the trunk's height stays balanced over a moving centre of pressure; (T, D) m."""
    rate = np.sqrt(GRAVITY / HEIGHT)
    return rate * rate * _exponential(pressure, rate, dt)


def rebound(acceleration: Floats, dt: float) -> Floats:
    """The motion with this second derivative, less its slow drift; (T, D)."""
    return -_exponential(acceleration, RETURN_RATE, dt)


def _exponential(signal: Floats, rate: float, dt: float) -> Floats:
    """The bounded solution y of rate^2 y - y'' = signal: convolution with exp(-rate |t|) / (2 rate)."""
    half = int(np.ceil(8.0 / (rate * dt)))
    kernel = np.exp(-rate * dt * np.abs(np.arange(-half, half + 1)))
    kernel /= kernel.sum() * rate**2
    padded = np.concatenate([np.repeat(signal[:1], half, axis=0), signal, np.repeat(signal[-1:], half, axis=0)])
    return np.stack([np.convolve(column, kernel, mode="valid") for column in padded.T], axis=-1)


def local_mean(signal: Floats, dt: float, seconds: float = 0.5) -> Floats:
    """(T,) mean over the half second around each moment."""
    half = round(seconds / dt / 2)
    padded = np.pad(signal, half, mode="edge")
    return np.convolve(padded, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")
