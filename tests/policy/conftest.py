"""One tiny run with random weights, exported once for all tests of the room."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from keystride.learner.config import CPU, DiscriminatorConfig, NetworkConfig
from keystride.learner.trainer import Trainer
from keystride.motion.clip import make_clip
from keystride.motion.library import Library
from keystride.policy.export import Trained, load_trained
from keystride.policy.packing import pack
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height
from keystride.task.config import KeyframeRanges, TaskConfig
from keystride.training.build import make_trainer
from keystride.training.config import EvaluationConfig, TrainingConfig, resolved_stages, write_config
from keystride.training.run_folder import RunFolder

NETWORK = NetworkConfig(width=16, heads=2, feedforward=32, mlp=(32, 16), state_to_mlp=True, critics="shared")
LEARNER = replace(CPU, environments=4, network=NETWORK, discriminator=DiscriminatorConfig(hidden=(8,), replay=64))
TASK = TaskConfig(goals="any", reference_start=0.0, ranges=KeyframeRanges(interval_steps=(10, 12), count=(5, 5)))


@pytest.fixture(scope="session")
def library() -> Library:
    """A robot that stands for four seconds."""
    frames = 200
    position = np.tile([0.0, 0.0, float(standing_height(GO2, GO2.stance))], (frames, 1))
    orientation = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
    return Library(GO2, [make_clip("stand", GO2, position, orientation, np.tile(GO2.stance, (frames, 1)))])


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> TrainingConfig:
    evaluation = EvaluationConfig(robots=2, control_steps=20, export=False)
    runs = tmp_path_factory.mktemp("runs")
    return TrainingConfig(name="tiny", runs=runs, evaluation=evaluation, learner=LEARNER, task=TASK)


@pytest.fixture(scope="session")
def trainer(config: TrainingConfig, library: Library) -> Trainer:
    """With weights, normalisers and returns that are far from those at the start."""
    trainer = make_trainer(config, library)
    generator = torch.Generator().manual_seed(3)

    def drawn(values: torch.Tensor) -> torch.Tensor:
        return torch.rand(values.shape, generator=generator).to(values.dtype)

    with torch.no_grad():
        for module in (trainer.actor, trainer.critics):
            for parameter in module.parameters():
                parameter.add_(drawn(parameter) - 0.5, alpha=0.6)
        for normalizer in (trainer.actor.normalizer, trainer.critics.returns):
            normalizer.mean += drawn(normalizer.mean) - 0.5
            normalizer.variance += drawn(normalizer.variance)
    trainer.steps, trainer.iteration = 123_456, 7
    return trainer


@pytest.fixture(scope="session")
def run_folder(config: TrainingConfig, trainer: Trainer, library: Library) -> Path:
    write_config(config, config.folder)
    run = RunFolder(config)
    run.begin(trainer, resolved_stages(config)[0], library)
    run.note({"reward/goal": 0.5})
    run.save()
    run.close()
    return run.folder


@pytest.fixture(scope="session")
def trained(run_folder: Path) -> Trained:
    return load_trained(run_folder, GO2)


@pytest.fixture(scope="session")
def bundle(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "tiny"
    pack(run_folder, folder, robot=GO2)
    return folder


@pytest.fixture(scope="session")
def policy(bundle: Path) -> Policy:
    return Policy.load(bundle, robot=GO2)
