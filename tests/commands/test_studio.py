"""`keystride studio`: what it says when it cannot start."""

import re
from pathlib import Path

import pytest

from keystride.commands.main import main


def test_a_script_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["studio", "nowhere.yaml", "--headless"]) == 2
    assert capsys.readouterr().err == "error: nowhere.yaml: No such file or directory\n"


def test_a_bad_script_is_told_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script = tmp_path / "bad.yaml"
    script.write_text("version: 1\nkeyframes:\n  - time: -1\n    yaw: 0\n")
    assert main(["studio", str(script), "--headless"]) == 2
    assert "bad.yaml:3: keyframe 1, time: -1 is out of range" in capsys.readouterr().err


def test_a_policy_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["studio", "--policy", "nobody", "--headless"]) == 2
    assert "error: no policy 'nobody'" in capsys.readouterr().err


def test_an_unknown_robot_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["studio", "--robot", "rex", "--headless"]) == 2
    assert re.match(r"error: unknown robot \W?rex\W.*choose from go2.*\n$", capsys.readouterr().err)
