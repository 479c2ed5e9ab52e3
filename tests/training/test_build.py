"""Task and learner put together."""

from dataclasses import replace

import pytest
import torch

from keystride.learner.networks import Observations
from keystride.motion.library import Library
from keystride.training import TrainingConfig
from keystride.training.build import (
    evaluated_kinds,
    fixed_evaluation,
    load_library,
    make_trainer,
    network_sizes,
    positions_ahead,
)
from keystride.training.config import overridden


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(TrainingConfig())


def test_only_kinds_that_training_draws_are_evaluated(tiny: TrainingConfig) -> None:
    assert evaluated_kinds(tiny.task) == ("dataset", "random")
    drawn = overridden(tiny.task, {"ranges": {"leap_share": 0.1, "everyday_share": 0.2}})
    assert evaluated_kinds(drawn) == ("dataset", "random", "leap", "everyday")


def test_network_sizes_are_those_of_the_trainer(tiny: TrainingConfig, library: Library) -> None:
    sizes, trainer = network_sizes(tiny), make_trainer(tiny, library)
    for part, network in (("actor", trainer.actor), ("critics", trainer.critics)):
        for name, values in network.state_dict().items():
            assert sizes[f"{part}.{name}"] == tuple(values.shape)
    assert sizes["groups"] == ["goal", "style", "regularization", "tracking", "stillness", "pace"]


def test_an_evaluation_repeats_its_episodes_and_depends_on_the_policy(tiny: TrainingConfig, library: Library) -> None:
    actor = make_trainer(tiny, library).averaged
    evaluation = replace(tiny.evaluation, robots=4, control_steps=60)
    once = fixed_evaluation(actor, library, tiny.task, evaluation)
    assert fixed_evaluation(actor, library, tiny.task, evaluation) == once
    actor.network.head.bias.data += 0.5
    assert fixed_evaluation(actor, library, tiny.task, evaluation) != once
    assert "dataset/position" in once


def test_the_position_teacher_is_asked_about_positions_ahead_alone() -> None:
    """Columns 0 and 1 hold the place, 18 the time left, 19 whether there is a position, 20 to 23 the other components."""
    goals = torch.zeros(6, 2, 24)
    goals[:, 0, [0, 18, 19]] = torch.tensor([0.8, 0.5, 1.0])  # ahead, in half a second
    goals[:, 1] = torch.nan  # hidden
    goals[1, 0, 0] = -0.8  # behind
    goals[2, 0, 22] = 1.0  # with a yaw
    goals[3, 0, 18] = 2.0  # later than it was trained for
    goals[4, 0, 18] = -0.1  # past
    goals[5, 0, :2] = torch.tensor([-0.1, 0.1])  # behind, but close
    seen = Observations(torch.zeros(6, 46), goals, torch.tensor([[True, False]] * 6))
    assert positions_ahead(seen).tolist() == [True, False, False, False, False, True]


def test_a_run_asks_its_position_teacher_while_it_imitates(tiny: TrainingConfig, library: Library) -> None:
    taught = overridden(tiny, {"position_teacher": "go2-position", "learner": {"ppo": {"imitation_steps": 1000}}})
    assert make_trainer(taught, library).specialist is not None
    assert make_trainer(replace(taught, learner=tiny.learner), library).specialist is None
