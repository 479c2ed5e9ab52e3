"""Laws of the multi-critic update."""

from dataclasses import replace

import pytest
import torch
from point_mass import PointMass

from keystride.learner.advantages import gae
from keystride.learner.config import NetworkConfig, PpoConfig, RewardGroup
from keystride.learner.networks import Actor, Critics
from keystride.learner.ppo import Ppo, Symmetry, group_rewards, mirrored
from keystride.learner.rollout import Rollout, collect, log_probability, tensors

NETWORK = NetworkConfig(width=8, feedforward=16, mlp=(16,), critics="shared", initial_std=0.5)
GOAL, EASE = RewardGroup("goal", 0.5, (("goal", 1.0),)), RewardGroup("ease", 0.25, (("ease", 1.0),))
SUM = RewardGroup("all", 1.0, (("goal", 2.0), ("ease", 0.5)))


def learner(*groups: RewardGroup, **settings) -> Ppo:
    torch.manual_seed(0)
    actor, critics = Actor(NETWORK, 2, 3, 2), Critics(NETWORK, 2, 3, len(groups))
    config = PpoConfig(groups=groups, **settings)
    return Ppo(config, actor, critics, torch.Generator().manual_seed(0))


def rollout(ppo: Ppo, horizon: int = 20) -> Rollout:
    environment = PointMass(16)
    start = tensors(environment.observe(), torch.device("cpu"))
    return collect(environment, ppo.actor, start, horizon, torch.Generator().manual_seed(1))


def silent(ppo: Ppo) -> Ppo:
    """Critics that say zero, so that rewards alone speak."""
    for network in ppo.critics.networks:
        for parameter in network.get_submodule("head").parameters():
            torch.nn.init.zeros_(parameter)
    return ppo


def scaled(experience: Rollout, name: str, factor: float) -> Rollout:
    return replace(experience, rewards={**experience.rewards, name: factor * experience.rewards[name]})


def test_group_rewards_are_weighted_sums():
    rewards = {"goal": torch.tensor([[1.0]]), "ease": torch.tensor([[0.5]])}
    assert group_rewards(PpoConfig(groups=(SUM, GOAL)), rewards).tolist() == [[[2.25, 1.0]]]


def test_one_group_is_plain_ppo():
    """The advantage is the standardised one of the summed reward, the return what the critic should have said."""
    ppo = silent(learner(SUM))
    experience = rollout(ppo)
    samples, _ = ppo.prepare(experience)
    reward = (2.0 * experience.rewards["goal"] + 0.5 * experience.rewards["ease"])[..., None]
    zero = torch.zeros_like(reward)
    done = experience.terminated | experience.truncated
    plain = gae(reward, zero, zero, experience.terminated, done, ppo.config.gamma, ppo.config.lam).flatten()
    standardised = (plain - plain.mean()) / plain.std(unbiased=False)
    assert torch.allclose(samples.advantage, standardised, atol=1e-4)


def test_multi_critic_does_not_care_how_large_a_reward_is():
    ppo = silent(learner(GOAL, EASE))
    experience = rollout(ppo)
    before, _ = ppo.prepare(experience)
    after, _ = silent(learner(GOAL, EASE)).prepare(scaled(experience, "goal", 1000.0))
    assert torch.allclose(before.advantage, after.advantage, atol=1e-4)


def test_single_critic_does_care():
    ppo = silent(learner(SUM))
    experience = rollout(ppo)
    before, _ = ppo.prepare(experience)
    after, _ = silent(learner(SUM)).prepare(scaled(experience, "goal", 1000.0))
    assert torch.corrcoef(torch.stack([before.advantage, after.advantage]))[0, 1] < 0.9


def test_log_probability_differences_are_those_of_the_normal_distribution():
    torch.manual_seed(0)
    action, one, two, std = torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 3), torch.tensor([0.5, 1.0, 2.0])
    ours = log_probability(action, one, std) - log_probability(action, two, std)
    theirs = (
        torch.distributions.Normal(one, std).log_prob(action) - torch.distributions.Normal(two, std).log_prob(action)
    ).sum(-1)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_the_learning_rate_follows_the_divergence():
    ppo = learner(GOAL, learning_rate=1e-3, target_kl=0.02, learning_rate_range=(1e-5, 1e-2))
    ppo._adapt(0.05)
    assert ppo.learning_rate == pytest.approx(1e-3 / 1.5)
    ppo._adapt(0.02)
    assert ppo.learning_rate == pytest.approx(1e-3 / 1.5)
    ppo._adapt(0.001)
    assert ppo.actor_optimizer.param_groups[0]["lr"] == pytest.approx(1e-3)


def test_an_update_that_is_not_finite_is_left_out():
    ppo = learner(GOAL, EASE)
    experience = rollout(ppo)
    weights = [p.detach().clone() for p in ppo.actor.parameters()]
    ppo.update(scaled(experience, "goal", float("nan")))
    assert ppo.skipped == ppo.config.epochs * ppo.config.minibatches
    assert all(torch.equal(a, b) for a, b in zip(weights, ppo.actor.parameters(), strict=True))


def test_an_update_moves_towards_better_actions():
    ppo = learner(GOAL, EASE, learning_rate=1e-3)
    experience = rollout(ppo)
    samples, _ = ppo.prepare(experience)
    ppo.update(experience)
    with torch.no_grad():
        mean = ppo.actor.act(experience.observations)
        gain = log_probability(samples.action, mean, ppo.actor.std) - samples.log_prob
    assert (gain * samples.advantage).mean() > 0


def test_mirrored_samples_are_judged_like_the_originals():
    """The plane's mirror: y changes sign. Flipping all samples twice gives them back."""
    flip_y = torch.arange(2), torch.tensor([1.0, -1.0])
    sides = Symmetry(flip_y, (torch.arange(3), torch.tensor([1.0, -1.0, 1.0])), flip_y)
    ppo = learner_with(sides)
    samples, _ = ppo.prepare(rollout(ppo))
    everything = torch.ones(len(samples.advantage), dtype=torch.bool)
    rows = torch.arange(len(everything))
    once, straight = ppo._flipped(samples[rows], everything)
    twice, _ = ppo._flipped(once[rows], everything)
    assert not straight.any()
    assert torch.equal(once.action, mirrored(samples.action, flip_y))
    assert torch.equal(twice.observations.goals, samples.observations.goals)


def learner_with(sides: Symmetry) -> Ppo:
    made = learner(GOAL)
    return Ppo(replace(made.config, symmetry=True), made.actor, made.critics, made.generator, sides)
