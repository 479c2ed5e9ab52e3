from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from keystride.errors import UserError
from keystride.learner.trainer import Trainer
from keystride.motion.library import Library
from keystride.policy.bundle import POLICY_FILE, WEIGHTS, PolicyError, run_checkpoint
from keystride.policy.loading import Weights, fingerprint, load_weights, save_weights
from keystride.training.build import make_trainer
from keystride.training.config import TrainingConfig, resolved_stages, write_config
from keystride.training.run_folder import RunFolder


def test_run_checkpoint_and_bundle_hold_the_same_weights(run_folder: Path, bundle: Path) -> None:
    checkpoint = run_checkpoint(run_folder)
    assert checkpoint is not None
    trees = [load_weights(place).tree() for place in (run_folder, checkpoint, bundle)]
    for tree in trees[1:]:
        assert tree.keys() == trees[0].keys() == {"actor", "critics", "discriminator"}
        assert all(fingerprint(tree[part]) == fingerprint(trees[0][part]) for part in tree)


def begin(config: TrainingConfig, library: Library, start_from: Path, runs: Path) -> Trainer:
    config = replace(config, start_from=start_from, runs=runs)
    write_config(config, config.folder)
    trainer = make_trainer(config, library)
    run = RunFolder(config)
    run.begin(trainer, resolved_stages(config)[0], library)
    run.close()
    return trainer


def test_training_starts_from_a_bundle(
    bundle: Path, trainer: Trainer, config: TrainingConfig, library: Library, tmp_path: Path
) -> None:
    fresh = begin(config, library, bundle, tmp_path)
    for network in ("actor", "critics", "discriminator"):
        old, new = (getattr(made, network).state_dict() for made in (trainer, fresh))
        assert all(torch.equal(old[name], new[name]) for name in new if name != "log_std")
    low, high = config.learner.ppo.exploration.std_range
    initial = min(max(config.learner.network.initial_std, low), high)
    assert torch.allclose(fresh.actor.std, torch.tensor(initial))  # how far a new run explores is its own affair
    assert fresh.steps == 0


def test_a_policy_without_a_servo_may_start_a_run_that_has_one(
    bundle: Path, trainer: Trainer, config: TrainingConfig, library: Library, tmp_path: Path
) -> None:
    network = replace(config.learner.network, next_goal_time_column=18, servo_column=6, servo_gain=1.5)
    fresh = begin(replace(config, learner=replace(config.learner, network=network)), library, bundle, tmp_path)
    for actor in (fresh.actor, fresh.averaged):
        assert actor.servo is not None
        assert torch.equal(actor.servo.gain, torch.full((12,), 1.5))
        assert torch.equal(actor.network.head.weight, trainer.actor.network.head.weight)


def test_a_bundle_of_other_sizes_is_no_start(
    bundle: Path, config: TrainingConfig, library: Library, tmp_path: Path
) -> None:
    narrower = replace(config.learner, network=replace(config.learner.network, width=8))
    with pytest.raises(UserError, match="do not have the sizes of this run's"):
        begin(replace(config, learner=narrower), library, bundle, tmp_path)


def test_weights_come_back_from_their_file(tmp_path: Path) -> None:
    weights = Weights({"a.b": np.arange(6.0).reshape(2, 3)}, {"c": np.array([1, 2], dtype=np.float32)}, {})
    (tmp_path / POLICY_FILE).touch()
    save_weights(weights, tmp_path / WEIGHTS)
    back = load_weights(tmp_path)
    np.testing.assert_array_equal(back.actor["a.b"], weights.actor["a.b"])
    assert back.critics["c"].dtype == np.float32
    assert back.tree().keys() == {"actor", "critics"}


def test_a_fingerprint_knows_values_names_shapes_and_no_order() -> None:
    a, b = np.arange(4.0), np.ones(2)
    same = fingerprint({"a": a, "b": b})
    assert fingerprint({"b": b, "a": a}) == same
    others = [{"a": a + 1e-12, "b": b}, {"a": a, "c": b}, {"a": a.reshape(2, 2), "b": b}, {"a": a}]
    assert same not in map(fingerprint, others)


def test_what_holds_no_weights_is_refused(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="an ONNX file has no weights"):
        load_weights(bundle / POLICY_FILE)
    (tmp_path / POLICY_FILE).touch()
    (tmp_path / WEIGHTS).write_bytes(b"\xff" * 100)
    with pytest.raises(PolicyError, match="not a safetensors file"):
        load_weights(tmp_path)
    save_weights(Weights({"a": np.ones(2)}, {}, {}), tmp_path / WEIGHTS)
    with pytest.raises(PolicyError, match="lacks the actor's or the critics'"):
        load_weights(tmp_path)
