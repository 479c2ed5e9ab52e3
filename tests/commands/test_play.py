"""`keystride play`: what it prints and writes, and what it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keystride.commands.main import main
from keystride.keyframes.files import load_script

SCRIPT = """
version: 1
keyframes:
  - {time: 0.4, posture: stand}
  - {time: 0.8, position: [1.0, 0.0], label: away}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "stay.yaml"
    path.write_text(SCRIPT)
    return path


def test_play_prints_the_errors_and_writes_what_was_asked_for(
    script: Path, standing_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    files = ["--json", f"{out}/a.json", "--html", f"{out}/a.html", "--plot", f"{out}/a.svg"]
    assert main(["play", str(script), "--policy", str(standing_path), *files]) == 0
    printed = capsys.readouterr()
    assert (
        "1 of 2 keyframes met (0.15 m, height 0.05 m, roll and pitch 10 deg, yaw 15 deg, posture 10 deg)" in printed.out
    )
    assert "missed" in printed.out
    assert "away" in printed.out
    assert {path.name for path in out.iterdir()} == {"a.json", "a.html", "a.svg"}
    data = json.loads((out / "a.json").read_text())
    assert [keyframe["met"] for keyframe in data["keyframes"]] == [True, False]


def test_play_as_json_alone(script: Path, standing_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", str(script), "--policy", str(standing_path), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "standing.onnx"


def test_play_prints_the_same_figures_again(
    script: Path, standing_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["play", str(script), "--policy", str(standing_path), "--json", "-"])
    first = capsys.readouterr().out
    main(["play", str(script), "--policy", str(standing_path), "--json", "-"])
    assert capsys.readouterr().out == first


def test_play_warns_of_what_the_policy_does_not_know(
    script: Path, position_standing_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", str(script), "--policy", str(position_standing_path)]) == 0
    assert "warning: keyframe 1: asks for posture; the policy knows position" in capsys.readouterr().err


def test_play_repeats_the_warnings_of_check(
    tmp_path: Path, standing_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fast.yaml"
    path.write_text("version: 1\nkeyframes:\n  - {time: 1, position: [9, 0]}\n")
    assert main(["play", str(path), "--policy", str(standing_path)]) == 0
    warnings = capsys.readouterr().err
    assert "warning: keyframe 1: 9.0 m/s from a standstill" in warnings
    assert "warning: keyframe 1: is 9.00 m from the one before; trained: up to 1 m" in warnings


def test_play_goes_on_after_the_last_keyframe_and_saves_the_trajectory(
    script: Path, standing_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "a.npz"
    after = ["--seconds-after", "3", "--npz", str(path)]
    assert main(["play", str(script), "--policy", str(standing_path), *after]) == 0
    with np.load(path, allow_pickle=False) as saved:
        shapes = {name: saved[name].shape for name in saved.files}
        time = saved["time"]
    steps = len(time)
    assert shapes == {
        "time": (steps,),
        "base_position": (steps, 3),
        "base_orientation": (steps, 4),
        "joint_angles": (steps, 12),
    }
    last = max(keyframe.time for keyframe in load_script(script).keyframes)
    assert time[-1] == pytest.approx(last + 3.0)


@pytest.mark.parametrize("words", [["--seconds-after", "-1"], ["--npz", "a.txt"]])
def test_play_refuses_before_it_works(words: list[str], script: Path, standing_path: Path) -> None:
    assert main(["play", str(script), "--policy", str(standing_path), *words]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{script}", "--policy", "go3"], "no policy 'go3'"),
        (["{script}", "--policy", "{script}"], "not an ONNX file, or a broken one"),
        (["{policy}", "--policy", "{policy}"], "is not text"),
        (["nowhere.yaml", "--policy", "{policy}"], "nowhere.yaml: No such file"),
        (["{script}", "--policy", "{policy}", "--plot", "a.docx"], "must end in .png, .svg or .pdf"),
        (["{script}", "--policy", "{policy}", "--video", "a.avi"], "must end in .mp4 or .gif"),
    ],
)
def test_a_mistake_is_one_clear_line(
    arguments: list[str], message: str, script: Path, standing_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(script=script, policy=standing_path) for word in arguments]
    assert main(["play", *filled]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a screen")
def test_without_a_screen_the_viewer_says_what_to_do(
    script: Path, standing_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert main(["play", str(script), "--policy", str(standing_path), "--viewer"]) == 2
    assert "--html FILE" in capsys.readouterr().err


def test_a_script_with_many_mistakes_names_the_first_and_where_to_see_all(
    standing_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nkeyframes:\n  - {time: -1, posture: fly}\n  - {time: 1, jump: high}\n")
    assert main(["play", str(path), "--policy", str(standing_path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"more: keystride check {path}" in err


WITHOUT_TORCH = """
import importlib.abc, sys
class NoTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("torch is forbidden here", name="torch")
sys.meta_path.insert(0, NoTorch())
from keystride.commands.main import main
script, policy = sys.argv[1:]
code = main(["play", script, "--policy", policy])
sys.exit(code or main(["evaluate", "--policy", policy, "--suite", "style", "--episodes", "2"]))
"""


def test_playing_and_evaluating_need_no_torch(script: Path, standing_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(script), str(standing_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Style: policy and clips" in done.stdout
