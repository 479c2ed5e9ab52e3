"""Generalized advantage estimation for each reward group, and the mixed advantage (paper, multi-critic advantage)."""

import torch
from torch import Tensor


def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    done: Tensor,
    gamma: float,
    lam: Tensor | float,
) -> Tensor:
    """Return advantages (T, E, G); lam is one number, or one for each group (G,).

    rewards, values, next_values (T, E, G); terminated, done (T, E) bool. next_values belong to the state a step arrived in, before
    any restart: a terminated episode has no next value, a truncated one has the critic's; the next episode never leaks in.
    """
    alive = (~terminated).to(rewards.dtype)[..., None]
    flows = (~done).to(rewards.dtype)[..., None]
    delta = rewards + gamma * alive * next_values - values
    advantages = torch.empty_like(delta)
    running = torch.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + gamma * lam * flows[t] * running
        advantages[t] = running
    return advantages


def fill_missing_rewards(
    rewards: Tensor, values: Tensor, next_values: Tensor, terminated: Tensor, gamma: float
) -> Tensor:
    """Return rewards (T, E, G) with what each critic expects in place of NaN, so that such a step is neither good nor bad."""
    alive = (~terminated).to(rewards.dtype)[..., None]
    return torch.where(rewards.isnan(), values - gamma * alive * next_values, rewards)


def mix_advantages(advantages: Tensor, applies: Tensor, mean: Tensor, std: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sum of standardized advantages; (N, G) to (N,).

    applies (N, G) bool: which groups have a reward in a sample; the others add nothing. mean and std (G,) are of the whole batch.
    """
    return (weights * applies * (advantages - mean) / (std + 1e-8)).sum(dim=-1)
