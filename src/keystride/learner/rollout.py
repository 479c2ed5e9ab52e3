"""Experience: the interface of an environment, and the samples of one iteration."""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from keystride.learner.networks import Actor, Observations, packed


class ObservationLike(Protocol):
    """An observation: arrays or tensors."""

    @property
    def state(self) -> Any: ...
    @property
    def goals(self) -> Any: ...
    @property
    def visible(self) -> Any: ...


class StepLike(Protocol):
    """The result of a control step of many environments."""

    @property
    def observation(self) -> ObservationLike: ...
    @property
    def arrived(self) -> ObservationLike:
        """Observation of the truncated environments alone, before their restart."""
        ...

    @property
    def rewards(self) -> dict[str, Any]: ...
    @property
    def terminated(self) -> Any: ...
    @property
    def truncated(self) -> Any: ...
    @property
    def transition(self) -> Any:
        """Style features before and after the step, or None where there is no style."""
        ...

    @property
    def demonstration(self) -> Any:
        """An action to imitate for each environment (NaN: none) in the state the step began in, or None."""
        ...


class Environment(Protocol):
    """A task for the learner: many environments stepped at once."""

    def observe(self) -> ObservationLike:
        """Return the present observation of all environments."""
        ...

    def step(self, action: Any) -> StepLike:
        """Take one control step; environments that end are restarted."""
        ...

    def real_transitions(self, count: int) -> Any:
        """Return transitions of the motion library, the discriminator's real samples."""
        ...

    def metrics(self) -> dict[str, tuple[float, float]]:
        """Return the sum and count of every metric since the last call."""
        ...

    def progress(self, steps: int, means: dict[str, float]) -> dict[str, float]:
        """Advance the curriculum; the means are over all processes, so that all agree."""
        ...

    def curriculum(self) -> dict[str, Any]:
        """Return the state of the curriculum: the same in every process, and saved with the learner."""
        ...

    def set_curriculum(self, saved: dict[str, Any]) -> None:
        """Continue with a saved curriculum."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return everything that the future of the episodes depends on."""
        ...

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        ...


@dataclass(frozen=True)
class Rollout:
    """T control steps of E environments, flattened in time order: row t * E + e."""

    horizon: int
    observations: Observations  # (T E, ...), packed
    mean: Tensor  # (T E, A)
    action: Tensor  # (T E, A) that the policy drew: without the noise carried over from the step before
    log_prob: Tensor  # (T E,)
    demonstration: Tensor | None  # (T E, A) actions to imitate, NaN where there is none
    rewards: dict[str, Tensor]  # (T, E)
    terminated: Tensor  # (T, E) bool
    truncated: Tensor  # (T, E) bool
    transitions: Tensor | None  # (T E, 2F)
    final: Observations  # (E, ...) the state after the last step
    noise: Tensor  # (E, A) of the last actions
    arrived: Observations  # (M, ...) before the restart of truncated episodes
    arrived_rows: Tensor  # (M,) the rows that arrived there


def tensors(seen: ObservationLike, device: torch.device) -> Observations:
    """Return an observation as packed tensors on a device."""

    def on_device(values: Any, dtype: torch.dtype) -> Tensor:
        return torch.as_tensor(values).to(device=device, dtype=dtype)

    return packed(
        Observations(
            on_device(seen.state, torch.float32),
            on_device(seen.goals, torch.float32),
            on_device(seen.visible, torch.bool),
        )
    )


def log_probability(action: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return the log probability of independent normal actions, up to a constant that cancels in every ratio."""
    return -(0.5 * ((action - mean) / std).square() + std.log()).sum(dim=-1)


@torch.no_grad()
def collect(
    environment: Environment,
    actor: Actor,
    start: Observations,
    horizon: int,
    generator: torch.Generator,
    *,
    noise: Tensor | None = None,
    correlation: float = 0.0,
) -> Rollout:
    """Step the environments under the policy with exploration noise.

    The share `correlation` of the noise is carried over to the next step. It acts as a disturbance from outside: only the policy's
    own draw, which is added to it, has a probability.
    """
    device, std = start.state.device, actor.std
    noise = torch.zeros(len(start), len(std), device=device) if noise is None else noise
    seen, means, actions, steps = start, [], [], []
    visited, arrived, rows = [], [], []
    for t in range(horizon):
        mean = actor.act(seen)
        carried_over = correlation * noise
        noise = carried_over + std * torch.randn(mean.shape, generator=generator).to(device)
        step = environment.step((mean + noise).cpu().numpy())
        visited.append(seen)
        means.append(mean)
        actions.append(mean + noise - carried_over)
        steps.append(step)
        seen = tensors(step.observation, device)
        cut = torch.as_tensor(step.truncated).nonzero()[:, 0]
        arrived.append(tensors(step.arrived, device))
        rows.append(cut + t * len(mean))
    mean, action = torch.cat(means), torch.cat(actions)
    return Rollout(
        horizon=horizon,
        observations=_joined(visited),
        mean=mean,
        action=action,
        log_prob=log_probability(action, mean, std),
        demonstration=None
        if steps[0].demonstration is None
        else _stacked([s.demonstration for s in steps], device).flatten(0, 1),
        rewards={name: _stacked([step.rewards[name] for step in steps], device) for name in steps[0].rewards},
        terminated=_stacked([step.terminated for step in steps], device),
        truncated=_stacked([step.truncated for step in steps], device),
        transitions=None
        if steps[0].transition is None
        else _stacked([s.transition for s in steps], device).flatten(0, 1),
        final=seen,
        noise=noise,
        arrived=_joined(arrived),
        arrived_rows=torch.cat(rows).to(device),
    )


def _stacked(values: list[Any], device: torch.device) -> Tensor:
    return torch.stack([torch.as_tensor(value) for value in values]).to(device)


def _joined(parts: list[Observations]) -> Observations:
    return Observations(*(torch.cat([getattr(part, name) for part in parts]) for name in ("state", "goals", "visible")))
