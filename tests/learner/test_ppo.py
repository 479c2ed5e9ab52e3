"""Laws of the multi-critic update."""

from dataclasses import replace

import pytest
import torch
from point_mass import PointMass

from keystride.learner.config import ExplorationConfig, NetworkConfig, PpoConfig, RewardGroup
from keystride.learner.networks import Actor, Critics
from keystride.learner.ppo import Ppo, Symmetry, gae, group_rewards, mirrored
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


def test_the_critics_may_learn_with_a_lambda_of_their_own():
    """With a lambda of zero for advantages, those are the rewards; the returns still reach to the end of the rollout."""
    ppo = silent(learner(replace(GOAL, lam=0.0), value_lam=1.0, gamma=1.0))
    experience = rollout(ppo)
    samples, _ = ppo.prepare(experience)
    reward = experience.rewards["goal"]
    standardised = (reward - reward.mean()) / reward.std(unbiased=False)
    assert torch.allclose(samples.advantage, GOAL.advantage_weight * standardised.flatten(), atol=1e-4)
    done, ahead = experience.terminated | experience.truncated, torch.zeros_like(reward[0])
    sums = []
    for t in reversed(range(len(reward))):
        ahead = reward[t] + torch.where(done[t], 0.0, ahead)
        sums.append(ahead)
    returns = samples.returns[:, 0] * ppo.critics.returns.std + ppo.critics.returns.mean
    assert torch.allclose(returns, torch.stack(sums[::-1]).flatten(), atol=1e-4)


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
    ppo.update(scaled(experience, "goal", float("inf")))
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


FLIP_Y = torch.arange(2), torch.tensor([1.0, -1.0])
SIDES = Symmetry(
    FLIP_Y, (torch.arange(3), torch.tensor([1.0, -1.0, 1.0])), FLIP_Y
)  # the plane's mirror: y changes sign


def learner_with(sides: Symmetry) -> Ppo:
    made = learner(GOAL)
    return Ppo(replace(made.config, symmetry=True), made.actor, made.critics, made.generator, sides)


def test_mirroring_a_sample_twice_gives_it_back():
    ppo = learner_with(SIDES)
    samples, _ = ppo.prepare(rollout(ppo))
    once = ppo._mirror(samples, SIDES)
    twice = ppo._mirror(once, SIDES)
    assert torch.equal(once.action, mirrored(samples.action, FLIP_Y))
    assert torch.equal(once.advantage, samples.advantage)
    assert torch.equal(twice.observations.goals, samples.observations.goals)
    assert torch.allclose(twice.log_prob, samples.log_prob, atol=1e-5)


def test_before_the_first_step_no_mirrored_sample_is_clipped():
    """Ratios of mirrored samples are taken against what the acting policy thinks of them, so they all begin at one."""
    ppo = learner_with(SIDES)
    samples, _ = ppo.prepare(rollout(ppo))
    flipped = ppo._mirror(samples, SIDES)
    with torch.no_grad():
        gain, report = ppo._policy_objective(flipped, ppo.actor.act(flipped.observations))
    assert report["clipped"] == 0.0
    assert gain == pytest.approx(float((flipped.weight * flipped.advantage).mean()), abs=1e-5)


def test_a_mirrored_sample_weighs_as_much_as_it_is_likely():
    ppo = learner_with(SIDES)
    with torch.no_grad():  # an asymmetric policy: it pushes towards y
        ppo.actor.network.head.bias[1] = 0.8
    samples, _ = ppo.prepare(rollout(ppo))
    flipped = ppo._mirror(samples, SIDES)
    likely = (flipped.log_prob - samples.log_prob).exp()
    assert torch.allclose(flipped.weight, likely.clamp(max=2.0))
    assert flipped.weight.mean() < 0.8


def test_every_sample_is_shown_once_as_it_is_and_once_mirrored():
    ppo = learner_with(SIDES)
    ppo = Ppo(replace(ppo.config, epochs=2, minibatches=4), ppo.actor, ppo.critics, ppo.generator, SIDES)
    visible = torch.ones(2 * 100, 1).bool()
    rows = torch.cat([part for part, _ in ppo._minibatches(visible, 100)])
    assert sorted(rows.tolist()) == list(range(200))
    assert 20 < (rows[:100] < 100).sum() < 80


def test_the_learning_rate_adapts_once_an_update_to_the_divergence_after_it():
    """Were it adapted before each step, the first of them, with no divergence yet, would always raise it."""
    ppo = learner(GOAL, learning_rate=1e-3, target_kl=1e-9, learning_rate_range=(1e-6, 1.0))
    report = ppo.update(rollout(ppo))
    assert report["kl"] > 1e-8
    assert ppo.learning_rate == pytest.approx(1e-3 / 1.5)
    assert ppo.actor_optimizer.param_groups[1]["lr"] == ppo.config.exploration.learning_rate


def test_the_deviation_stays_within_its_bounds():
    ppo = learner(GOAL, entropy=100.0, exploration=ExplorationConfig(std_range=(0.3, 0.52), learning_rate=0.1))
    ppo.update(rollout(ppo))
    assert torch.allclose(ppo.actor.std, torch.full((2,), 0.52))


def test_imitation_moves_the_mean_towards_the_demonstration():
    ppo = learner(GOAL, learning_rate=1e-3, clone=10.0, entropy=0.0)
    experience = rollout(ppo)
    shown = torch.full_like(experience.action, float("nan"))
    shown[::2] = 1.0
    before = (ppo.actor.act(experience.observations) - 1.0).abs().mean()
    report = ppo.update(replace(experience, demonstration=shown))
    after = (ppo.actor.act(experience.observations) - 1.0).abs().mean()
    assert after < before
    assert report["clone/share"] == pytest.approx(0.5)


def test_a_reward_that_does_not_apply_leaves_its_critic_alone():
    ppo = silent(learner(GOAL, EASE))
    experience = rollout(ppo)
    nothing = torch.full_like(experience.rewards["ease"], float("nan"))
    samples, _ = ppo.prepare(replace(experience, rewards={**experience.rewards, "ease": nothing}))
    alone, _ = silent(learner(replace(GOAL))).prepare(experience)
    assert samples.returns[:, 1].isnan().all()
    assert torch.allclose(samples.advantage, alone.advantage, atol=1e-5)


def test_critics_can_learn_alone():
    ppo = learner(GOAL, EASE)
    ppo.actor_learns = False
    before = [p.detach().clone() for p in (*ppo.actor.parameters(), *ppo.critics.parameters())]
    report = ppo.update(rollout(ppo))
    moved = [
        not torch.equal(a, b) for a, b in zip(before, (*ppo.actor.parameters(), *ppo.critics.parameters()), strict=True)
    ]
    count = len(list(ppo.actor.parameters()))
    assert not any(moved[:count])
    assert any(moved[count:])
    assert report["learning_rate"] == ppo.config.learning_rate  # no divergence says nothing about the rate
