"""Generalised advantage estimation for each reward group, and their mixture (paper, multi-critic advantage)."""

import torch
from torch import Tensor


def gae(
    rewards: Tensor, values: Tensor, next_values: Tensor, terminated: Tensor, done: Tensor, gamma: float, lam: float
) -> Tensor:
    """Advantages (T, E, G).

    rewards, values, next_values (T, E, G); terminated, done (T, E) bool. next_values are those of the state a step arrived in, before
    any restart: a termination has no future, a truncation has the one the critic expects; neither lets the next episode leak in.
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


def mixed(advantages: Tensor, mean: Tensor, std: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of standardised advantages; (..., G) to (...,). mean and std (G,) are those of the whole batch."""
    return (weights * (advantages - mean) / (std + 1e-8)).sum(dim=-1)
