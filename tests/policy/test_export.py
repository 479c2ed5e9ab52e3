import copy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from keystride.keyframes.goals import COMPONENTS, Goals
from keystride.learner.config import NetworkConfig
from keystride.learner.networks import Actor, Critics, Observations, by_length, packed
from keystride.learner.rollout import tensors
from keystride.motion.library import Library
from keystride.physics.simulator import CpuSimulator
from keystride.policy.export import CriticGraph, GraphInputs, PolicyGraph, Trained, metadata_of, policy_file
from keystride.policy.interface import BITS, INPUTS
from keystride.policy.runtime import ExportedCritics, Policy
from keystride.robot.go2 import GO2
from keystride.task.config import KeyframeRanges, TaskConfig
from keystride.task.environment import KeyframeEnvironment, joint_targets
from keystride.task.observations import STATE_SIZE

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
    critics = ExportedCritics.load(bundle, robot=GO2)
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


SMALL = NetworkConfig(width=8, feedforward=8, mlp=(8,))


def inputs(robots: int = 2, keyframes: int = 3, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {n: (robots, *(keyframes if s == "K" else s for s in shape)) for n, shape in INPUTS.items()}
    return [
        torch.rand(size, generator=generator) > 0.3 if n in BITS else torch.rand(size, generator=generator)
        for n, size in sizes.items()
    ]


def changed(given: list[torch.Tensor], name: str, by: float) -> list[torch.Tensor]:
    return [values + by if key == name else values for key, values in zip(INPUTS, given, strict=True)]


def test_components_that_were_never_learnt_are_ignored() -> None:
    sight = GraphInputs(("position",))
    given = inputs()
    state, goals, visible = sight(*given)
    for name in ("goal_angles", "goal_posture"):
        after = sight(*changed(given, name, 0.5))
        assert all(map(torch.equal, after, (state, goals, visible)))
    assert not torch.equal(sight(*changed(given, "goal_position", 0.5))[1], goals)


def test_a_keyframe_without_any_learnt_component_is_not_seen() -> None:
    given = dict(zip(INPUTS, inputs(), strict=True))
    given["goal_visible"][:] = True
    given["goal_presence"][:] = torch.tensor([False, True, True, True, True])
    assert not GraphInputs(("position",))(*given.values())[2].any()
    assert GraphInputs(("position", "yaw"))(*given.values())[2].all()


def test_actions_are_scaled_about_the_stance_and_clipped_to_the_limits() -> None:
    actor = Actor(SMALL, STATE_SIZE, 24, 12)
    with torch.no_grad():
        actor.network.head.weight.zero_()
        actor.network.head.bias.copy_(
            torch.tensor([0.1, -0.2, 0.3, 99.0, 99.0, 99.0, -99.0, -99.0, -99.0, 0.0, 0.0, 0.0])
        )
        targets, _ = PolicyGraph(actor, GO2, ("position",))(*inputs(robots=1))
    expected = [0.05, 0.7, -1.35, *GO2.upper[3:6], *GO2.lower[6:9], 0.0, 0.8, -1.5]
    np.testing.assert_allclose(targets[0].numpy(), expected, atol=1e-6)


def test_critics_apart_give_the_values_of_training() -> None:
    actor, critics = Actor(SMALL, STATE_SIZE, 24, 12), Critics(SMALL, STATE_SIZE, 24, 3)
    critics.returns.update(torch.tensor(10.0), torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 9.0, 16.0]))
    graph, given = CriticGraph(critics, actor.normalizer, ("position", "yaw")), inputs(robots=5)
    seen = packed(Observations(*graph.sight(*given)))
    expected = by_length(lambda state, goals: critics(actor.normalizer(state), goals), seen)
    torch.testing.assert_close(graph(*given), critics.values(expected))


@torch.no_grad()
def test_files_of_equal_networks_hold_their_own_weights_and_files_of_others_their_own_structure(
    trained: Trained,
) -> None:
    given = dict(zip(INPUTS, (values.numpy() for values in inputs(robots=3)), strict=True))

    def exported(one: Trained) -> np.ndarray:
        session = onnxruntime.InferenceSession(policy_file(one, GO2), providers=["CPUExecutionProvider"])
        return np.asarray(session.run(["action"], given)[0])

    def expected(one: Trained) -> np.ndarray:
        components = metadata_of(one, GO2, values=False).goal_components
        return PolicyGraph(one.actor, GO2, components)(*inputs(robots=3))[1].numpy()

    other = copy.deepcopy(trained)
    for parameter in other.actor.parameters():
        parameter.mul_(0.7)
    other.actor.normalizer.mean.add_(0.3)
    servo = replace(SMALL, next_goal_time_column=18, servo_column=6)
    different = replace(trained, actor=Actor(servo, STATE_SIZE, 24, 12).eval())
    found = [exported(one) for one in (trained, other, different, trained)]
    for action, one in zip(found, (trained, other, different, trained), strict=True):
        np.testing.assert_allclose(action, expected(one), rtol=0, atol=1e-5)
    assert np.abs(found[1] - found[0]).max() > 1e-2
