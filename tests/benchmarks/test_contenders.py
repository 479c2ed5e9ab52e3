"""The contenders compute the same function, and operations are counted by hand."""

import pytest
import torch

from keystride.benchmarks.contenders import SLOTS, learner, operations, ours, samples, straightforward
from keystride.benchmarks.learner import LARGEST_GAP


@pytest.mark.parametrize("preset", ["cpu", "paper"])
def test_the_straightforward_network_has_the_same_outputs(preset: str) -> None:
    rate, gap = straightforward(preset, count=24, rounds=1)
    assert gap < LARGEST_GAP
    assert rate > 0


def test_our_update_takes_a_gradient_step() -> None:
    assert ours("cpu", count=24, rounds=1) > 0


def test_samples_have_every_number_of_keyframes_equally_often() -> None:
    batch = samples(6000, groups=3)
    counts = torch.bincount(batch.observations.visible.sum(dim=1), minlength=SLOTS + 1)
    assert counts.float().div(6000).tolist() == pytest.approx([1 / 6] * 6, abs=0.02)
    assert batch.returns.shape == (6000, 3)


def test_operations_of_a_sample() -> None:
    """Two for each weight of a matrix, forward once and backward twice; 3.5 tokens on average pass through the encoder."""
    ppo = learner("cpu")
    assert len(ppo.critics.networks) == 1
    total = 0.0
    for outputs in (12, len(ppo.config.groups)):
        width, token, state, goal = 32, 46 + 24, 46, 24
        encoder = token * width + 2 * (width * 3 * width + width * width + 2 * width * 128)
        mlp = (width + state + goal) * 256 + 256 * 128 + 128 * outputs
        total += 3.5 * encoder + mlp
    assert operations("cpu") == pytest.approx(6 * total)
