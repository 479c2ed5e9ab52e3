"""The style reward: a least-squares discriminator between transitions of the clips and of the policy (AMP)."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keystride.learner.config import DiscriminatorConfig


class Discriminator(nn.Module):
    """Scores transitions: 1 for the clips, -1 for the policy."""

    def __init__(self, config: DiscriminatorConfig, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        sizes = [len(mean), *config.hidden]
        self.mlp = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.head = nn.Linear(sizes[-1], 1)
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.mean: Tensor
        self.std: Tensor

    def forward(self, transitions: Tensor) -> Tensor:
        return self.score(self.normalize(transitions))

    def normalize(self, transitions: Tensor) -> Tensor:
        return ((transitions - self.mean) / self.std).clamp(-5.0, 5.0)

    def score(self, features: Tensor) -> Tensor:
        """Return the scores (n,) of normalized features (n, F)."""
        for layer in self.mlp:
            features = F.elu(layer(features))
        return self.head(features)[:, 0]


def style_reward(score: Tensor) -> Tensor:
    """Return max(1 - 0.25 (D - 1)^2, 0), in [0, 1] (paper, reward terms)."""
    return (1.0 - 0.25 * (score - 1.0) ** 2).clamp(min=0.0)


def discriminator_loss(
    discriminator: Discriminator,
    real: Tensor,
    policy: Tensor,
    gradient_penalty: float,
    blur: float = 0.0,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss and metrics: least squares towards 1 and -1, and a gradient penalty on the real data against oscillation.

    `blur` is the deviation of noise that is added to the normalized features of both.
    """
    sides = [discriminator.normalize(transitions) for transitions in (real, policy)]
    if blur:
        sides = [side + blur * torch.randn(side.shape, generator=generator).to(side.device) for side in sides]
    features = sides[0].requires_grad_()
    on_real, on_policy = discriminator.score(features), discriminator.score(sides[1])
    (slope,) = torch.autograd.grad(on_real.sum(), features, create_graph=True)
    penalty = slope.square().sum(dim=-1).mean()
    loss = 0.5 * ((on_real - 1).square().mean() + (on_policy + 1).square().mean()) + gradient_penalty * penalty
    return loss, {
        "discriminator/loss": loss.item(),
        "discriminator/penalty": penalty.item(),
        "discriminator/real_right": (on_real > 0).float().mean().item(),
        "discriminator/policy_right": (on_policy < 0).float().mean().item(),
    }


class Replay:
    """The latest policy transitions, so that the discriminator does not forget earlier policies."""

    def __init__(self, capacity: int, size: int) -> None:
        self.rows = torch.zeros(capacity, size)
        self.filled = 0
        self.cursor = 0

    def add(self, rows: Tensor) -> None:
        """Add transitions, replacing the oldest."""
        rows = rows[-len(self.rows) :]
        place = (torch.arange(len(rows)) + self.cursor) % len(self.rows)
        self.rows[place] = rows
        self.cursor = int((self.cursor + len(rows)) % len(self.rows))
        self.filled = min(self.filled + len(rows), len(self.rows))

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Return transitions drawn at random."""
        return self.rows[torch.randint(self.filled, (count,), generator=generator)]
