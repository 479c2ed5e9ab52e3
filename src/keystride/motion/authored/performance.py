"""A performance: where base and feet are in the world, frame by frame, and the curves it is made of.

The legs follow by inverse kinematics. The trunk's motion is not drawn but solved for: each standing foot carries a load that
rises and falls over its stance. The sum of the loads drives the height, and where they act drives the sway:
x'' = (g / h)(x - p), with p the centre of pressure, has exactly one bounded solution, the convolution of p with a two-sided
exponential."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from keystride import geometry
from keystride.geometry import GRAVITY
from keystride.keyframes.inbetween.segments import minimum_jerk
from keystride.motion.clip import CLIP_FPS, Clip, make_clip
from keystride.motion.signals import smoothstep
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet, standing_height

MASS_HEIGHT = 0.3  # m, of the centre of mass
RETURN_RATE = 5.0  # 1/s: how firmly height, roll and pitch return to rest; well below every stride's frequency


def soft_limit(values: Floats, limit: Floats | float) -> Floats:
    """Return values that saturate smoothly at the limit; small values hardly change."""
    return limit * np.tanh(values / limit)


def bump(u: Floats) -> Floats:
    """Return a curve from 0 to 1 at its middle and back to 0, with zero velocity at all three points."""
    u = np.clip(u, 0.0, 1.0)
    return 16.0 * (u * (1.0 - u)) ** 2


def ramps(times: Floats, values: Floats, seconds: Floats, t: Floats) -> Floats:
    """Return a curve through values (K, ...), each approached from its time (K,) on, over its seconds (K,); it starts at the first."""
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
    """Return the load over a stance, u in [0, 1], with mean 1: zero at both ends."""
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


REACH_TOLERANCE = 1e-6  # m
HORIZONTAL = np.array([1.0, 1.0, 0.0])


@dataclass(frozen=True)
class Performance:
    """World frame; feet are the centres of the foot spheres, so that a foot on the ground is one radius high."""

    position: Floats  # (T, 3) base, m
    angles: Floats  # (T, 3) roll, pitch, yaw (unwrapped), rad
    feet: Floats  # (T, 4, 3) m
    segments: tuple[Segment, ...]

    def __len__(self) -> int:
        return len(self.position)


def standing_feet(robot: Robot) -> Floats:
    """Return (4, 3) the feet of the standing robot, on the ground, with the base above the origin."""
    feet = feet_from_joints(robot, robot.stance)
    return np.concatenate([feet[:, :2], np.full((4, 1), robot.foot_radius)], axis=1)


def stand_still(robot: Robot, seconds: float) -> Performance:
    frames = round(seconds * CLIP_FPS)
    position = np.tile([0.0, 0.0, float(standing_height(robot, robot.stance))], (frames, 1))
    feet = np.tile(standing_feet(robot), (frames, 1, 1))
    return Performance(position, np.zeros((frames, 3)), feet, ((0, frames, "stand"),))


def join_performances(*parts: Performance) -> Performance:
    """Join performances; each begins at the position and heading at which the previous one ended."""
    return reduce(_append, parts)


def _append(first: Performance, second: Performance) -> Performance:
    heading = first.angles[-1, 2] - second.angles[0, 2]
    origin = second.position[0] * HORIZONTAL
    target = first.position[-1] * HORIZONTAL
    position = _moved(second.position, heading, origin, target)[1:]  # the frame in which they meet is shared
    feet = _moved(second.feet, heading, origin, target)[1:]
    angles = second.angles[1:] + np.array([0.0, 0.0, heading])
    shift = len(first) - 1
    later = tuple((start + shift, end + shift, tag) for start, end, tag in second.segments)
    return Performance(
        np.concatenate([first.position, position]),
        np.concatenate([first.angles, angles]),
        np.concatenate([first.feet, feet]),
        first.segments + later,
    )


def _moved(points: Floats, heading: float, origin: Floats, target: Floats) -> Floats:
    turn = np.full(points.shape[:-1], heading)
    return geometry.rotate_yaw(turn, points - origin) + target


def as_clip(robot: Robot, name: str, performance: Performance) -> Clip:
    """Return the clip, if the robot's legs reach every foot within their limits."""
    orientation = geometry.from_roll_pitch_yaw(performance.angles)
    arms = performance.feet - performance.position[:, None, :]
    joints, miss = joints_from_feet(robot, geometry.rotate_inverse(orientation[:, None, :], arms))
    _require_reach(robot, name, miss)
    metadata = {
        "source": "authored",
        "licence": "Apache-2.0",
        "tags": sorted({tag for _, _, tag in performance.segments}),
        "segments": [list(segment) for segment in performance.segments],
        "edits": {},
    }
    return make_clip(name, robot, performance.position, orientation, joints, metadata)


def _require_reach(robot: Robot, name: str, miss: Floats) -> None:
    if miss.max() <= REACH_TOLERANCE:
        return
    frame, leg = np.unravel_index(np.argmax(miss), miss.shape)
    what = f"the {robot.leg_names[leg]} foot is {1000 * miss[frame, leg]:.1f} mm out of reach"
    raise ValueError(f"{name}: at {frame / CLIP_FPS:.2f} s {what}")
