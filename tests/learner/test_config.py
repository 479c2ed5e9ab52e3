"""The presets of the learner: the paper's table, and what the CPU preset keeps of it."""

from dataclasses import fields, replace

import pytest

from keystride.keyframes.goals import COMPONENTS
from keystride.learner.config import CPU, LEARNER_PRESETS, MULTI_CRITIC, PAPER, SINGLE_CRITIC, WITH_DEMONSTRATIONS


def test_the_paper_preset_is_the_papers_table() -> None:
    assert LEARNER_PRESETS["paper"] is PAPER
    assert (PAPER.environments, PAPER.horizon) == (4096, 24)
    ppo = PAPER.ppo
    assert (ppo.epochs, ppo.minibatches, ppo.gamma, ppo.lam, ppo.clip) == (5, 4, 0.99, 0.95, 0.2)
    assert (PAPER.network.layers, PAPER.network.heads, PAPER.network.feedforward) == (2, 1, 512)
    assert PAPER.network.mlp == (512, 256)
    assert {group.name: group.advantage_weight for group in ppo.groups} == {
        "goal": 0.5,
        "style": 0.5,
        "regularization": 0.1,
    }


def test_the_presets_differ_in_sizes_and_additions_but_not_in_the_discount() -> None:
    assert LEARNER_PRESETS["cpu"] is CPU
    assert (CPU.ppo.gamma, CPU.ppo.lam, CPU.ppo.clip) == (PAPER.ppo.gamma, PAPER.ppo.lam, PAPER.ppo.clip)
    names = [group.name for group in WITH_DEMONSTRATIONS]
    assert names[: len(MULTI_CRITIC)] == [group.name for group in MULTI_CRITIC]
    assert CPU.environments * CPU.horizon % CPU.ppo.minibatches == 0


def test_a_single_critic_gets_every_reward_of_the_paper() -> None:
    (group,) = SINGLE_CRITIC
    assert {name for name, _ in group.rewards} == {name for other in MULTI_CRITIC for name, _ in other.rewards}


def test_the_next_goal_is_found_by_the_column_that_follows_the_errors() -> None:
    errors = 3 + 3 + 12  # position, angles, posture
    assert CPU.network.next_goal_time_column == errors
    assert len(COMPONENTS) == 5


def test_configurations_are_values() -> None:
    assert replace(CPU) == CPU
    with pytest.raises(AttributeError):
        CPU.steps = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert {field.name for field in fields(CPU)} >= {"network", "ppo", "discriminator"}
