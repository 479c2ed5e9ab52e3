"""The style discriminator."""

import pytest
import torch

from keystride.learner.config import DiscriminatorConfig
from keystride.learner.discriminator import Discriminator, Replay, discriminator_loss, style_reward


def made(size: int = 4) -> Discriminator:
    torch.manual_seed(0)
    return Discriminator(DiscriminatorConfig(hidden=(32, 16)), torch.zeros(size), torch.ones(size))


def test_it_separates_two_known_sets():
    discriminator, generator = made(), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(discriminator.parameters(), lr=3e-3)
    for _ in range(200):
        real, fake = torch.randn(128, 4, generator=generator) + 1.0, torch.randn(128, 4, generator=generator) - 1.0
        loss, report = discriminator_loss(discriminator, real, fake, gradient_penalty=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert report["discriminator/real_right"] > 0.95
    assert report["discriminator/policy_right"] > 0.95
    assert style_reward(discriminator(torch.ones(1, 4))) > style_reward(discriminator(-torch.ones(1, 4)))


def test_a_blurred_discriminator_overlooks_small_noise_but_not_another_motion():
    """Real features are zero, the policy's shake by a tenth of their deviation; in one column the policy is off by a whole one."""

    def reward(blur: float, offset: float) -> float:
        discriminator, generator = made(), torch.Generator().manual_seed(0)
        optimizer = torch.optim.Adam(discriminator.parameters(), lr=3e-3)
        for _ in range(400):
            shaken = 0.1 * torch.randn(256, 4, generator=generator)
            shaken[:, 0] += offset
            loss, _ = discriminator_loss(discriminator, torch.zeros(256, 4), shaken, 0.01, blur, generator)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            return style_reward(discriminator(shaken)).mean().item()

    assert reward(blur=0.0, offset=0.0) < 0.5
    assert reward(blur=0.5, offset=0.0) > 0.7
    assert reward(blur=0.5, offset=1.0) < 0.4


def test_the_reward_by_hand():
    score = torch.tensor([1.0, -1.0, 0.0, 2.0, 5.0])
    assert style_reward(score).tolist() == pytest.approx([1.0, 0.0, 0.75, 0.75, 0.0])


def test_the_reward_lies_between_zero_and_one():
    reward = style_reward(torch.linspace(-100, 100, 1001))
    assert 0.0 <= reward.min() <= reward.max() <= 1.0


def test_the_penalty_is_the_squared_slope_on_real_data():
    discriminator = made(2)
    with torch.no_grad():
        for layer in discriminator.mlp:
            layer.get_parameter("weight").zero_()
            layer.get_parameter("bias").fill_(1.0)
    _, report = discriminator_loss(discriminator, torch.randn(8, 2), torch.randn(8, 2), 1.0)
    assert report["discriminator/penalty"] == pytest.approx(0.0)


def test_replay_keeps_the_latest():
    replay = Replay(4, 1)
    replay.add(torch.arange(3.0)[:, None])
    assert replay.filled == 3
    replay.add(torch.tensor([[3.0], [4.0]]))
    assert sorted(replay.rows[:, 0].tolist()) == [1.0, 2.0, 3.0, 4.0]
    drawn = replay.draw(100, torch.Generator().manual_seed(0))
    assert set(drawn[:, 0].tolist()) == {1.0, 2.0, 3.0, 4.0}
