"""`keystride deploy go2`: dry runs, and mistakes in one line."""

import json
import os
from pathlib import Path

import pytest

from keystride.commands.main import main
from keystride.keyframes.files import save_script
from keystride.keyframes.script import Keyframe, Script


def script(folder: Path, *keyframes: Keyframe) -> Path:
    path = folder / "script.yaml"
    save_script(Script(keyframes=keyframes), path)
    return path


EASY = Keyframe(time=1.0, position=(0.3, 0.0))


def deploy(*words: str) -> int:
    return main(["deploy", "go2", *words])


def test_a_dry_run_prints_what_would_be_sent(tmp_path, capsys):
    code = deploy("--policy", "STUB-TROT", "--script", str(script(tmp_path, EASY)), "--dry-run")
    text = capsys.readouterr().out
    assert code == 0
    for state in ("standing up", "ready", "running", "stopping", "damping"):
        assert f"-> {state}" in text
    assert "kp 60 kd 3  crc " in text
    assert "fastest joint: 0." in text
    last = [line for line in text.splitlines() if "bytes" in line][-1]
    assert last.split("  ")[2].startswith("kp 0 kd 3")
    assert "812 bytes" in text


def test_a_dry_run_reports_its_states(tmp_path, capsys):
    read, write = os.pipe()
    words = ("--policy", "STUB-TROT", "--script", str(script(tmp_path, EASY)), "--dry-run", "--status", str(write))
    assert deploy(*words) == 0
    os.close(write)
    with open(read) as status:
        lines = [json.loads(line) for line in status]
    states = ["standing up", "ready", "running", "stopping", "damping"]
    assert [line["state"] for line in lines] == [*states, "damping"]
    assert lines[-1]["ended"] == {"played": True, "damped": True, "reason": ""}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "no-such"], "no policy 'no-such'"),
        (["--policy", "STUB-TROT", "--interface", "eth7"], "not a policy for a robot on eth7"),
        (["--policy", "STUB-TROT", "--script", "/no/script.yaml"], "No such file"),
    ],
)
def test_mistakes_are_one_line_and_code_2(tmp_path, capsys, words, message):
    if "--script" not in words:
        words = [*words, "--script", str(script(tmp_path, EASY))]
    assert deploy(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("error: ")
    assert "Traceback" not in error


def test_a_broken_script_is_told_in_full(tmp_path, capsys):
    path = tmp_path / "script.yaml"
    path.write_text("version: 1\nkeyframes:\n  - time: -1\n    colour: red\n")
    assert deploy("--policy", "STUB-TROT", "--script", str(path)) == 2
    error = capsys.readouterr().err
    assert "time" in error
    assert "colour" in error
