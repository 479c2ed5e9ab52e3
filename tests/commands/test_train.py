"""The commands about training runs: train, curves and export."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from keystride.commands.main import main
from keystride.commands.train import Train
from keystride.errors import UserError
from keystride.learner.checkpoint import checkpoints, load_tree
from keystride.learner.config import CPU, PAPER
from keystride.training.config import TrainingConfig, parse_training, read_config

QUICK = Path(__file__).parents[2] / "recipes" / "quick.yaml"
TINY = """
name: tiny
evaluation: {robots: 2, control_steps: 20, export: false}
learner:
  environments: 8
  horizon: 4
  steps: 640
  keep: 100
  checkpoint_minutes: 0
  discriminator: {batch: 16, replay: 256, updates: 1}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path / "tiny.yaml"


def parsed(*arguments: str) -> TrainingConfig:
    return parse_training(Train, arguments, "keystride train").settings


def start(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "keystride", "train", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_checkpoints(folder: Path, count: int, process: "subprocess.Popen[str]") -> None:
    while len(checkpoints(folder)) < count and process.poll() is None:
        time.sleep(0.01)


def children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


def gone(process: int) -> bool:
    """Wait for a process to end; ten minutes are enough on the busiest machine."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_print_config_reports_impossible_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--print-config", "--learner.ppo.clip", "0"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "error: learner.ppo.clip must be above 0, not 0.0\n"


def test_curves_need_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curves"]) == 2
    assert "no run given; usage: keystride curves RUN..." in capsys.readouterr().err


def test_presets_files_and_arguments_go_on_top_of_one_another(recipe: Path) -> None:
    assert parsed().learner == CPU
    assert parsed("--preset", "paper").learner == PAPER
    assert parsed("--preset=paper", "--learner.horizon", "12").learner == replace(PAPER, horizon=12)
    config = parsed("--config", str(recipe), "--learner.horizon", "6", "--task.goals", "any", "--no-authored")
    assert (config.name, config.learner.environments, config.learner.horizon) == ("tiny", 8, 6)
    assert (config.task.goals, config.authored) == ("any", False)
    assert parsed("--config", str(recipe), "--preset", "paper").learner.network == PAPER.network


def test_a_flag_of_the_file_can_be_turned_off(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("task: {end_at_joint_limits: true}")
    assert parsed("--config", str(tmp_path / "a.yaml")).task.end_at_joint_limits
    assert not parsed("--config", str(tmp_path / "a.yaml"), "--task.no-end-at-joint-limits").task.end_at_joint_limits


def test_printed_settings_are_a_configuration_file(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert (
        main(["train", "--config", str(recipe), "--learner.ppo.groups.0.advantage-weight", "2", "--print-config"]) == 0
    )
    (tmp_path / "printed.yaml").write_text(capsys.readouterr().out)
    expected = parsed("--config", str(recipe), "--learner.ppo.groups.0.advantage-weight", "2")
    assert read_config(tmp_path / "printed.yaml") == expected
    assert expected.learner.ppo.groups[0].advantage_weight == 2.0


def test_no_argument_is_silently_overwritten_by_a_stage() -> None:
    with pytest.raises(UserError, match=r"task\.goals is set by stage 'poses'; change it there"):
        parsed("--config", str(QUICK), "--task.goals", "pose")
    assert parsed("--config", str(QUICK), "--learner.horizon", "8").learner.horizon == 8


def test_every_setting_has_help(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = capsys.readouterr().out
    lines = [line.strip("│ ") for line in text.splitlines()]
    flags = [i for i, line in enumerate(lines) if line.startswith(("-", "--"))]
    assert len(flags) > 60
    bare = [lines[i] for i in flags if lines[i + 1].startswith("(default")]
    assert bare == []
    assert "--authored, --no-authored" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--resume", "--name", "nothing"], "contains no run to resume"),
        (["--library", "nowhere"], "nowhere"),
        (["--start-from", "nowhere"], "nowhere"),
        (["--learner.ppo.minibatches", "0"], "learner.ppo.minibatches must be at least 1"),
        (["--learner.horizon", "-1"], "learner.horizon must be at least 1"),
        (["--learner.environments", "8", "--processes", "3"], "8 robots cannot be divided evenly among 3 processes"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: No such file"),
    ],
)
def test_mistakes_end_in_one_line_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture, arguments: list[str], complaint: str
) -> None:
    assert main(["train", "--runs", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_killed_and_resumed_is_the_same_as_unbroken(tmp_path: Path) -> None:
    """kill -9 in the second stage, then --resume: the last checkpoint holds the same weights to the bit."""
    arguments = ("--config", str(QUICK), "--runs", str(tmp_path), "--processes", "1", "--learner.keep", "100")
    arguments += ("--evaluation.robots", "2", "--evaluation.control-steps", "40")
    arguments += ("--learner.environments", "128", "--learner.horizon", "4")
    often = ("--learner.checkpoint-minutes", "0.0001")
    whole = start(*arguments, "--name", "unbroken")
    broken = start(*arguments, *often, "--name", "killed")
    folder = tmp_path / "killed" / "checkpoints"
    wait_for_checkpoints(folder, 18, broken)
    broken.kill()
    broken.wait()
    assert 16 < int(checkpoints(folder)[-1].name) < 32
    resumed = start("--runs", str(tmp_path), "--name", "killed", "--resume")
    for process in (whole, resumed):
        output, error = process.communicate()
        assert process.returncode == 0, error
        assert "finished at 16,384 control steps" in output
    one, other = (
        load_tree(checkpoints(tmp_path / name / "checkpoints")[-1] / "learner") for name in ("unbroken", "killed")
    )
    assert one["settings"]["task"]["goals"] == other["settings"]["task"]["goals"] == "any"
    for part in ("actor", "critics", "discriminator"):
        assert all((one[part][name] == other[part][name]).all() for name in one[part]), part


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops_all_processes(recipe: Path, tmp_path: Path, number: signal.Signals) -> None:
    forever = ("--config", str(recipe), "--runs", str(tmp_path), "--processes", "2", "--learner.steps", "10000000")
    process = start(*forever, "--learner.checkpoint-minutes", "100")
    metrics = tmp_path / "tiny" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") > 2) and process.poll() is None:
        time.sleep(0.02)
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(number)
    output, error = process.communicate()
    assert process.returncode == 128 + number, error
    steps = load_tree(checkpoints(tmp_path / "tiny" / "checkpoints")[-1] / "learner")["steps"]
    expected = (
        f"stopped and saved at {steps:,} control steps; continue with `keystride train --runs {tmp_path} --name tiny"
    )
    assert output.splitlines()[-1].startswith(expected)
    assert error == ""
    assert all(gone(worker) for worker in workers)


def test_a_killed_worker_ends_the_run_with_one_message(recipe: Path, tmp_path: Path) -> None:
    process = start("--config", str(recipe), "--runs", str(tmp_path), "--processes", "2", "--learner.steps", "10000000")
    wait_for_checkpoints(tmp_path / "tiny" / "checkpoints", 2, process)
    workers = children(process.pid)
    os.kill(workers[1], signal.SIGKILL)
    output, error = process.communicate()
    assert process.returncode == 2
    assert error.startswith("error: training process 1 was killed by SIGKILL")
    assert "Traceback" not in output + error
    assert all(gone(worker) for worker in workers)


def test_workers_save_and_end_when_their_parent_is_killed(recipe: Path, tmp_path: Path) -> None:
    process = start("--config", str(recipe), "--runs", str(tmp_path), "--processes", "2", "--learner.steps", "10000000")
    wait_for_checkpoints(tmp_path / "tiny" / "checkpoints", 2, process)
    workers = children(process.pid)
    process.kill()
    process.wait()
    assert len(workers) == 2
    assert all(gone(worker) for worker in workers)


def test_the_papers_preset_runs(tmp_path: Path) -> None:
    settings = {
        "name": "paper",
        "runs": str(tmp_path),
        "processes": 1,
        "evaluation": {"robots": 2, "control_steps": 60},
        "learner": {"environments": 4, "horizon": 8, "steps": 64, "evaluate_steps": 64},
    }
    (tmp_path / "paper.yaml").write_text(yaml.safe_dump(settings))
    process = start("--config", str(tmp_path / "paper.yaml"), "--preset", "paper")
    _, error = process.communicate()
    assert process.returncode == 0, error
    assert (tmp_path / "paper" / "policy.onnx").stat().st_size > 1_000_000


def test_the_paper_preset_has_the_papers_figures() -> None:
    """Its hyperparameter table."""
    ppo, network, discriminator = PAPER.ppo, PAPER.network, PAPER.discriminator
    assert (PAPER.environments, ppo.minibatches, ppo.epochs, ppo.learning_rate) == (4096, 4, 5, 1e-4)
    assert (ppo.entropy, ppo.target_kl, ppo.gamma, ppo.lam) == (0.02, 0.02, 0.99, 0.95)
    assert (discriminator.learning_rate, discriminator.updates, discriminator.batch) == (3e-4, 20, 768)
    sizes = network.layers, network.heads, network.feedforward, network.mlp, network.initial_std
    assert sizes == (2, 1, 512, (512, 256), 1.0)
    weights = [(group.name, group.advantage_weight) for group in ppo.groups]
    assert weights == [("goal", 0.5), ("style", 0.5), ("regularization", 0.1)]


def _run(folder: Path, errors: list[float]) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("{}")
    (folder / "best").mkdir()
    (folder / "best" / "learner.safetensors").write_bytes(b"")
    rows = [
        {
            "steps": 1_000_000 * (i + 1),
            "seconds": 60.0 * (i + 1),
            "reward/style": 0.1 * i,
            "evaluation/dataset/position": error,
            "evaluation/random/position": 2 * error,
            "evaluation/dataset/survival": 1.0,
            "evaluation/random/survival": 0.5,
        }
        for i, error in enumerate(errors)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_runs_are_told_and_drawn_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = _run(tmp_path / "one", [0.5, 0.25]), _run(tmp_path / "two", [0.75])
    assert main(["curves", str(one), str(two), "--plot", str(tmp_path / "both.png")]) == 0
    told = capsys.readouterr().out
    assert "one: 2.0 million" in told
    assert "two: 1.0 million" in told
    assert all(f"{value:.3f}" in told for value in (0.5, 0.25, 1.0, 0.75, 1.5))
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["nowhere"], "no policy 'nowhere'"), (["{run}", "--plot", "a.bmp"], "must end in .png")],
)
def test_what_can_not_be_done_is_told_in_a_line(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path / "one", [0.5])
    assert main(["curves", *(word.format(run=run) for word in arguments)]) == 2
    assert complaint in capsys.readouterr().err


def test_a_bundle_remembers_how_it_learnt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curves", "go2-position"]) == 0
    assert "million control steps" in capsys.readouterr().out


def test_the_errors_of_every_kind_of_keyframes_are_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curves", "go2-precise"]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    last = re.findall(r"\d\.\d{3} \d\.\d{2} \d\.\d{2}", printed.splitlines()[-2])
    assert len(last) == 5  # clips, random and everyday keyframes, leaps and rare postures


def test_a_run_without_evaluations_says_why_it_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"steps": 64, "seconds": 1.0, "kl": 0.01}) + "\n")
    assert main(["curves", str(tmp_path)]) == 0
    assert "No evaluation yet" in capsys.readouterr().out
