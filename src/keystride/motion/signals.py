"""Time series: smoothing without delay, resampling, soft bounds, stretches of flags, and contacts of the feet."""

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.motion.clip import Clip, difference
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

Flags = NDArray[np.bool_]
PLANTED_HEIGHT = 0.015  # m between the foot and the ground
PLANTED_SPEED = 0.4  # m/s: far above the sliding we accept, so that a sliding foot still counts as planted
AIRBORNE_HEIGHT = 0.02  # m under every foot


def gaussian_smooth(values: Floats, sigma: float) -> Floats:
    """Smooth along time with a Gaussian, sigma in frames, without delay; the ends are held."""
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
    """Interpolate values (T, ...) linearly at other times."""
    flat = values.reshape(len(values), -1)
    columns = [np.interp(at, times, flat[:, column]) for column in range(flat.shape[1])]
    return np.stack(columns, axis=1).reshape(len(at), *values.shape[1:])


def soft_max(a: Floats, b: Floats | float, width: float) -> Floats:
    """Return a smooth upper bound of a and b, close to their maximum."""
    return 0.5 * (a + b + np.sqrt((a - b) ** 2 + width**2))


def soft_min(a: Floats, b: Floats | float, width: float) -> Floats:
    """Return a smooth lower bound of a and b, close to their minimum."""
    return 0.5 * (a + b - np.sqrt((a - b) ** 2 + width**2))


def smoothstep(t: Floats) -> Floats:
    """Return a curve from 0 to 1 with zero velocity at both ends; its top speed is 1.5, that of a minimum-jerk curve 1.875."""
    t = np.clip(t, 0.0, 1.0)
    return t * t * (3 - 2 * t)


def stretches(flags: Flags) -> list[tuple[int, int]]:
    """Return the intervals in which a flag is true, as (first, one past the last)."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def without_short(flags: Flags, least: int, gap: int | None = None) -> Flags:
    """Close gaps shorter than `gap` frames (or `least`), then drop intervals shorter than `least`."""
    kept = flags.copy()
    for value, frames in ((False, least if gap is None else gap), (True, least)):
        for first, last in stretches(kept == value):
            inside = first > 0 and last < len(kept)
            if last - first < frames and inside:
                kept[first:last] = not value
    return kept


def clip_feet(clip: Clip, robot: Robot) -> Floats:
    """Return the centres of the foot spheres of a clip, (T, 4, 3) m."""
    return feet_in_world(robot, clip.base_position, clip.base_orientation, clip.joint_angles)


def feet_in_world(robot: Robot, position: Floats, orientation: Floats, joints: Floats) -> Floats:
    """Return the centres of the foot spheres for any batch of poses, (..., 4, 3) m."""
    feet = feet_from_joints(robot, joints)  # (..., 4, 3) base
    return position[..., None, :] + geometry.rotate(orientation[..., None, :], feet)


def foot_clearance(feet: Floats, robot: Robot) -> Floats:
    """Return the height of the lowest point of each foot above flat ground, (T, 4) m; negative inside the ground."""
    return feet[..., 2] - robot.foot_radius


def planted_feet(feet: Floats, robot: Robot, fps: float) -> Flags:
    """Return (T, 4) whether a foot is low and slow."""
    speed = np.linalg.norm(difference(feet, fps), axis=-1)
    return (foot_clearance(feet, robot) < PLANTED_HEIGHT) & (speed < PLANTED_SPEED)


def airborne_frames(feet: Floats, robot: Robot) -> Flags:
    """Return (T,) whether every foot is off the ground."""
    return np.all(foot_clearance(feet, robot) > AIRBORNE_HEIGHT, axis=-1)
