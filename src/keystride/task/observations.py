"""What the policy sees of itself, and what the discriminator sees of a motion."""

import numpy as np
from array_api_compat import array_namespace

from keystride import geometry
from keystride.geometry import Array
from keystride.motion.library import Library
from keystride.physics.simulator import State
from keystride.robot.description import Floats

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
    """(E, 46): velocity 3, turning 3, joints 12, joint velocities 12, gravity 3, height 1, previous action 12.

    NumPy or torch: the environment and the exported graph share it. Velocities in the base frame, height (E,).
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
    """(n, 46): height 1, gravity 3, velocity 3, turning 3, joints 12, joint velocities 12, feet in the base frame 12.

    No place in the world and no yaw: style is the same wherever it happens.
    """
    gravity = geometry.projected_gravity(orientation)
    parts = [height[:, None], gravity, base_velocity, angular_velocity, joint_angles, joint_velocities]
    return np.concatenate([*parts, feet.reshape(len(feet), -1)], axis=-1)


def features_of_state(state: State) -> Floats:
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
    """(N, 46), one row a frame."""
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
