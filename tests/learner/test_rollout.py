"""Laws of collected experience."""

import pytest
import torch
from point_mass import PointMass

from keystride.learner.config import NetworkConfig
from keystride.learner.networks import Actor
from keystride.learner.rollout import collect, log_probability, tensors


def small_actor() -> Actor:
    torch.manual_seed(0)
    return Actor(NetworkConfig(width=8, feedforward=16, mlp=(16,), critics="shared", initial_std=0.5), 2, 3, 2)


def test_log_probability_differences_are_those_of_the_normal_distribution():
    torch.manual_seed(0)
    action, one, two, std = torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 3), torch.tensor([0.5, 1.0, 2.0])
    ours = log_probability(action, one, std) - log_probability(action, two, std)
    theirs = (
        torch.distributions.Normal(one, std).log_prob(action) - torch.distributions.Normal(two, std).log_prob(action)
    ).sum(-1)
    assert torch.allclose(ours, theirs, atol=1e-5)


class Recorded(PointMass):
    """Keeps the actions it was given."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.actions: list[torch.Tensor] = []

    def step(self, action):
        self.actions.append(torch.as_tensor(action))
        return super().step(action)


def test_correlated_noise_has_the_correlation_and_the_probabilities_it_should_have():
    """Away from the mean by AR(1) noise; what the policy drew is white, with the policy's own deviation."""
    actor = small_actor()
    environment = Recorded(512)
    start = tensors(environment.observe(), torch.device("cpu"))
    seen = collect(environment, actor, start, 40, torch.Generator().manual_seed(1), correlation=0.8)
    mean, drawn = (values.unflatten(0, (40, -1)) for values in (seen.mean, seen.action))
    noise = torch.stack(environment.actions) - mean  # (T, E, A)
    late = noise[20:-1].flatten(), noise[21:].flatten()
    assert torch.corrcoef(torch.stack(late))[0, 1] == pytest.approx(0.8, abs=0.02)
    assert noise[20:].std() == pytest.approx(0.5 / 0.6, rel=0.03)
    own = drawn - mean
    assert own.std() == pytest.approx(0.5, rel=0.02)
    assert torch.corrcoef(torch.stack([own[:-1].flatten(), own[1:].flatten()]))[0, 1].abs() < 0.02
    assert torch.allclose(seen.noise, noise[-1])
    expected = log_probability(seen.action, seen.mean, actor.std)
    assert torch.equal(seen.log_prob, expected)


def test_truncated_episodes_say_where_they_arrived() -> None:
    """Rows of `arrived` are those of the truncated steps, with the observation from before the restart."""
    environment, actor = PointMass(8), small_actor()
    start = tensors(environment.observe(), torch.device("cpu"))
    found = collect(environment, actor, start, 30, torch.Generator().manual_seed(0))
    truncated = found.truncated.flatten().nonzero()[:, 0]
    assert len(truncated) > 8
    assert torch.equal(found.arrived_rows, truncated)
    assert len(found.arrived) == len(truncated)
    assert not found.arrived.visible.any()  # an episode ends after its last goal; a new one has goals to come
    after = torch.cat([found.observations.visible[8:], found.final.visible]).any(dim=1)
    assert after[truncated].all()
