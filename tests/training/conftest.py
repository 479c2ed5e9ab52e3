"""A configuration that trains in seconds."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from keystride.learner.config import CPU, DiscriminatorConfig
from keystride.task.config import TaskConfig
from keystride.training import EvaluationConfig, TrainingConfig, train

NETWORK = replace(CPU.network, width=16, feedforward=16, mlp=(16,))
LEARNER = replace(
    CPU,
    environments=8,
    horizon=4,
    steps=8 * 4 * 6,
    evaluate_steps=8 * 4 * 3,
    keep=100,
    network=NETWORK,
    discriminator=DiscriminatorConfig(hidden=(8,), updates=1, batch=16, replay=256),
)


@pytest.fixture
def tiny(tmp_path: Path) -> TrainingConfig:
    """Six iterations of 8 robots in one process, evaluated at the start, in the middle and at the end."""
    return tiny_run(tmp_path)


def tiny_run(runs: Path) -> TrainingConfig:
    return TrainingConfig(
        name="tiny",
        runs=runs,
        processes=1,
        evaluation=EvaluationConfig(robots=2, control_steps=30, export=False),
        learner=LEARNER,
        task=TaskConfig(),
    )


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainingConfig:
    """The tiny run, finished. Copy its folder before changing it."""
    config = tiny_run(tmp_path_factory.mktemp("runs"))
    train(config)
    return config


@pytest.fixture
def finished(trained: TrainingConfig, tiny: TrainingConfig) -> TrainingConfig:
    """A copy of the finished tiny run, moved to another folder of runs."""
    shutil.copytree(trained.folder, tiny.folder)
    return tiny
