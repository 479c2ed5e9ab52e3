"""Flights that fall as fast as everything does.

A dog bends its back in a jump, so the middle of its trunk does not fall as its centre of mass does. A rigid trunk must.
"""

import numpy as np

from keystride.motion.clip import FPS
from keystride.motion.contacts import Flags
from keystride.motion.signals import runs, without_short
from keystride.robot.description import Floats

GRAVITY = 9.81  # m/s^2
CLEAR = 0.02  # m under every foot
LIKELY = (0.5, 1.6)  # of gravity, how the middle of an animal's trunk falls
LEAST_FRAMES = 8  # shorter flights are part of a gallop, and too short to tell


def flights(soles: Floats) -> list[tuple[int, int]]:
    """Stretches in which no foot (T, 4, 3), height from the ground, can carry the robot."""
    free: Flags = np.all(soles[..., 2] > CLEAR, axis=-1)
    return [(first, last) for first, last in runs(without_short(free, 1, gap=2)) if last - first >= LEAST_FRAMES]


def free_fall(height: Floats, soles: Floats) -> Floats:
    """(T,) m to add to the trunk's height (T,) and to its feet's, so that it falls freely in every flight."""
    extra = np.zeros_like(height)
    for first, last in flights(soles):
        time = np.arange(last - first) / FPS
        falling = -2 * np.polyfit(time, height[first:last], 2)[0]
        if not LIKELY[0] < falling / GRAVITY < LIKELY[1]:
            continue  # it stands on something that we do not know of
        extra[first:last] = 0.5 * (GRAVITY - falling) * time * (time[-1] - time)
    return extra
