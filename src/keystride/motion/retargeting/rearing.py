"""A dog that rears sits on its haunches; the robot has to balance on its hind feet and knees."""

from dataclasses import replace

import numpy as np

from keystride import geometry
from keystride.motion.contacts import Flags
from keystride.motion.retargeting.trunk import Trunk, base_pose
from keystride.motion.signals import smooth, without_short
from keystride.robot.description import Floats, Robot

RAISED = 0.05  # m under both front feet
LEAST_FRAMES = 30  # shorter ones are the start of a jump, and balance by moving
BEHIND_FEET = 0.07  # m: where the centre of mass is held, between the feet and the knees behind them
CENTRE_OF_MASS = (0.01, 0.0, -0.02)  # m in the base frame, legs included
EASE = 8.0  # frames


def rearing(feet: Floats, robot: Robot) -> Flags:
    """(T,) both front feet in the air for a while and a rear foot on the ground; feet (T, 4, 3) world."""
    height = feet[..., 2] - robot.foot_radius
    up = (height[:, :2].min(axis=1) > RAISED) & (height[:, 2:].min(axis=1) < RAISED)
    return without_short(up, LEAST_FRAMES, gap=3)


def over_rear_feet(trunk: Trunk, feet: Floats, robot: Robot) -> Trunk:
    """The trunk drawn back while rearing until its centre of mass is over the hind feet."""
    position, orientation = base_pose(trunk, robot)
    mass = position + geometry.rotate(orientation, np.tile(CENTRE_OF_MASS, (len(position), 1)))
    ahead = np.stack([np.cos(trunk.yaw), np.sin(trunk.yaw)], axis=-1)  # (T, 2)
    lead = np.sum((mass[:, :2] - feet[:, 2:, :2].mean(axis=1)) * ahead, axis=-1) + BEHIND_FEET
    back = smooth(np.where(rearing(feet, robot), np.maximum(lead, 0.0), 0.0), EASE)
    return replace(trunk, middle=trunk.middle - back[:, None] * ahead)
