"""`keystride train` as a person uses it: presets, kill -9, resume, mistakes."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from keystride.commands.main import main
from keystride.commands.train import Train, train_with_preset
from keystride.learner.checkpoint import checkpoints, load_tree
from keystride.learner.config import CPU, PAPER

SMALL = [
    *(
        "--processes",
        "1",
        "--learner.environments",
        "16",
        "--learner.horizon",
        "8",
        "--learner.evaluate-steps",
        "1000000",
    ),
    *("--learner.discriminator.replay", "2000", "--learner.discriminator.batch", "32", "--learner.keep", "100"),
]


def command(runs: Path, name: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "keystride", "train", "--runs", str(runs), "--name", name, *SMALL, *more]


def final(runs: Path, name: str) -> dict:
    return load_tree(checkpoints(runs / name / "checkpoints")[-1] / "learner")


def test_killed_and_resumed_is_the_same_as_unbroken(tmp_path):
    """kill -9 in the middle, then --resume: the last checkpoint holds the same weights to the bit."""
    steps = ("--learner.steps", str(16 * 8 * 24))
    subprocess.run(command(tmp_path, "unbroken", *steps), check=True, stdout=subprocess.DEVNULL)
    often = ("--learner.checkpoint-minutes", "0.0001")
    process = subprocess.Popen(command(tmp_path, "killed", *steps, *often), stdout=subprocess.DEVNULL)
    folder = tmp_path / "killed" / "checkpoints"
    deadline = time.monotonic() + 120
    while len(checkpoints(folder)) < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed_at = int(checkpoints(folder)[-1].name)
    assert killed_at < 24
    subprocess.run(command(tmp_path, "killed", *steps, "--resume"), check=True, stdout=subprocess.DEVNULL)
    whole, mended = final(tmp_path, "unbroken"), final(tmp_path, "killed")
    assert whole["iteration"] == mended["iteration"] == 24
    for part in ("actor", "critics", "discriminator"):
        assert all((whole[part][name] == mended[part][name]).all() for name in whole[part]), part


def test_the_papers_preset_runs(tmp_path):
    few = [
        "--learner.environments",
        "4",
        "--learner.horizon",
        "8",
        "--learner.steps",
        "64",
        "--learner.evaluate-steps",
        "64",
    ]
    place = ["--runs", str(tmp_path), "--name", "paper", "--processes", "1", "--preset", "paper"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "keystride", "train", *place, *few], check=True, env=environment)
    rows = [json.loads(line) for line in (tmp_path / "paper" / "metrics.jsonl").read_text().splitlines()]
    assert [row["steps"] for row in rows] == [32, 64]
    assert (tmp_path / "paper" / "policy.onnx").stat().st_size > 1_000_000
    assert "evaluation/random/position" in rows[-1]


def test_the_paper_preset_has_the_papers_figures():
    """Its hyperparameter table."""
    ppo, network, discriminator = PAPER.ppo, PAPER.network, PAPER.discriminator
    assert (PAPER.environments, ppo.minibatches, ppo.epochs, ppo.learning_rate) == (4096, 4, 5, 1e-4)
    assert (ppo.entropy, ppo.target_kl, ppo.gamma, ppo.lam) == (0.02, 0.02, 0.99, 0.95)
    assert (discriminator.learning_rate, discriminator.updates, discriminator.batch) == (3e-4, 20, 768)
    assert (network.layers, network.heads, network.feedforward, network.mlp, network.initial_std) == (
        2,
        1,
        512,
        (512, 256),
        1.0,
    )
    assert [(g.name, g.advantage_weight) for g in ppo.groups] == [
        ("goal", 0.5),
        ("style", 0.5),
        ("regularization", 0.1),
    ]


def test_presets_are_complete_and_can_be_overridden():
    assert train_with_preset(["--preset", "paper"]).learner == PAPER
    assert train_with_preset(["--name", "x"]).learner == CPU
    assert train_with_preset(["--preset=paper"]).learner == PAPER


def test_choices_on_top_reach_the_settings():
    chosen = replace(Train(), goals="any", critic="single").resolved()
    assert chosen.task.goals == "any"
    assert len(chosen.learner.ppo.groups) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--resume", "--name", "nothing"], "holds no checkpoint"),
        (["--library", "nowhere", "--name", "x"], "nowhere"),
        (["--start-from", "nowhere", "--name", "y"], "nowhere"),
    ],
)
def test_mistakes_end_in_one_line(tmp_path, capsys, arguments, said):
    assert main(["train", "--runs", str(tmp_path), "--processes", "1", "--learner.environments", "8", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
