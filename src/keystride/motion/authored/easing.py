"""Timing curves: how a value goes from one key to the next."""

import numpy as np

from keystride.robot.description import Floats


def minimum_jerk(u: Floats) -> Floats:
    """From 0 to 1 with velocity and acceleration zero at both ends; clamped outside [0, 1]."""
    u = np.clip(u, 0.0, 1.0)
    return u * u * u * (10.0 + u * (6.0 * u - 15.0))


def smooth(u: Floats) -> Floats:
    """From 0 to 1 with velocity zero at both ends; its top speed is 1.5, that of minimum jerk 1.875."""
    u = np.clip(u, 0.0, 1.0)
    return u * u * (3.0 - 2.0 * u)


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
    """The cubic between two (value, velocity) states of any one shape, at t (T,) in [0, seconds]; (T, ...)."""
    u = t / seconds
    rise = np.multiply.outer(smooth(u), end[0] - start[0])
    swing = np.multiply.outer(u * (1 - u) ** 2, start[1]) - np.multiply.outer(u * u * (1 - u), end[1])
    return start[0] + rise + seconds * swing


def quintic(start: tuple[float, float, float], end: tuple[float, float, float], seconds: float, t: Floats) -> Floats:
    """The quintic between two (value, velocity, acceleration) states, at t (T,) in [0, seconds]."""
    powers = np.arange(6)
    coefficients = np.linalg.solve(_boundary(0.0, seconds), np.array([*start, *end]))
    return np.asarray(np.power.outer(t, powers) @ coefficients, dtype=np.float64)


def _boundary(first: float, last: float) -> Floats:
    """(6, 6) value, first and second derivative of the monomials at both ends."""
    rows = []
    for t in (first, last):
        rows.append([t**n for n in range(6)])
        rows.append([n * t ** (n - 1) if n >= 1 else 0.0 for n in range(6)])
        rows.append([n * (n - 1) * t ** (n - 2) if n >= 2 else 0.0 for n in range(6)])
    return np.array(rows)
