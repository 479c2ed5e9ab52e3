"""Training that survives: exact resumption, agreement between processes, guards."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import joint_update
import pytest
import torch
from point_mass import PointMass
from torch.nn.utils import parameters_to_vector

from keystride.learner.checkpoint import checkpoints, load_tree
from keystride.learner.config import LearnerConfig, NetworkConfig, PpoConfig, RewardGroup
from keystride.learner.rollout import Rollout, collect
from keystride.learner.trainer import Specialist, Trainer, TrainingStopped, latest
from keystride.training.launch import unused_port

GROUPS = (RewardGroup("goal", 0.5, (("goal", 1.0),)), RewardGroup("ease", 0.25, (("ease", 1.0),)))
CONFIG = LearnerConfig(
    environments=16,
    horizon=8,
    keep=2,
    network=NetworkConfig(width=8, feedforward=16, mlp=(16,), critics="shared", initial_std=0.5),
    ppo=PpoConfig(groups=GROUPS, epochs=2, minibatches=2),
)


def trainer(seed: int = 0) -> Trainer:
    return Trainer(CONFIG, PointMass(16, seed=seed), 2)


def weights(made: Trainer) -> list[torch.Tensor]:
    return [*made.actor.state_dict().values(), *made.critics.state_dict().values()]


def test_resuming_continues_bit_for_bit(tmp_path):
    unbroken = trainer()
    for _ in range(3):
        unbroken.iterate()
    place = unbroken.save(tmp_path)
    resumed = trainer(seed=9)
    resumed.load(place)
    assert [unbroken.iterate() for _ in range(4)] == [resumed.iterate() for _ in range(4)]
    assert all(torch.equal(x, y) for x, y in zip(weights(unbroken), weights(resumed), strict=True))


def test_resuming_with_other_numbers_of_robots_begins_new_episodes_with_the_old_weights(tmp_path, capsys):
    first = trainer()
    first.iterate()
    place = first.save(tmp_path)
    larger = Trainer(replace(CONFIG, environments=32), PointMass(32, seed=0), 2)
    larger.load(place)
    assert all(torch.equal(x, y) for x, y in zip(weights(first), weights(larger), strict=True))
    assert larger.steps == first.steps
    assert larger.environment.curriculum() == first.environment.curriculum() == {"reached": first.steps}
    assert "start again" in capsys.readouterr().out
    report = larger.iterate()
    assert larger.steps == first.steps + 32 * CONFIG.horizon
    assert report["kl"] > 0.0
    assert not all(torch.equal(x, y) for x, y in zip(weights(first), weights(larger), strict=True))


def test_critics_learn_in_as_many_epochs_as_they_are_given():
    def learned(critic_epochs: int) -> tuple[bool, bool, bool]:
        made = Trainer(replace(CONFIG, ppo=replace(CONFIG.ppo, critic_epochs=critic_epochs)), PointMass(16, seed=0), 2)
        nets = made.actor.network, made.critics.networks
        before = [parameters_to_vector(net.parameters()).clone() for net in nets]
        report = made.iterate()
        moved = [
            not torch.equal(b, parameters_to_vector(net.parameters())) for b, net in zip(before, nets, strict=True)
        ]
        return moved[0], moved[1], "value_loss/goal" in report

    assert learned(0) == (True, False, False)
    assert learned(1) == (True, True, True)


def test_only_the_last_checkpoints_are_kept(tmp_path):
    made = trainer()
    for _ in range(4):
        made.iterate()
        made.save(tmp_path)
    assert [path.name for path in checkpoints(tmp_path)] == ["00000003", "00000004"]
    assert latest(tmp_path) == tmp_path / "00000004"


def test_a_half_written_checkpoint_is_not_a_checkpoint(tmp_path):
    made = trainer()
    made.iterate()
    made.save(tmp_path)
    (tmp_path / "00000009.part").mkdir()
    assert latest(tmp_path) == tmp_path / "00000001"
    made.iterate()
    made.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000001", "00000002"]


def iterations(made: Trainer, count: int) -> None:
    for _ in range(count):
        made.iterate()


class Poisoned(PointMass):
    def step(self, action):
        step = super().step(action)
        return replace(step, rewards={**step.rewards, "goal": step.rewards["goal"] + float("inf")})


def test_training_stops_when_nothing_is_finite_any_more():
    made = Trainer(CONFIG, Poisoned(16), 2)
    before = [tensor.clone() for tensor in made.actor.parameters()]
    with pytest.raises(TrainingStopped, match="not finite"):
        iterations(made, 20)
    assert all(torch.equal(a, b) for a, b in zip(before, made.actor.parameters(), strict=True))


def test_two_processes_equal_one_with_the_joint_batch(tmp_path):
    """Each of two processes updates on half of the environments; what they learn is what one process with all learns."""
    script = Path(joint_update.__file__)
    joint_update.main(tmp_path / "one")
    shared = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(unused_port()),
        "OMP_NUM_THREADS": "1",
    }
    pair = [
        subprocess.Popen([sys.executable, script, tmp_path / "two"], env={**shared, "RANK": str(r)}) for r in (0, 1)
    ]
    assert [process.wait(timeout=600) for process in pair] == [0, 0]
    one, two = load_tree(tmp_path / "one"), load_tree(tmp_path / "two")
    for name, values in one["learned"].items():
        assert torch.allclose(torch.as_tensor(values), torch.as_tensor(two["learned"][name]), atol=1e-4), name
    assert one["kl"] == pytest.approx(two["kl"], rel=1e-3)
    assert one["learning_rate"] == two["learning_rate"]


class Taught(PointMass):
    """Every other robot is shown to push with full force; the others are shown nothing."""

    def step(self, action):
        shown = torch.full((len(self.now), 2), torch.nan)
        shown[::2] = 1.0
        return replace(super().step(action), demonstration=shown)


def imitating(steps: int) -> Trainer:
    ppo = replace(CONFIG.ppo, imitation_steps=steps, learning_rate=3e-3)
    return Trainer(replace(CONFIG, ppo=ppo), Taught(16), 2)


def test_imitation_comes_before_reinforcement(tmp_path):
    """What is demonstrated is learned, what is not stays as it was; then the teacher is gone and goals count."""
    made = imitating(steps=16 * 8 * 40)
    first = made.iterate()
    for _ in range(39):
        last = made.iterate()
    assert first["clone/share"] == last["clone/share"] == 1.0  # the teacher shows what nobody demonstrates
    assert last["clone/miss"] < 0.6 * first["clone/miss"]
    made.iterate()
    assert made.teacher is None


def test_imitation_resumes_with_the_same_teacher(tmp_path):
    unbroken = imitating(steps=10**9)
    for _ in range(3):
        unbroken.iterate()
    resumed = imitating(steps=10**9)
    resumed.load(unbroken.save(tmp_path))
    assert [unbroken.iterate() for _ in range(3)] == [resumed.iterate() for _ in range(3)]


def test_a_specialist_is_imitated_where_it_applies():
    """It is shown to robots that are shown nothing else, on one side of the goal alone; on the other the first policy remains."""
    config = replace(CONFIG, ppo=replace(CONFIG.ppo, imitation_steps=10**9, learning_rate=3e-3))
    expert = Trainer(config, Taught(16), 2).actor
    with torch.no_grad():
        expert.network.head.bias.data += 3.0
    plain = Trainer(config, Taught(16), 2)
    led = Trainer(config, Taught(16), 2, specialist=Specialist(expert, lambda seen: seen.state[:, 0] > 0.0))
    rollouts = [made._with_teacher(collect_some(made)) for made in (plain, led)]
    seen = rollouts[0].observations
    by_nobody = torch.arange(len(seen)) % 2 == 1
    alone, with_expert = (rollout.demonstration for rollout in rollouts)
    assert alone is not None
    assert with_expert is not None
    changed = (alone != with_expert).any(dim=1)
    assert torch.equal(changed, by_nobody & (seen.state[:, 0] > 0.0))
    assert torch.allclose(with_expert[changed], expert.act(seen[changed]))


def collect_some(made: Trainer) -> Rollout:
    return collect(made.environment, made.actor, made.seen, 8, made.generator)
