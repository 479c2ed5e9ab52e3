"""The command line as a whole: help, version, and the graphics that MuJoCo is told to use."""

import os
import subprocess
import sys

import pytest

from keystride import __version__
from keystride.commands.main import COMMANDS, GRAPHICS_LIBRARIES, Group, choose_graphics, main


def names() -> list[list[str]]:
    """Every command as the words that call it."""
    words: list[list[str]] = []
    for name, command in COMMANDS.items():
        inner = command.commands if isinstance(command, Group) else [""]
        words += [[name, sub] if sub else [name] for sub in inner]
    return words


@pytest.mark.parametrize("words", names(), ids=" ".join)
def test_every_command_explains_itself(words: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert f"keystride {' '.join(words)}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "evaluate", "play", "studio"])
def test_switches_are_described_as_what_they_do(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = " ".join(capsys.readouterr().out.replace("│", "").split())
    described = printed.partition(" --no-inbetween ")[2].partition(" --")[0]
    assert described.startswith(("Show the policy the ", "Check the script alone"))
    assert "default" not in described


def test_version(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"keystride {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["robot", "--nothing"]])
def test_what_is_not_a_command_gets_exit_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "keystride --help" in capsys.readouterr().err.replace("robot ", "")


def test_help_is_cheap():
    """What takes long to load stays inside run(): a fresh interpreter that lists the commands has none of it."""
    heavy = ["torch", "mujoco", "viser", "cyclonedds", "onnxruntime", "onnx"]
    code = f"import sys, keystride.commands.main; print([m for m in {heavy} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_module_is_the_command():
    shown = subprocess.run([sys.executable, "-m", "keystride", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"keystride {__version__}\n"


@pytest.fixture
def no_screen(monkeypatch: pytest.MonkeyPatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_screen")
def test_a_choice_of_the_users_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "glfw"


@pytest.mark.usefixtures("no_screen")
def test_with_a_screen_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DISPLAY", ":0")
    choose_graphics()
    assert "MUJOCO_GL" not in os.environ


@pytest.mark.usefixtures("no_screen")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux draws off screen by another library")
def test_without_a_screen_a_library_that_is_there_is_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(GRAPHICS_LIBRARIES, "egl", "libc.so.6")  # loads everywhere
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "egl"
    monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.setitem(GRAPHICS_LIBRARIES, "egl", "libabsent.so.1")
    monkeypatch.setitem(GRAPHICS_LIBRARIES, "osmesa", "libc.so.6")
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "osmesa"
    monkeypatch.delenv("MUJOCO_GL")
