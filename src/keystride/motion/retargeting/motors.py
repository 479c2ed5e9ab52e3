"""Joint paths that the motors can follow."""

import numpy as np

from keystride.motion.clip import difference
from keystride.motion.contacts import Flags
from keystride.motion.signals import smooth
from keystride.robot.description import Floats, Robot

ROUNDS = 12
MARGIN = 0.97  # of the motor's speed


def within_motor_speed(joints: Floats, robot: Robot) -> Floats:
    """Smooth each leg around the frames where a joint would have to outrun its motor; (T, 12) rad.

    Every round widens the smoothing, so that a lone spike is touched lightly and a long one as much as it needs.
    """
    joints = joints.copy()
    for rounds in range(ROUNDS):
        beyond = np.abs(difference(joints)) > MARGIN * robot.speed_limit  # (T, 12)
        fast: Flags = np.any(beyond.reshape(-1, 4, 3), axis=-1)  # (T, 4) a leg is smoothed as a whole
        if not fast.any():
            break
        sigma = 1.0 + 0.5 * rounds
        share = np.repeat(_around(fast, sigma), 3, axis=1)
        joints = joints * (1 - share) + smooth(joints, sigma) * share
    return joints


def _around(flags: Flags, sigma: float) -> Floats:
    """One at the flags and beside them, falling smoothly to nothing."""
    return np.clip(smooth(flags.astype(np.float64), 1.5 * sigma) * (4 * sigma), 0.0, 1.0)
