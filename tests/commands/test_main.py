"""The command line as a whole: help and version."""

import ast
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

import keystride.commands
import keystride.learner.config
import keystride.task.config
import keystride.training.config
from keystride import __version__
from keystride.commands.main import COMMANDS, Group, main

CONFIGURATIONS = (keystride.learner.config.__file__, keystride.task.config.__file__, keystride.training.config.__file__)


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


NEGATED = (*("check", "deploy go2", "evaluate", "play", "studio"), "deploy sim")


@pytest.mark.parametrize("words", NEGATED)
def test_switches_are_described_as_what_they_do(words: str, capsys: pytest.CaptureFixture[str]):
    """The text of --no-X says what happens with --no-X, and names no default."""
    with pytest.raises(SystemExit):
        main([*words.split(), "--help"])
    printed = " ".join(capsys.readouterr().out.replace("│", "").split())
    described = [text.partition(" --")[0] for text in printed.split(" --no-")[1:]]
    assert described
    for text in described:
        assert text.split(" ", 1)[1].startswith(
            ("Show the policy the ", "Check the script alone", "Sample keyframes from", "Start with ", "Simulate the ")
        )
        assert "default" not in text


@pytest.mark.parametrize(
    "module",
    [*sorted(Path(keystride.commands.__path__[0]).glob("*.py")), *map(Path, CONFIGURATIONS)],
    ids=lambda path: path.stem,
)
def test_help_texts_have_no_line_breaks_within_sentences(module: Path):
    """The help of a field keeps the line breaks of its docstring, so that a continuation line has to start a sentence."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ClassDef):
            for argument, text in pairwise(node.body):
                if isinstance(argument, ast.AnnAssign) and isinstance(text, ast.Expr):
                    lines = cast("str", cast("ast.Constant", text.value).value).splitlines()
                    assert all(line.endswith(".") for line in lines), lines


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
