"""Laws of the sequence-to-token networks."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
import torch

from keystride.keyframes.goals import empty_goals, goal_observation
from keystride.learner.checkpoint import load_module, widen
from keystride.learner.config import CPU, PAPER, NetworkConfig
from keystride.learner.networks import (
    Actor,
    Critics,
    Normalizer,
    Observations,
    PostureServo,
    SequenceNetwork,
    by_length,
    packed,
    unsorted_chunks,
    upcoming,
    urgency,
)

CONFIGS = {
    "cpu": CPU.network,
    "paper": replace(PAPER.network, feedforward=64, mlp=(32, 16)),
    "servo": replace(CPU.network, servo_column=6),
    "heads": NetworkConfig(width=16, heads=4, feedforward=32, mlp=(32,)),
}


def test_the_keyframe_due_next_is_found_by_its_time():
    """Columns: a name, the time left. The soonest that is not past; else the one just past; else nothing."""
    goals = torch.tensor([[[1.0, -0.4], [2.0, 0.7], [3.0, 0.2]], [[1.0, -0.4], [2.0, -0.1], [3.0, -0.9]]])
    assert upcoming(goals, 1)[:, 0].tolist() == [3.0, 2.0]
    hidden = torch.tensor([[True, True, False], [False, False, False]])
    assert upcoming(goals, 1, hidden)[:, 0].tolist() == [2.0, 0.0]
    assert upcoming(goals[:, :0], 1).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_preset_knows_the_column_that_holds_the_time():
    goals = empty_goals(1, 2)
    seen = goal_observation(
        goals, np.array([[0.5, 1.5]]), np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), np.zeros((1, 12))
    )
    assert seen[0, :, CPU.network.next_goal_time_column].tolist() == [0.5, 1.5]


def samples(count: int = 64, slots: int = 5) -> Observations:
    generator = torch.Generator().manual_seed(1)
    visible = torch.rand(count, slots, generator=generator) < 0.5
    return Observations(
        torch.randn(count, 46, generator=generator), torch.randn(count, slots, 24, generator=generator), visible
    )


@pytest.fixture(params=CONFIGS)
def actor(request) -> Actor:
    torch.manual_seed(0)
    made = Actor(CONFIGS[request.param], 46, 24, 12)
    torch.nn.init.normal_(made.network.head.weight)  # an untrained head is nearly zero and would hide everything
    made.normalizer.update(torch.tensor(100.0).double(), torch.randn(46), torch.rand(46) + 0.5)
    return made.eval()


@torch.no_grad()
def test_packed_and_padded_agree(actor):
    seen = samples()
    padded = actor.forward_padded(seen.state, seen.goals, seen.visible)
    assert torch.allclose(actor.act(packed(seen)), padded, atol=1e-5)


@torch.no_grad()
def test_garbage_in_masked_tokens_changes_nothing(actor):
    seen = samples()
    garbage = torch.where(seen.visible[..., None], seen.goals, torch.full_like(seen.goals, float("nan")))
    dirty = Observations(seen.state, garbage, seen.visible)
    assert torch.equal(actor.act(packed(seen)), actor.act(packed(dirty)))
    assert torch.equal(
        actor.forward_padded(seen.state, seen.goals, seen.visible),
        actor.forward_padded(seen.state, garbage, seen.visible),
    )


@torch.no_grad()
def test_the_order_of_keyframes_changes_nothing(actor):
    seen = samples()
    order = torch.tensor([3, 1, 4, 0, 2])
    shuffled = Observations(seen.state, seen.goals[:, order], seen.visible[:, order])
    assert torch.allclose(actor.act(packed(seen)), actor.act(packed(shuffled)), atol=1e-5)


@torch.no_grad()
def test_without_any_keyframe_the_self_goal_remains(actor):
    seen = samples()
    blind = Observations(seen.state, seen.goals, torch.zeros_like(seen.visible))
    assert torch.isfinite(actor.act(packed(blind))).all()
    assert not torch.allclose(actor.act(packed(blind)), actor.act(packed(seen)))


def test_packing_puts_visible_keyframes_first_and_loses_none():
    seen = samples()
    dense = packed(seen)
    counts = seen.visible.sum(dim=1)
    assert torch.equal(dense.visible, torch.arange(5) < counts[:, None])
    for row in range(8):
        assert torch.equal(dense.goals[row, : counts[row]], seen.goals[row][seen.visible[row]])


@pytest.mark.parametrize("critics", ["separate", "shared"])
def test_one_value_a_group(critics):
    seen = packed(samples())
    made = Critics(replace(CPU.network, critics=critics), 46, 24, 3)
    assert by_length(made, seen).shape == (64, 3)


def test_pieces_of_one_length_cover_every_sample_once():
    seen = samples(300)
    pieces = list(unsorted_chunks(seen.visible, tokens=32))
    assert sorted(torch.cat([rows for rows, _ in pieces]).tolist()) == list(range(300))
    for rows, count in pieces:
        assert len(rows) * (count + 1) <= 32
        assert (seen.visible[rows].sum(dim=1) == count).all()


def test_the_papers_sizes():
    made = Actor(PAPER.network, 46, 24, 12)
    assert made.network.encoder.width == 70
    assert [len(layer.get_parameter("expand.weight")) for layer in made.network.encoder.layers] == [512, 512]
    assert [len(layer.get_parameter("weight")) for layer in made.network.mlp] == [512, 256]
    assert torch.allclose(made.std, torch.ones(12))


def test_a_deviation_at_its_bound_comes_back_as_fast_as_it_left():
    """The parameter itself is bounded: it cannot drift where its gradient has no effect any more."""
    made = Actor(CPU.network, 46, 24, 12)
    with torch.no_grad():
        made.log_std.fill_(-100.0)
    made.clamp_std(0.2, 0.6)
    assert torch.allclose(made.std, torch.full((12,), 0.2))
    made.std.sum().backward()
    assert made.log_std.grad is not None
    assert (made.log_std.grad > 0.1).all()


def test_running_moments_are_those_of_all_batches_together():
    torch.manual_seed(0)
    batches = [torch.randn(n, 3) * 2 + 1 for n in (10, 500, 3)]
    made = Normalizer(3)
    for batch in batches:
        made.update(torch.tensor(float(len(batch))).double(), batch.mean(0), batch.var(0, unbiased=False))
    everything = torch.cat(batches)
    assert torch.allclose(made.mean, everything.mean(0), atol=1e-5)
    assert torch.allclose(made.variance, everything.var(0, unbiased=False), atol=1e-4)


def test_columns_that_a_batch_says_nothing_about_stay_as_they_are():
    made = Normalizer(2)
    made.update(torch.tensor([10.0, 10.0]).double(), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    made.update(torch.tensor([10.0, 0.0]).double(), torch.tensor([3.0, 99.0]), torch.tensor([3.0, 99.0]))
    assert made.mean.tolist() == [2.0, 2.0]
    assert made.variance[1] == 4.0


def test_urgency_rises_to_one_when_due_and_turns_negative_afterwards():
    goals = torch.tensor([[1.0, 0.1], [1.0, 0.0], [1.0, -0.1], [0.0, 0.0]])  # ahead, due, past, none
    seen = urgency(goals, 1, torch.tensor([0.1, 0.2]))
    assert torch.allclose(seen[:, 0], torch.tensor([exp(-1.0), 1.0, -exp(-1.0), 0.0]))
    assert torch.allclose(seen[:, 1], torch.tensor([exp(-0.5), 1.0, -exp(-0.5), 0.0]))


def test_time_scales_act_alike_with_and_without_padding():
    config = replace(CPU.network, time_scales=(0.05, 0.2))
    torch.manual_seed(0)
    network = SequenceNetwork(config, 46, 24, 3)
    state, goals, visible = torch.randn(4, 46), torch.randn(4, 2, 24), torch.ones(4, 2, dtype=torch.bool)
    padded = network.forward_padded(state, goals, visible)
    assert torch.allclose(network(state, goals), padded, atol=1e-5)
    plain = SequenceNetwork(CPU.network, 46, 24, 3)
    load_module(network, widen(plain.state_dict(), network.state_dict()))
    assert torch.allclose(network(state, goals), plain(state, goals), atol=1e-5)  # new inputs begin without effect


def test_the_servo_pulls_by_the_error_as_the_keyframe_comes_near_and_no_longer_once_it_is_due():
    """Columns: an error for each of two actions, the time left. The soonest keyframe counts."""
    servo = PostureServo(time=2, column=0, actions=2, gain=3.0)
    ahead, far, due, past = [0.1, -0.2, 0.06], [9.0, 9.0, 0.9], [0.1, -0.2, 0.0], [0.1, -0.2, -0.02]
    pull = servo(torch.tensor([[far, ahead], [far, far], [due, far], [past, past]]))
    nearness = exp(-((0.06 / 0.09) ** 2))
    assert torch.allclose(pull[0], 3.0 * nearness * torch.tensor([0.1, -0.2]))
    assert pull[1].abs().max() < 1e-6
    assert pull[2:].tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("change", [{"next_goal_time_column": None}, {"servo_column": 13}])
def test_a_servo_without_its_columns_is_refused(change):
    with pytest.raises(ValueError, match="servo_column"):
        Actor(replace(CPU.network, **{"servo_column": 6, **change}), 46, 24, 12)


def test_the_servo_begins_at_the_joint_errors_of_the_token():
    joints = np.linspace(0.1, 1.2, 12)
    goals = empty_goals(1, 1)
    goals.presence[0, 0, 4] = True
    goals.posture[0, 0] = joints
    seen = goal_observation(goals, np.array([[0.02]]), np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), np.zeros((1, 12)))
    assert np.allclose(seen[0, 0, 6:18], joints)
