"""Multi-critic PPO: one clipped policy loss on mixed advantages, one value loss per reward group (paper, multi-critic advantage)."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor, nn

from keystride.learner import parallel
from keystride.learner.config import PpoConfig
from keystride.learner.networks import Actor, Critics, Observations, by_length, equal_length_chunks, sorted_by_length
from keystride.learner.rollout import Rollout, log_probability

LARGEST_WEIGHT = 2.0  # of a mirrored sample whose action is much likelier under the policy than the original was
KL_SAMPLES = 2048  # in each process, to measure the divergence after an update


@dataclass(frozen=True)
class Symmetry:
    """Left and right swapped, as a signed reordering of the columns of states, goals and actions."""

    state: tuple[Tensor, Tensor]  # order, sign
    goals: tuple[Tensor, Tensor]
    action: tuple[Tensor, Tensor]


def mirrored(values: Tensor, signed_order: tuple[Tensor, Tensor]) -> Tensor:
    """Return values with their last axis reordered and signed."""
    order, sign = signed_order
    return values[..., order] * sign


@dataclass(frozen=True)
class Samples:
    """What the losses need of N samples."""

    observations: Observations
    mean: Tensor  # (N, A) of the policy that the ratio is taken against
    action: Tensor  # (N, A)
    log_prob: Tensor  # (N,) of the action under that policy
    weight: (
        Tensor  # (N,) importance weight: 1, and for mirrored samples how much likelier the action is than the original
    )
    demonstration: Tensor  # (N, A) action to imitate, NaN where there is none
    advantage: Tensor  # (N,) mixed
    returns: Tensor  # (N, G) normalized, NaN where a group has no reward

    def __getitem__(self, rows: Tensor | slice) -> "Samples":
        return Samples(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.advantage)


def join_samples(one: Samples, other: Samples) -> Samples:
    """Return the samples of both, one after the other."""
    seen = (torch.cat([getattr(s.observations, f.name) for s in (one, other)]) for f in fields(Observations))
    rest = (torch.cat([getattr(one, f.name), getattr(other, f.name)]) for f in fields(Samples)[1:])
    return Samples(Observations(*seen), *rest)


def group_rewards(config: PpoConfig, rewards: dict[str, Tensor]) -> Tensor:
    """Return each group's weighted sum of its rewards (T, E, G), NaN where one of them does not apply."""
    sums = [
        torch.stack([weight * rewards[name].float() for name, weight in group.rewards]).sum(dim=0)
        for group in config.groups
    ]
    return torch.stack(sums, dim=-1)


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


