"""Learning curves side by side."""

import json
from pathlib import Path

import pytest

from keystride.commands.main import main


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
    ("arguments", "complaint"), [(["nowhere"], "no policy 'nowhere'"), (["{run}", "--plot", "a.bmp"], "ends in .png")]
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


def test_a_run_without_evaluations_says_why_it_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"steps": 64, "seconds": 1.0, "kl": 0.01}) + "\n")
    assert main(["curves", str(tmp_path)]) == 0
    assert "No evaluation yet" in capsys.readouterr().out
