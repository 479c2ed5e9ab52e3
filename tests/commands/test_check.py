"""`keystride check` as a person uses it."""

import json
from pathlib import Path

import pytest

from keystride.commands.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_sound_script_is_printed_with_its_speeds(capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(EXAMPLES / "turn.yaml")]) == 0
    captured = capsys.readouterr()
    assert "2 keyframes in 1.5 s" in captured.out
    row = captured.out.splitlines()[-2].split()
    assert row[:6] == ["2", "1.5", "1.50", "1.00", "0.32", "-"]
    assert row[6] == "2.24"  # hypot(0.5, 1.0) / 0.5
    assert captured.err == ""


def test_a_doubtful_script_is_warned_about_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(
        tmp_path / "fast.yaml", "version: 1\nkeyframes:\n  - {time: 1, position: [9, 0], label: '[bold]far'}\n"
    )
    assert main(["check", path]) == 0
    out = capsys.readouterr().out
    assert "warning: keyframe 1: 9.0 m/s from a standstill" in out
    assert "[bold]far" in out  # what a label says is not taken as markup


def test_it_says_what_a_policy_was_not_trained_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "far.yaml", "version: 1\nkeyframes:\n  - {time: 10, position: [5, 0]}\n")
    assert main(["check", path, "--policy", "go2-pose"]) == 0
    assert "warning" not in capsys.readouterr().out
    assert main(["check", path, "--policy", "go2-pose", "--no-inbetween"]) == 0
    assert "warning: keyframe 1: comes 10.00 s after the one before; trained: 0.5 to 1 s" in capsys.readouterr().out
    assert main(["check", path, "--policy", "nothing"]) == 2


def test_waypoints_are_printed_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "far.yaml", "version: 1\nkeyframes:\n  - {time: 3, position: [1, 0]}\n")
    assert main(["check", path, "--waypoints"]) == 0
    out = capsys.readouterr().out
    assert "3 waypoints" in out
    assert "(position, yaw)" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\nkeyframes:\n  - time: 1\n    yaw: .nan\n", ":4: keyframe 1, yaw: nan is not a finite number"),
        ("version: 1\nkeyframes: [{time: 1, yoo: 1}]", ":2: keyframe 1, yoo: unknown field; allowed: time"),
        ("", ": is empty"),
        (b"\x89PNG\r\n\x1a\n\x00", ": is not text in UTF-8"),
        ("[" * 100_000, ":1: is nested more than"),
        ("a: &a [b]\nc: *a", ":2: uses an alias"),
        (b"x" * (2 << 20), ": too large; allowed: at most 1 MiB"),
    ],
)
def test_a_bad_script_ends_in_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | bytes, message: str):
    path = write(tmp_path / "bad.yaml", text)
    assert main(["check", path]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {path}{message}")
    assert captured.out == ""


def test_every_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    bad, none = write(tmp_path / "bad.json", "{"), str(tmp_path / "none.yaml")
    assert main(["check", bad, none, str(tmp_path), str(EXAMPLES / "walk.yaml")]) == 2
    captured = capsys.readouterr()
    assert [line.split(": ")[1].split(":")[0] for line in captured.err.splitlines()] == [bad, none, str(tmp_path)]
    assert "walk.yaml: 2 keyframes" in captured.out


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]):
    assert main(["check", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["required"] == ["version", "keyframes"]


def test_no_script_is_a_mistake(capsys: pytest.CaptureFixture[str]):
    assert main(["check"]) == 2
    assert "no script given" in capsys.readouterr().err
