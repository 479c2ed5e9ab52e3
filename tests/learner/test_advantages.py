"""Advantages by hand arithmetic."""

import pytest
import torch

from keystride.learner.advantages import gae, mixed


def column(*values: float) -> torch.Tensor:
    """(T, 1, 1)"""
    return torch.tensor(values)[:, None, None]


def flags(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)[:, None]


def test_gae_by_hand():
    """gamma 0.5, lambda 0.5: delta = r + 0.5 v' - v; A_t = delta_t + 0.25 A_t+1."""
    advantages = gae(column(1, 0, 2), column(1, 2, 3), column(2, 3, 4), flags(0, 0, 0), flags(0, 0, 0), 0.5, 0.5)
    last = 2 + 0.5 * 4 - 3
    middle = 0 + 0.5 * 3 - 2 + 0.25 * last
    first = 1 + 0.5 * 2 - 1 + 0.25 * middle
    assert advantages.flatten().tolist() == pytest.approx([first, middle, last])


def test_a_termination_has_no_future():
    advantages = gae(column(1, 5), column(0, 0), column(100, 0), flags(1, 0), flags(1, 0), 0.9, 0.9)
    assert advantages[0].item() == pytest.approx(1.0)  # neither the value behind it nor the next episode's reward


def test_a_truncation_has_the_future_that_the_critic_expects():
    advantages = gae(column(1, 5), column(0, 0), column(100, 0), flags(0, 0), flags(1, 0), 0.9, 0.9)
    assert advantages[0].item() == pytest.approx(1.0 + 0.9 * 100)


def test_groups_do_not_mix():
    torch.manual_seed(0)
    rewards, values, behind = (torch.rand(4, 2, 2) for _ in range(3))
    none = torch.zeros(4, 2).bool()
    both = gae(rewards, values, behind, none, none, 0.9, 0.9)
    alone = gae(rewards[..., 1:], values[..., 1:], behind[..., 1:], none, none, 0.9, 0.9)
    assert torch.equal(both[..., 1:], alone)


def test_scaling_a_group_changes_nothing_when_standardised_on_its_own():
    torch.manual_seed(0)
    advantages, weights = torch.randn(500, 2), torch.tensor([0.5, 0.5])
    scaled = advantages * torch.tensor([1.0, 1000.0])
    one = mixed(advantages, advantages.mean(0), advantages.std(0), weights)
    two = mixed(scaled, scaled.mean(0), scaled.std(0), weights)
    assert torch.allclose(one, two, atol=1e-5)


def test_scaling_a_reward_does_change_the_single_critics_sum():
    torch.manual_seed(0)
    goal, style = torch.randn(500), torch.randn(500)
    weights = torch.ones(1)
    sums = [(goal + scale * style)[:, None] for scale in (1.0, 1000.0)]
    one, two = (mixed(s, s.mean(0), s.std(0), weights) for s in sums)
    assert torch.corrcoef(torch.stack([one, two]))[0, 1] < 0.8
