from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from keystride.keyframes.goals import COMPONENTS, Goals
from keystride.learner.networks import Observations, by_length, packed
from keystride.learner.rollout import tensors
from keystride.motion.library import Library
from keystride.physics.cpu import CpuSimulator
from keystride.policy.runtime import Critics, Policy
from keystride.policy.trained import Trained
from keystride.robot.go2 import GO2
from keystride.task.config import KeyframeRanges, TaskConfig
from keystride.task.environment import KeyframeEnvironment, joint_targets

SUBSETS = np.array([bits for bits in product([False, True], repeat=len(COMPONENTS)) if any(bits)])  # (31, 5)
SHARE = np.float32(0.2)  # of a random policy's action, with which a robot keeps its feet
STEPS = 110  # five keyframes, and a second after the last


@pytest.fixture(scope="module")
def environment(library: Library) -> KeyframeEnvironment:
    """155 robots: one to five keyframes, with each subset of components."""
    ranges = KeyframeRanges(interval_steps=(10, 12), count=(5, 5))
    task = TaskConfig(goals="pose", reference_start=0.0, ranges=ranges)
    physics = CpuSimulator(GO2, 5 * len(SUBSETS), threads=1)
    environment = KeyframeEnvironment(GO2, physics, library, task, seed=5)
    saved = environment.snapshot()
    count = np.repeat(np.arange(1, 6), len(SUBSETS))  # (E,)
    held = np.arange(5) < count[:, None]  # (E, K)
    saved["goals"]["presence"] = held[..., None] & np.tile(SUBSETS, (5, 1))[:, None]
    saved["goals"]["height"] = np.random.default_rng(0).random(held.shape) < 0.5
    saved["end"][:] = STEPS + 1
    environment.restore(saved)
    return environment


def given(environment: KeyframeEnvironment) -> tuple[Any, Goals, Any, Any]:
    saved = environment.snapshot()
    return environment.physics.state(), Goals(**saved["goals"]), saved["now"], saved["action"]


@torch.no_grad()
def test_file_and_training_agree_over_an_episode_for_all_keyframes_and_components(
    environment: KeyframeEnvironment, trained: Trained, policy: Policy, bundle: Any
) -> None:
    critics = Critics.load(bundle)
    moved = 0.0
    for _ in range(STEPS):
        seen = packed(tensors(environment.observe(), torch.device("cpu")))
        action = trained.actor.act(seen).numpy()
        targets, exported = policy.step(*given(environment))
        np.testing.assert_allclose(exported, action, rtol=0, atol=1e-5)
        np.testing.assert_allclose(targets, joint_targets(GO2, action.astype(np.float64)), rtol=0, atol=1e-5)
        np.testing.assert_allclose(critics.values(*given(environment)), training_values(trained, seen), atol=1e-5)
        step = environment.step(SHARE * action)
        assert not step.terminated.any(), "a robot that falls would go on with other keyframes"
        moved = max(moved, float(np.abs(environment.physics.state().joint_velocities).max()))
    assert moved > 0.1  # rad/s
    assert not policy_sees(environment).any(), "the episode went on until the last keyframe had passed"


def training_values(trained: Trained, seen: Observations) -> np.ndarray:
    normalizer, critics = trained.actor.normalizer, trained.critics
    return critics.values(by_length(lambda state, goals: critics(normalizer(state), goals), seen)).numpy()


def policy_sees(environment: KeyframeEnvironment) -> np.ndarray:
    return environment.observe().visible
