"""A configuration that trains in seconds."""

from dataclasses import replace
from pathlib import Path

import pytest

from keystride.learner.config import CPU, DiscriminatorConfig
from keystride.task.config import TaskConfig
from keystride.training import EvaluationConfig, TrainingConfig

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
    return TrainingConfig(
        name="tiny",
        runs=tmp_path,
        processes=1,
        evaluation=EvaluationConfig(robots=2, control_steps=60, export=False),
        learner=LEARNER,
        task=TaskConfig(),
    )
