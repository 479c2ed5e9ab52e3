"""Mirror images (left and right swapped) as a signed reordering of the columns of observations and actions."""

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.robot.description import Floats, Robot

SignedOrder = tuple[NDArray[np.intp], Floats]


def state_mirror(robot: Robot) -> SignedOrder:
    """Return the mirror image of `state_observation`."""
    joints = robot.mirror_order, robot.mirror_sign
    vector, rotation = _in_place(geometry.MIRROR_VECTOR), _in_place(geometry.MIRROR_ROTATION)
    return _chain(vector, rotation, joints, joints, vector, _in_place(np.ones(1)), joints)


def goal_mirror(robot: Robot) -> SignedOrder:
    """Return the mirror image of a keyframe's token."""
    joints = robot.mirror_order, robot.mirror_sign
    vector, rotation = _in_place(geometry.MIRROR_VECTOR), _in_place(geometry.MIRROR_ROTATION)
    return _chain(vector, rotation, joints, _in_place(np.ones(6)))  # time and presence bits stay


def action_mirror(robot: Robot) -> SignedOrder:
    """Return the mirror image of an action."""
    return robot.mirror_order, robot.mirror_sign


def _in_place(sign: Floats) -> SignedOrder:
    return np.arange(len(sign)), sign


def _chain(*parts: SignedOrder) -> SignedOrder:
    sizes = np.cumsum([0, *(len(order) for order, _ in parts)])
    orders = [order + start for (order, _), start in zip(parts, sizes, strict=False)]
    return np.concatenate(orders), np.concatenate([sign for _, sign in parts])
