"""Feet that stand still while the animal's do, and flights that fall at the rate of gravity.

A dog bends its back in a jump, so the middle of its trunk does not fall as its centre of mass does. A rigid trunk must.
"""

from dataclasses import dataclass

import numpy as np

from keystride.geometry import GRAVITY
from keystride.motion.clip import CLIP_FPS, difference
from keystride.motion.signals import Flags, gaussian_smooth, smoothstep, stretches, without_short
from keystride.robot.description import Floats

CLEAR = 0.02  # m under every foot
LIKELY = (0.5, 1.6)  # of gravity, how the middle of an animal's trunk falls
LEAST_FLIGHT_FRAMES = 8  # shorter flights are part of a gallop, and too short to tell


@dataclass(frozen=True)
class PlantingSettings:
    height: float = 0.035  # m over the animal's standing toe: below it a toe may be planted (scaled)
    speed: float = 0.35  # m/s: above it a toe is in swing
    speed_share: float = 0.25  # of the trunk's speed, added to it: mocap blurs the short contacts of a gallop
    least_frames: int = 3  # shorter contacts and shorter swings are ignored
    drift: float = 0.03  # m that a planted toe may wander before the robot takes a step after it
    step_frames: int = 12  # duration of such a step
    step_height: float = 0.03  # m


def detect_planted(toes: Floats, trunk: Floats, rest: Floats, settings: PlantingSettings) -> Flags:
    """Return which toes are low and slow, (T, 4); toes (T, 4, 3), middle of the trunk (T, 3), height of a standing toe (4,); m."""
    speed = np.linalg.norm(difference(toes), axis=-1)  # (T, 4)
    pace = np.linalg.norm(gaussian_smooth(difference(trunk), 5.0)[:, :2], axis=-1)
    slow = speed < settings.speed + settings.speed_share * pace[:, None]
    flags = (toes[..., 2] - rest < settings.height) & slow
    return np.stack([without_short(flags[:, leg], settings.least_frames) for leg in range(4)], axis=1)


def plant(target: Floats, planted: Flags, settings: PlantingSettings) -> tuple[Floats, Flags]:
    """Hold feet still while they are planted; target and result are (T, 4, 3), heights from the ground.

    Return the feet, and in which frames each of them actually stands.
    """
    feet = np.empty_like(target)
    stands = np.zeros_like(planted)
    for leg in range(target.shape[1]):
        feet[:, leg], stands[:, leg] = _plant_leg(target[:, leg], planted[:, leg], settings, leg % 2)
    return feet, stands


def _plant_leg(target: Floats, planted: Flags, settings: PlantingSettings, turn: int) -> tuple[Floats, Flags]:
    contacts = [part for run in stretches(planted) for part in _split(target, run, settings, turn)]
    if not contacts:
        return np.column_stack([target[:, :2], np.maximum(target[:, 2], 0.0)]), planted
    locks = np.array([_lock(target[first:last]) for first, last in contacts])  # (S, 3)
    moved = target + _correction(target, contacts, locks)
    stands = np.zeros(len(target), dtype=bool)
    for (first, last), lock in zip(contacts, locks, strict=True):
        moved[first:last] = lock
        stands[first:last] = True
    moved[:, 2] = np.maximum(moved[:, 2], 0.0)
    _lift_extra_steps(moved, planted & ~stands, settings)
    return moved, stands


def _lock(stretch: Floats) -> Floats:
    """Return where the foot stands: the middle of where the toe was, on the ground."""
    place = np.median(stretch, axis=0)
    place[2] = 0.0
    return place


def _split(target: Floats, run: tuple[int, int], settings: PlantingSettings, turn: int) -> list[tuple[int, int]]:
    """Cut a long contact where the target wanders, leaving room for a step between the parts."""
    parts: list[tuple[int, int]] = []
    start, last = run
    while start < last:
        away = np.linalg.norm(target[start:last, :2] - target[start, :2], axis=-1)
        far = np.flatnonzero(away > 2 * settings.drift) if last - start > 3 * settings.step_frames else []
        stop = start + int(far[0]) if len(far) else last
        parts.append((start, stop))
        start = stop
    return _with_gaps(parts, settings.step_frames, turn)


def _with_gaps(parts: list[tuple[int, int]], frames: int, turn: int) -> list[tuple[int, int]]:
    """Make room for a step around every cut: left legs just before it, right legs just after, so that one side always stands."""
    before, after = (0, frames) if turn else (frames, 0)
    shrunk: list[tuple[int, int]] = []
    for index, (first, last) in enumerate(parts):
        start = first + (after if index > 0 else 0)
        stop = last - (before if index < len(parts) - 1 else 0)
        if stop - start > 1:
            shrunk.append((start, stop))
    return shrunk


def _correction(target: Floats, contacts: list[tuple[int, int]], locks: Floats) -> Floats:
    """Return what has to be added to the target; in swing it eases from one footfall's correction to the next one's."""
    times = np.arange(len(target))
    knots = [
        (edge, lock - target[edge])
        for (first, last), lock in zip(contacts, locks, strict=True)
        for edge in (first, last - 1)
    ]
    at = np.array([knot[0] for knot in knots])
    values = np.array([knot[1] for knot in knots])
    right = np.clip(np.searchsorted(at, times, side="right"), 1, len(at) - 1)
    span = np.maximum(at[right] - at[right - 1], 1)
    share = smoothstep((times - at[right - 1]) / span)[:, None]
    return values[right - 1] * (1 - share) + values[right] * share


def _lift_extra_steps(feet: Floats, stepping: Flags, settings: PlantingSettings) -> None:
    """Lift the foot in steps that the animal did not take."""
    for first, last in stretches(stepping):
        phase = (np.arange(first, last) - first + 1) / (last - first + 1)
        feet[first:last, 2] = np.maximum(feet[first:last, 2], settings.step_height * np.sin(np.pi * phase))


def flights(soles: Floats) -> list[tuple[int, int]]:
    """Return intervals in which no foot (T, 4, 3), with heights from the ground, can carry the robot."""
    free: Flags = np.all(soles[..., 2] > CLEAR, axis=-1)
    return [
        (first, last) for first, last in stretches(without_short(free, 1, gap=2)) if last - first >= LEAST_FLIGHT_FRAMES
    ]


def free_fall(height: Floats, soles: Floats) -> Floats:
    """Return (T,) m to add to the trunk's height (T,) and to its feet's, so that it falls freely in every flight."""
    extra = np.zeros_like(height)
    for first, last in flights(soles):
        time = np.arange(last - first) / CLIP_FPS
        falling = -2 * np.polyfit(time, height[first:last], 2)[0]
        if not LIKELY[0] < falling / GRAVITY < LIKELY[1]:
            continue  # it stands on something that the file does not contain
        extra[first:last] = 0.5 * (GRAVITY - falling) * time * (time[-1] - time)
    return extra
