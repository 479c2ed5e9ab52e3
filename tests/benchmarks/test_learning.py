import json
from pathlib import Path

import pytest

from keystride.benchmarks.learning import first_at_or_below
from keystride.commands.main import main


def test_crossings_are_interpolated_between_evaluations() -> None:
    errors, steps = [1.0, None, 0.6, 0.4, 0.5], [0, 100, 200, 300, 400]
    assert first_at_or_below(errors, steps, 0.5) == pytest.approx(250)
    assert first_at_or_below(errors, steps, 1.0) == 0
    assert first_at_or_below(errors, steps, 0.3) is None


def test_two_seeds_are_trained_and_not_trained_twice(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ["benchmark", "learning", "--runs", str(tmp_path), "--processes", "1", "--learner.environments", "8"]
    arguments += ["--learner.horizon", "4", "--learner.steps", "64", "--learner.evaluate-steps", "32"]
    arguments += [
        "--evaluation.robots",
        "2",
        "--evaluation.control-steps",
        "100",
        "--learner.discriminator.replay",
        "256",
    ]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "seed 1" in first
    assert "random keyframes, 0.15 m" in first
    data = json.loads((tmp_path / "learning" / "learning.json").read_text())
    assert data["settings"]["learner"]["steps"] == 64
    for curve in data["curves"].values():
        assert curve["steps"] == [0, 32, 64]
        assert curve["minutes"] == sorted(curve["minutes"])
        assert curve["random/position"][0] is not None
    assert (tmp_path / "learning" / "learning.png").read_bytes().startswith(b"\x89PNG")
    rows = (tmp_path / "learning" / "seed1" / "metrics.jsonl").read_text()
    assert main(arguments) == 0
    assert (tmp_path / "learning" / "seed1" / "metrics.jsonl").read_text() == rows
    assert main([*arguments, "--learner.ppo.entropy", "0.5"]) == 2
    assert "learner.ppo.entropy" in capsys.readouterr().err
