"""Columns of what the policy and the discriminator see."""

import numpy as np
import torch

from keystride.motion.library import Library
from keystride.physics.simulator import CpuSimulator, StartState
from keystride.robot.go2 import GO2
from keystride.task.observations import (
    FEATURE_SIZE,
    STATE_SIZE,
    features_of_library,
    features_of_state,
    state_observation,
)

LEVEL = np.array([[1.0, 0.0, 0.0, 0.0]])


def test_the_state_has_its_columns_in_order() -> None:
    """Velocity, angular velocity, joints, joint velocities, gravity, height, previous action."""
    parts = [np.full((1, size), float(i)) for i, size in enumerate((3, 3, 12, 12), start=1)]
    velocity, turning, joints, rates = parts
    seen = state_observation(LEVEL, np.array([0.3]), velocity, turning, joints, rates, np.full((1, 12), 7.0))
    expected = [*[1.0] * 3, *[2.0] * 3, *[3.0] * 12, *[4.0] * 12, 0.0, 0.0, -1.0, 0.3, *[7.0] * 12]
    assert seen.shape == (1, STATE_SIZE)
    assert seen[0].tolist() == expected


def test_numpy_and_torch_agree() -> None:
    random = np.random.default_rng(0)
    orientation = random.normal(size=(5, 4))
    values = [
        orientation / np.linalg.norm(orientation, axis=1, keepdims=True),
        random.normal(size=5),
        *(random.normal(size=(5, size)) for size in (3, 3, 12, 12, 12)),
    ]
    ours, theirs = state_observation(*values), state_observation(*map(torch.as_tensor, values))
    assert np.allclose(ours, theirs.numpy(), atol=1e-12)


def test_a_robot_put_into_a_frame_has_the_features_of_the_frame(library: Library) -> None:
    """Wherever it stands and faces: the discriminator cannot tell clips from simulation by their columns."""
    rows = np.array([10, 200, 400])
    frames = library.frames[rows]
    start = StartState(
        position=frames.position + np.array([3.0, -2.0, 0.0]),
        orientation=frames.orientation,
        linear_velocity=frames.linear_velocity,
        angular_velocity=frames.angular_velocity,
        joint_angles=frames.joint_angles,
        joint_velocities=frames.joint_velocities,
    )
    robots = CpuSimulator(GO2, 3, threads=1)
    robots.reset(np.arange(3), start)
    features = features_of_state(robots.state())
    assert features.shape == (3, FEATURE_SIZE)
    assert np.allclose(features, features_of_library(library)[rows], atol=1e-5)
