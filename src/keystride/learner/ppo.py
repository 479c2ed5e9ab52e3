"""Multi-critic PPO: one clipped policy loss on mixed advantages, one value loss a reward group."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from keystride.learner import parallel
from keystride.learner.advantages import gae, mixed
from keystride.learner.config import PpoConfig
from keystride.learner.networks import Actor, Critics, Observations, by_length, runs, sorted_by_length
from keystride.learner.rollout import Rollout, log_probability


@dataclass(frozen=True)
class Symmetry:
    """Left and right swapped, as a signed reordering of the columns of states, goals and actions."""

    state: tuple[Tensor, Tensor]  # order, sign
    goals: tuple[Tensor, Tensor]
    action: tuple[Tensor, Tensor]


def mirrored(values: Tensor, signed_order: tuple[Tensor, Tensor]) -> Tensor:
    order, sign = signed_order
    return values[..., order] * sign


@dataclass(frozen=True)
class Samples:
    """What the losses need of N samples."""

    observations: Observations
    mean: Tensor  # (N, A) of the policy that acted
    action: Tensor  # (N, A)
    log_prob: Tensor  # (N,)
    advantage: Tensor  # (N,) mixed
    returns: Tensor  # (N, G) normalised

    def __getitem__(self, rows: Tensor | slice) -> "Samples":
        return Samples(
            self.observations[rows],
            self.mean[rows],
            self.action[rows],
            self.log_prob[rows],
            self.advantage[rows],
            self.returns[rows],
        )


def group_rewards(config: PpoConfig, rewards: dict[str, Tensor]) -> Tensor:
    """(T, E, G): each group's weighted sum of the rewards it judges."""
    sums = [
        torch.stack([weight * rewards[name].float() for name, weight in group.rewards]).sum(dim=0)
        for group in config.groups
    ]
    return torch.stack(sums, dim=-1)


