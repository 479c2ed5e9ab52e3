"""`keystride study`: what it refuses before anything is trained."""

from pathlib import Path

import pytest

from keystride.commands.main import main


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["critics", "--seeds", "0"], "--seeds must be at least 1"),
        (["critics", "--horizons", "50", "25"], "--horizons"),
        (["anticipation", "--widths", "0.4", "-1"], "--widths"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["study", *words, "--out", str(tmp_path)]) == 2
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_unknown_robot_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "critics", "--robot", "rex", "--out", str(tmp_path / "out")]) == 2
    assert "unknown robot 'rex'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
