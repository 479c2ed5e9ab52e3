"""Where the feet of a clip are, and when they are planted."""

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


def feet_in_world(clip: Clip, robot: Robot) -> Floats:
    """Centres of the foot spheres, (T, 4, 3) m."""
    feet = feet_from_joints(robot, clip.joint_angles)  # (T, 4, 3) base
    return clip.base_position[:, None] + geometry.rotate(clip.base_orientation[:, None], feet)


def foot_clearance(feet: Floats, robot: Robot) -> Floats:
    """Height of the lowest point of each foot over flat ground, (T, 4) m; negative inside the ground."""
    return feet[..., 2] - robot.foot_radius


def planted(feet: Floats, robot: Robot, fps: float) -> Flags:
    """(T, 4) whether a foot is low and slow."""
    speed = np.linalg.norm(difference(feet, fps), axis=-1)
    return (foot_clearance(feet, robot) < PLANTED_HEIGHT) & (speed < PLANTED_SPEED)


def airborne(feet: Floats, robot: Robot) -> Flags:
    """(T,) whether every foot is off the ground."""
    return np.all(foot_clearance(feet, robot) > AIRBORNE_HEIGHT, axis=-1)