class Ppo:
    """Updates an actor and its critics, one for each reward group, on rollouts."""

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
        device = actor.log_std.device
        self.weights = torch.tensor([g.advantage_weight for g in config.groups], device=device)
        self.lam = torch.tensor([config.lam if g.lam is None else g.lam for g in config.groups], device=device)
        self.value_lam = self.lam if config.value_lam is None else config.value_lam
        self.learning_rate = config.learning_rate
        self.std_bounds = config.exploration.std_range
        self.clone = config.clone
        self.actor_learns = config.critic_warmup_steps == 0
        self.only_imitates = config.imitation_steps > 0
        network = [p for p in actor.parameters() if p is not actor.log_std]
        self.actor_optimizer = torch.optim.Adam(
            [
                {"params": network, "lr": config.learning_rate},
                {"params": [actor.log_std], "lr": config.exploration.learning_rate},
            ],
            fused=True,
        )
        self.critic_optimizer = torch.optim.Adam(critics.parameters(), lr=config.learning_rate, fused=True)
        self.skipped = 0  # updates skipped because a gradient was not finite
        actor.clamp_std(*self.std_bounds)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve actor and critics on one rollout, then adapt the learning rate to how far the policy has moved."""
        std = self.actor.std.detach().clone()
        samples, report = self.prepare(rollout)
        count = len(samples)
        if self.symmetry is not None:
            samples = join_samples(samples, self._mirror(samples, self.symmetry))
        steps = [
            self._step(samples[rows], update_critics)
            for rows, update_critics in self._minibatches(samples.observations.visible, count)
        ]
        for name in steps[0]:
            values = [step[name] for step in steps if name in step]
            report[name] = sum(values) / len(values)
        report["kl"] = self._divergence(samples[:count], std)
        if self.actor_learns and not self.only_imitates:
            self._adapt(report["kl"])
        return {**report, "std": self.actor.std.mean().item(), "learning_rate": self.learning_rate}

    @torch.no_grad()
    def prepare(self, rollout: Rollout) -> tuple[Samples, dict[str, float]]:
        """Return samples with mixed advantages, standardized per group over all processes, and returns for the critics; and metrics."""
        rewards = group_rewards(self.config, rollout.rewards)  # (T, E, G)
        values, next_values = self._values(rollout)
        applies = ~rewards.isnan()
        rewards = fill_missing_rewards(rewards, values, next_values, rollout.terminated, self.config.gamma)
        done = rollout.terminated | rollout.truncated
        estimate = partial(gae, rewards, values, next_values, rollout.terminated, done, self.config.gamma)
        advantages, value_errors = estimate(self.lam), estimate(self.value_lam)
        advantages, value_errors, applies, values = (
            t.flatten(0, 1) for t in (advantages, value_errors, applies, values)
        )
        _, mean, variance = parallel.masked_moments(advantages, applies)
        returns = torch.where(applies, value_errors + values, torch.nan)
        count, return_mean, return_variance = parallel.masked_moments(returns, applies)
        self.critics.returns.update(count, return_mean, return_variance)
        _, _, error_variance = parallel.masked_moments(value_errors, applies)
        explained = 1 - error_variance / (return_variance + 1e-8)
        report = {f"explained/{g.name}": float(e) for g, e in zip(self.config.groups, explained, strict=True)}
        samples = Samples(
            observations=rollout.observations,
            mean=rollout.mean,
            action=rollout.action,
            log_prob=rollout.log_prob,
            weight=torch.ones_like(rollout.log_prob),
            demonstration=torch.full_like(rollout.action, float("nan"))
            if rollout.demonstration is None
            else rollout.demonstration,
            advantage=mix_advantages(advantages, applies, mean, variance.sqrt(), self.weights),
            returns=(returns - self.critics.returns.mean) / self.critics.returns.std,
        )
        return samples, report

    @torch.no_grad()
    def _mirror(self, samples: Samples, sides: Symmetry) -> Samples:
        """Return every sample with left and right swapped.

        The policy that acted would have taken the mirrored action with another probability. Ratios are therefore taken against
        its probability of the mirrored action in the mirrored state, and samples are weighted by it (decoupled PPO).
        """
        seen = samples.observations
        seen = Observations(mirrored(seen.state, sides.state), mirrored(seen.goals, sides.goals), seen.visible)
        action, mean = mirrored(samples.action, sides.action), by_length(self.actor, seen)
        log_prob = log_probability(action, mean, self.actor.std)
        return Samples(
            observations=seen,
            mean=mean,
            action=action,
            log_prob=log_prob,
            weight=(log_prob - samples.log_prob).exp().clamp(max=LARGEST_WEIGHT),
            demonstration=mirrored(samples.demonstration, sides.action),
            advantage=samples.advantage,
            returns=samples.returns,
        )

    def _values(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """Return values (T, E, G) of the observed states, and of the states that the steps arrived in."""
        values = self._value(rollout.observations).unflatten(0, (rollout.horizon, -1))
        next_values = torch.cat([values[1:], self._value(rollout.final)[None]])
        if len(rollout.arrived_rows):
            next_values.flatten(0, 1)[rollout.arrived_rows] = self._value(rollout.arrived)
        return values, next_values

    def _value(self, observations: Observations) -> Tensor:
        return self.critics.values(by_length(self._predict, observations))

    def _predict(self, state: Tensor, goals: Tensor) -> Tensor:
        return self.critics(self.actor.normalizer(state), goals)

    def _minibatches(self, visible: Tensor, count: int) -> Iterator[tuple[Tensor, bool]]:
        """Yield rows sorted by their number of keyframes, and whether to update the critics on them.

        Mirrored samples, if any, follow the `count` original ones: each epoch takes one of the two at random, the next epoch the
        other.
        """
        flips = torch.rand(count, generator=self.generator) < 0.5
        for epoch in range(self.config.epochs):
            order = torch.randperm(count, generator=self.generator)
            if len(visible) > count:
                order = order + count * (flips[order] ^ bool(epoch % 2))
            for part in order.chunk(self.config.minibatches):
                yield part[sorted_by_length(visible[part])], epoch < self.config.critic_epochs

    def _step(self, samples: Samples, update_critics: bool) -> dict[str, float]:
        """Take one gradient step on a sorted minibatch; gradients accumulate over chunks that fit into the cache."""
        self.actor_optimizer.zero_grad(set_to_none=True)
        self.critic_optimizer.zero_grad(set_to_none=True)
        report: dict[str, Tensor] = {}
        for chunk, count in equal_length_chunks(samples.observations.visible):
            share = (chunk.stop - chunk.start) / len(samples)
            for name, value in self._accumulate(samples[chunk], count, share, update_critics).items():
                report[name] = report.get(name, torch.zeros(())) + share * value
        (-self.config.entropy * self.actor.log_std.sum()).backward()
        self._apply()
        return {name: value.item() for name, value in report.items()}

    def _accumulate(self, samples: Samples, count: int, share: float, update_critics: bool) -> dict[str, Tensor]:
        """Add this chunk's gradient; return its metrics."""
        state, goals = samples.observations.state, samples.observations.goals[:, :count]
        objective, report = self._policy_objective(samples, self.actor(state, goals))
        if not update_critics:
            (-share * objective).backward()
            return report
        error = self._predict(state, goals) - samples.returns
        value_loss = torch.where(samples.returns.isnan(), 0.0, error).square().mean(dim=0)
        (share * (value_loss.sum() - objective)).backward()
        losses = {f"value_loss/{g.name}": v for g, v in zip(self.config.groups, value_loss.detach(), strict=True)}
        return {**report, **losses}

    def _policy_objective(self, samples: Samples, mean: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the clipped surrogate objective minus the imitation loss, and metrics."""
        ratio = (log_probability(samples.action, mean, self.actor.std) - samples.log_prob).exp()
        clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
        objective = (samples.weight * torch.minimum(ratio * samples.advantage, clipped * samples.advantage)).mean()
        report = {
            "clipped": ((ratio.detach() - 1).abs() > self.config.clip).float().mean(),
            "mirror_weight": samples.weight.mean(),
        }
        if self.clone or self.only_imitates:
            has_one = ~samples.demonstration[:, 0].isnan()
            target = torch.where(has_one[:, None], samples.demonstration, mean.detach())
            miss = ((mean - target) / self.config.clone_scale).square().sum(dim=-1).mean()
            objective = -miss if self.only_imitates else objective - self.clone * miss
            report |= {"clone/miss": miss.detach(), "clone/share": has_one.float().mean()}
        return objective, report

    def _apply(self) -> None:
        parallel.average_gradients([*self.actor.parameters(), *self.critics.parameters()])
        norms = [
            nn.utils.clip_grad_norm_(module.parameters(), self.config.max_gradient_norm)
            for module in (self.actor, self.critics)
        ]
        if not torch.isfinite(torch.stack(norms)).all():
            self.skipped += 1
            return
        if self.actor_learns:
            self.actor_optimizer.step()
        self.critic_optimizer.step()
        self.actor.clamp_std(*self.std_bounds)

    @torch.no_grad()
    def _divergence(self, samples: Samples, std: Tensor) -> float:
        """Return the mean KL divergence of the acting policy from the updated one, over all processes, on some of the samples."""
        some = samples[torch.randperm(len(samples), generator=self.generator)[:KL_SAMPLES]]
        new = self.actor.std
        moved = ((by_length(self.actor, some.observations) - some.mean) / new).square()
        kl = ((new / std).log() + 0.5 * (std / new).square() - 0.5).sum() + 0.5 * moved.sum(dim=-1).mean()
        return float(parallel.total(kl) / parallel.size())

    def _adapt(self, kl: float) -> None:
        """Adapt the learning rate to the target divergence, once per update: before its first step the divergence is zero."""
        low, high = self.config.learning_rate_range
        if kl > 2.0 * self.config.target_kl:
            self.learning_rate = max(self.learning_rate / 1.5, low)
        elif kl < 0.5 * self.config.target_kl:
            self.learning_rate = min(self.learning_rate * 1.5, high)
        self.set_learning_rate(self.learning_rate)

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the actor's network; the critics keep theirs."""
        self.learning_rate = rate
        self.actor_optimizer.param_groups[0]["lr"] = rate
