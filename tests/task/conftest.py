"""A small library and environments on it."""

import numpy as np
import pytest

from keystride.motion.clip import Clip, make_clip
from keystride.motion.library import Library
from keystride.robot.go2 import GO2


def gliding(name: str, seconds: float, speed: float, turn: float) -> Clip:
    """The stance carried along an arc: no motion a robot could do, but one whose every pose is known."""
    t = np.arange(int(50 * seconds)) / 50
    yaw = turn * t
    steps = speed / 50 * np.stack([np.cos(yaw), np.sin(yaw)], axis=1)
    position = np.concatenate([np.cumsum(steps, axis=0), np.full((len(t), 1), 0.33)], axis=1)
    orientation = np.stack([np.cos(yaw / 2), 0 * t, 0 * t, np.sin(yaw / 2)], axis=1)
    joints = GO2.stance + 0.1 * np.sin(3 * t)[:, None]
    return make_clip(name, GO2, position, orientation, joints)


@pytest.fixture(scope="session")
def library() -> Library:
    return Library(
        GO2, [gliding("arc", 9.0, 0.8, 0.6), gliding("straight", 7.0, 1.4, 0.0), gliding("still", 6.0, 0.0, 0.0)]
    )
