"""Small tools on time series: smoothing without delay, resampling, soft bounds, runs of flags."""

import numpy as np

from keystride.motion.contacts import Flags
from keystride.robot.description import Floats


def smooth(values: Floats, sigma: float) -> Floats:
    """Gaussian smoothing along time, sigma in frames, without delay; the ends are held."""
    if sigma <= 0:
        return values
    half = int(np.ceil(3 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    flat = values.reshape(len(values), -1)
    padded = np.concatenate([np.repeat(flat[:1], half, 0), flat, np.repeat(flat[-1:], half, 0)])
    moved = np.lib.stride_tricks.sliding_window_view(padded, len(kernel), axis=0)  # (T, columns, window)
    return (moved @ kernel).reshape(values.shape)


def resample(values: Floats, times: Floats, at: Floats) -> Floats:
    """Values (T, ...) known at times, read at other times, by straight lines."""
    flat = values.reshape(len(values), -1)
    columns = [np.interp(at, times, flat[:, column]) for column in range(flat.shape[1])]
    return np.stack(columns, axis=1).reshape(len(at), *values.shape[1:])


def soft_max(a: Floats, b: Floats | float, width: float) -> Floats:
    """At least both a and b, and smooth where they cross."""
    return 0.5 * (a + b + np.sqrt((a - b) ** 2 + width**2))


def soft_min(a: Floats, b: Floats | float, width: float) -> Floats:
    """At most both a and b, and smooth where they cross."""
    return 0.5 * (a + b - np.sqrt((a - b) ** 2 + width**2))


def smoothstep(t: Floats) -> Floats:
    t = np.clip(t, 0.0, 1.0)
    return t * t * (3 - 2 * t)


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Stretches of true as (first, one past the last)."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def without_short(flags: Flags, least: int, gap: int | None = None) -> Flags:
    """Gaps shorter than `gap` frames (or `least`) are closed, then stretches of fewer than `least` are dropped."""
    kept = flags.copy()
    for value, frames in ((False, least if gap is None else gap), (True, least)):
        for first, last in runs(kept == value):
            inside = first > 0 and last < len(kept)
            if last - first < frames and inside:
                kept[first:last] = not value
    return kept
