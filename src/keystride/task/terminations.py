"""When an episode ends early: a fall, or a joint that hits its stop."""

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.physics.simulator import State
from keystride.robot.description import Robot

CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])  # (8, 3) of a cube
LEAST_UPRIGHT = 0.1  # cosine of the tilt; rearing to 70 degrees is allowed
LIMIT_MARGIN = 0.01  # rad
HIT_SPEED = 1.0  # rad/s towards a joint's stop: slower, it rests there, as sitting and lying down ask for


def fallen(robot: Robot, state: State) -> NDArray[np.bool_]:
    """Return whether the trunk touches the ground or has tipped over, (E,)."""
    corners = CORNERS * np.array(robot.trunk_half_size)  # (8, 3) base frame
    heights = geometry.rotate(state.orientation[:, None], corners[None])[..., 2] + state.position[:, 2:]
    tilt = -geometry.projected_gravity(state.orientation)[:, 2]
    return (heights.min(axis=1) < 0.0) | (tilt < LEAST_UPRIGHT)


def at_joint_limit(robot: Robot, state: State) -> NDArray[np.bool_]:
    """Return whether a joint runs into its limit, (E,)."""
    angles, speed = state.joint_angles, state.joint_velocities
    low = (angles < robot.lower + LIMIT_MARGIN) & (speed < -HIT_SPEED)
    high = (angles > robot.upper - LIMIT_MARGIN) & (speed > HIT_SPEED)
    return np.any(low | high, axis=1)