class Ppo:
    def __init__(
        self,
        config: PpoConfig,
        actor: Actor,
        critics: Critics,
        generator: torch.Generator,
        symmetry: Symmetry | None = None,
    ) -> None:
        self.config, self.actor, self.critics, self.generator = config, actor, critics, generator
        self.symmetry = symmetry if config.symmetry else None
        self.weights = torch.tensor([g.advantage_weight for g in config.groups], device=actor.log_spare_std.device)
        self.learning_rate = config.learning_rate
        self.actor_optimizer, self.critic_optimizer = (
            torch.optim.Adam(module.parameters(), lr=config.learning_rate, fused=True) for module in (actor, critics)
        )
        self._acting_std = actor.std.detach().clone()
        self.skipped = 0  # updates left out because something was not finite

    def update(self, rollout: Rollout) -> dict[str, float]:
        self._acting_std = self.actor.std.detach().clone()
        samples, report = self.prepare(rollout)
        steps = [
            self._step(samples[rows], flip, judge)
            for rows, flip, judge in self._minibatches(samples.observations.visible)
        ]
        for name in steps[0]:
            told = [step[name] for step in steps if name in step]
            report[name] = sum(told) / len(told)
        report["learning_rate"] = self.learning_rate
        return report

    @torch.no_grad()
    def prepare(self, rollout: Rollout) -> tuple[Samples, dict[str, float]]:
        """Advantages of every group, standardised over the batch of all processes and mixed; returns for the critics."""
        rewards = group_rewards(self.config, rollout.rewards)  # (T, E, G)
        values, next_values = self._values(rollout)
        done = rollout.terminated | rollout.truncated
        advantages = gae(
            rewards, values, next_values, rollout.terminated, done, self.config.gamma, self.config.lam
        ).flatten(0, 1)
        _, mean, variance = parallel.moments(advantages)
        returns = advantages + values.flatten(0, 1)
        spread = parallel.moments(returns)
        self.critics.returns.update(*spread)
        explained = 1 - variance / (spread[2] + 1e-8)
        report = {f"explained/{g.name}": float(e) for g, e in zip(self.config.groups, explained, strict=True)}
        samples = Samples(
            rollout.observations,
            rollout.mean,
            rollout.action,
            rollout.log_prob,
            mixed(advantages, mean, variance.sqrt(), self.weights),
            (returns - self.critics.returns.mean) / self.critics.returns.std,
        )
        return samples, report

    def _values(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """(T, E, G) of the states seen, and of the states that their steps arrived in."""
        values = self._value(rollout.observations).unflatten(0, (rollout.horizon, -1))
        next_values = torch.cat([values[1:], self._value(rollout.final)[None]])
        if len(rollout.arrived_rows):
            next_values.flatten(0, 1)[rollout.arrived_rows] = self._value(rollout.arrived)
        return values, next_values

    def _value(self, observations: Observations) -> Tensor:
        return self.critics.values(by_length(self._predict, observations))

    def _predict(self, state: Tensor, goals: Tensor) -> Tensor:
        return self.critics(self.actor.normalizer(state), goals)

    def _minibatches(self, visible: Tensor) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """Rows; which of them are shown mirrored, half of them in one epoch, the other half in the next; whether critics learn."""
        flips = torch.rand(len(visible), generator=self.generator) < 0.5
        for epoch in range(self.config.epochs):
            order = torch.randperm(len(visible), generator=self.generator)
            for part in order.chunk(self.config.minibatches):
                rows = part[sorted_by_length(visible[part])]
                yield rows, flips[rows] ^ bool(epoch % 2), epoch < self.config.critic_epochs

    def _step(self, samples: Samples, flip: Tensor, judge: bool) -> dict[str, float]:
        """One step on a minibatch sorted by length; gradients gather over pieces of equal length, which fit into the cache."""
        samples, straight = self._flipped(samples, flip)
        self.actor_optimizer.zero_grad(set_to_none=True)
        self.critic_optimizer.zero_grad(set_to_none=True)
        report: dict[str, Tensor] = {}
        for piece, count in runs(samples.observations.visible):
            share = (piece.stop - piece.start) / len(flip)
            for name, value in self._gather(samples[piece], count, straight[piece], share, judge).items():
                report[name] = report.get(name, torch.zeros(())) + share * value
        (-self.config.entropy * self.actor.std.log().sum()).backward()
        kl = report["shift"] / straight.float().mean().clamp(min=1e-6) + _std_divergence(
            self._acting_std, self.actor.std
        )
        self._apply(kl.detach())
        return {"kl": kl.item(), "std": self.actor.std.mean().item(), **{name: v.item() for name, v in report.items()}}

    def _gather(self, samples: Samples, count: int, straight: Tensor, share: float, judge: bool) -> dict[str, Tensor]:
        """Add this piece's gradient; what it measured."""
        state, goals = samples.observations.state, samples.observations.goals[:, :count]
        gain, report = self._gain(samples, self.actor(state, goals), straight)
        if not judge:
            (-share * gain).backward()
            return report
        value_loss = (self._predict(state, goals) - samples.returns).square().mean(dim=0)
        (share * (value_loss.sum() - gain)).backward()
        losses = {f"value_loss/{g.name}": v for g, v in zip(self.config.groups, value_loss.detach(), strict=True)}
        return {**report, **losses}

    def _flipped(self, samples: Samples, flip: Tensor) -> tuple[Samples, Tensor]:
        """Chosen samples mirrored, in place: a minibatch is a copy. The second result marks those left as they were."""
        if self.symmetry is None:
            return samples, torch.ones_like(flip)
        sides, rows = self.symmetry, flip.nonzero()[:, 0]
        turned = (
            (samples.observations.state, sides.state),
            (samples.observations.goals, sides.goals),
            (samples.action, sides.action),
            (samples.mean, sides.action),
        )
        for values, side in turned:
            values[rows] = mirrored(values[rows], side)
        return samples, ~flip

    def _gain(self, samples: Samples, mean: Tensor, straight: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The clipped surrogate, and how far the policy has moved from the one that acted."""
        std = self.actor.std
        ratio = (log_probability(samples.action, mean, std) - samples.log_prob).exp()
        clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
        gain = torch.minimum(ratio * samples.advantage, clipped * samples.advantage).mean()
        with torch.no_grad():
            shift = 0.5 * ((mean - samples.mean) / std).square().sum(dim=-1)
            report = {
                "shift": (shift * straight).mean(),
                "asymmetry": (shift * ~straight).mean(),
                "clipped": ((ratio - 1).abs() > self.config.clip).float().mean(),
            }
        return gain, report

    def _apply(self, kl: Tensor) -> None:
        parameters = [*self.actor.parameters(), *self.critics.parameters()]
        parallel.average_gradients(parameters)
        kl = parallel.total(kl) / parallel.size()
        norms = [
            nn.utils.clip_grad_norm_(module.parameters(), self.config.max_gradient_norm)
            for module in (self.actor, self.critics)
        ]
        if not torch.isfinite(torch.stack([kl, *norms])).all():
            self.skipped += 1
            return
        self._adapt(float(kl))
        self.actor_optimizer.step()
        self.critic_optimizer.step()

    def _adapt(self, kl: float) -> None:
        """Towards the target divergence: too far, smaller steps; not far enough, larger ones."""
        low, high = self.config.learning_rate_range
        if kl > 2.0 * self.config.target_kl:
            self.learning_rate = max(self.learning_rate / 1.5, low)
        elif kl < 0.5 * self.config.target_kl:
            self.learning_rate = min(self.learning_rate * 1.5, high)
        for group in self.actor_optimizer.param_groups:
            group["lr"] = self.learning_rate


def _std_divergence(old: Tensor, new: Tensor) -> Tensor:
    """What the change of deviation adds to the divergence of the old policy from the new."""
    return ((new / old).log() + 0.5 * (old / new).square() - 0.5).sum()
