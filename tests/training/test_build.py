"""Task and learner put together."""

from dataclasses import replace

import pytest

from keystride.motion.library import Library
from keystride.training import TrainingConfig
from keystride.training.build import evaluated_kinds, fixed_evaluation, load_library, make_trainer, network_sizes
from keystride.training.settings import overridden


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
    assert sizes["groups"] == ["goal", "style", "regularization", "tracking", "stillness"]


def test_an_evaluation_repeats_its_episodes_and_depends_on_the_policy(tiny: TrainingConfig, library: Library) -> None:
    actor = make_trainer(tiny, library).averaged
    evaluation = replace(tiny.evaluation, robots=4, control_steps=60)
    once = fixed_evaluation(actor, library, tiny.task, evaluation)
    assert fixed_evaluation(actor, library, tiny.task, evaluation) == once
    actor.network.head.bias.data += 0.5
    assert fixed_evaluation(actor, library, tiny.task, evaluation) != once
    assert "dataset/position" in once
