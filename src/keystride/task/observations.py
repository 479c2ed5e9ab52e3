"""The robot's state as the policy observes it, its mirror image, and motions as the discriminator sees them."""

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from keystride import geometry
from keystride.geometry import Array
from keystride.motion.library import Library
from keystride.physics.simulator import State
from keystride.robot.description import Floats, Robot

STATE_SIZE = 46
FEATURE_SIZE = 46


def state_observation(
    orientation: Array,
    height: Array,
    base_velocity: Array,
    angular_velocity: Array,
    joint_angles: Array,
    joint_velocities: Array,
    previous_action: Array,
) -> Array:
    """Return (E, 46): velocity 3, angular velocity 3, joints 12, joint velocities 12, gravity 3, height 1, previous action 12.

    Works with NumPy and torch: the environment and the exported graph share it. Velocities in the base frame, height (E,).
    """
    xp = array_namespace(orientation)
    gravity = geometry.projected_gravity(orientation)
    parts = [base_velocity, angular_velocity, joint_angles, joint_velocities, gravity, height[:, None], previous_action]
    return xp.concat(parts, axis=-1)


def style_features(
    height: Floats,
    orientation: Floats,
    base_velocity: Floats,
    angular_velocity: Floats,
    joint_angles: Floats,
    joint_velocities: Floats,
    feet: Floats,
) -> Floats:
    """Return (n, 46): height 1, gravity 3, velocity 3, angular velocity 3, joints 12, joint velocities 12, feet (base frame) 12.

    Neither horizontal position nor yaw: style does not depend on them.
    """
    gravity = geometry.projected_gravity(orientation)
    parts = [height[:, None], gravity, base_velocity, angular_velocity, joint_angles, joint_velocities]
    return np.concatenate([*parts, feet.reshape(len(feet), -1)], axis=-1)


def features_of_state(state: State) -> Floats:
    """Return the style features (E, 46) of simulated robots."""
    return style_features(
        state.position[:, 2],
        state.orientation,
        state.base_velocity,
        state.angular_velocity,
        state.joint_angles,
        state.joint_velocities,
        state.feet,
    )


def features_of_library(library: Library) -> Floats:
    """Return the style features (N, 46) of all frames of a library."""
    frames = library.frames
    return style_features(
        frames.position[:, 2],
        frames.orientation,
        geometry.rotate_inverse(frames.orientation, frames.linear_velocity),
        frames.angular_velocity,
        frames.joint_angles,
        frames.joint_velocities,
        library.feet,
    )


# Mirror images (left and right swapped) as a signed reordering of the columns of observations and actions.

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
