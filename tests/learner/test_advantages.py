"""Advantages by hand arithmetic."""

import pytest
import torch

from keystride.learner.ppo import fill_missing_rewards, gae, mix_advantages


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
    scaled, every = advantages * torch.tensor([1.0, 1000.0]), torch.ones(500, 2).bool()
    one = mix_advantages(advantages, every, advantages.mean(0), advantages.std(0), weights)
    two = mix_advantages(scaled, every, scaled.mean(0), scaled.std(0), weights)
    assert torch.allclose(one, two, atol=1e-5)


def test_scaling_a_reward_does_change_the_single_critics_sum():
    torch.manual_seed(0)
    goal, style = torch.randn(500), torch.randn(500)
    weights = torch.ones(1)
    sums = [(goal + scale * style)[:, None] for scale in (1.0, 1000.0)]
    one, two = (mix_advantages(s, torch.ones_like(s).bool(), s.mean(0), s.std(0), weights) for s in sums)
    assert torch.corrcoef(torch.stack([one, two]))[0, 1] < 0.8


def test_each_group_has_its_own_lambda():
    torch.manual_seed(0)
    rewards, values, behind = torch.randn(3, 4, 2, 2)
    none = torch.zeros(4, 2).bool()
    both = gae(rewards, values, behind, none, none, 0.9, torch.tensor([0.5, 0.99]))
    for group, lam in enumerate((0.5, 0.99)):
        one = slice(group, group + 1)
        alone = gae(rewards[..., one], values[..., one], behind[..., one], none, none, 0.9, lam)
        assert torch.equal(both[..., one], alone)


def test_a_step_without_a_reward_is_neither_good_nor_bad():
    """By hand: gamma 0.5, lambda 1, values 2 and 4, the first step has no reward, the second 3 and ends the episode."""
    rewards = torch.tensor([[[torch.nan]], [[3.0]]])
    values, behind = torch.tensor([[[2.0]], [[4.0]]]), torch.tensor([[[4.0]], [[9.0]]])
    ends = torch.tensor([[False], [True]])
    filled = fill_missing_rewards(rewards, values, behind, ends, 0.5)
    assert filled.flatten().tolist() == [0.0, 3.0]  # 2 - 0.5 * 4, so that nothing is left over
    advantages = gae(filled, values, behind, ends, ends, 0.5, 1.0)
    assert advantages.flatten().tolist() == [-0.5, -1.0]


def test_a_group_that_does_not_apply_adds_nothing():
    advantages = torch.tensor([[1.0, 5.0], [3.0, 7.0]])
    applies = torch.tensor([[True, True], [True, False]])
    mixed = mix_advantages(advantages, applies, torch.tensor([2.0, 5.0]), torch.ones(2), torch.tensor([1.0, 10.0]))
    assert torch.allclose(mixed, torch.tensor([-1.0, 1.0]))
