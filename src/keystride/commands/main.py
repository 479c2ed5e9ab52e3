"""The `keystride` command: every sub-command, one line each."""

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, Any, Protocol, Union

import tyro

from keystride import __version__
from keystride.benchmarks.forecast import BenchmarkForecast
from keystride.benchmarks.learner import BenchmarkLearner
from keystride.benchmarks.learning import LEARNING_PRESETS, BenchmarkLearning
from keystride.benchmarks.physics import BenchmarkPhysics
from keystride.benchmarks.policy import BenchmarkPolicy
from keystride.benchmarks.studio import BenchmarkStudio
from keystride.benchmarks.train import BenchmarkTrain
from keystride.commands import errors
from keystride.commands.check import CheckScripts
from keystride.commands.deploy import DeployGo2, DeployGuard, DeployReplay, DeploySelftest, DeploySim
from keystride.commands.evaluate import Evaluate
from keystride.commands.motion_import import ImportMotion, ReportMotion
from keystride.commands.motion_view import ViewMotion
from keystride.commands.play import Play
from keystride.commands.robot import ShowRobot
from keystride.commands.studio import OpenStudio
from keystride.commands.study import StudyAnticipation, StudyCritics
from keystride.commands.train import CompareCurves, Export, Train
from keystride.training.config import parse_training

DESCRIPTION = "Direct a legged robot with timed keyframes. `keystride --version` prints the version."
GRAPHICS_LIBRARIES = {
    "egl": "libEGL.so.1",
    "osmesa": "libOSMesa.so.8",
}  # for rendering off screen, the faster one first
MARKERS = (tyro.conf.FlagCreatePairsOff,)  # --json alone, no --no-json beside it


class Command(Protocol):
    """A frozen dataclass whose fields are the arguments; run() returns the exit code."""

    def run(self) -> int: ...


@dataclass(frozen=True)
class Group:
    """Sub-commands under one word: `keystride motion import`."""

    description: str
    commands: Mapping[str, type[Command]]


# A command's module is imported for every --help: it keeps heavy imports inside run().
COMMANDS: dict[str, type[Command] | Group] = {
    "benchmark": Group(
        "Measure how fast things run.",
        {
            "forecast": BenchmarkForecast,
            "learner": BenchmarkLearner,
            "learning": BenchmarkLearning,
            "physics": BenchmarkPhysics,
            "policy": BenchmarkPolicy,
            "studio": BenchmarkStudio,
            "train": BenchmarkTrain,
        },
    ),
    "check": CheckScripts,
    "curves": CompareCurves,
    "deploy": Group(
        "Play a policy on a Go2 or on a simulated one.",
        {
            "go2": DeployGo2,
            "guard": DeployGuard,
            "replay": DeployReplay,
            "selftest": DeploySelftest,
            "sim": DeploySim,
        },
    ),
    "evaluate": Evaluate,
    "export": Export,
    "motion": Group(
        "Clips of motion: import them, look at them, report on them.",
        {"import": ImportMotion, "report": ReportMotion, "view": ViewMotion},
    ),
    "play": Play,
    "robot": ShowRobot,
    "studio": OpenStudio,
    "study": Group(
        "Reprint the paper's two studies, trained from scratch.",
        {"anticipation": StudyAnticipation, "critics": StudyCritics},
    ),
    "train": Train,
}


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) in (["--version"], ["-V"]):
        print(f"keystride {__version__}")
        return 0
    choose_graphics()
    try:
        return _parse(arguments).run()
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    except Exception as error:
        return errors.report(error)


def _parse(arguments: Sequence[str]) -> Command:
    if arguments[:1] == ["train"]:
        return parse_training(Train, arguments[1:], "keystride train")
    if arguments[:2] == ["benchmark", "learning"]:
        return parse_training(BenchmarkLearning, arguments[2:], "keystride benchmark learning", LEARNING_PRESETS)
    return tyro.cli(
        _choice(COMMANDS, arguments), prog="keystride", description=DESCRIPTION, args=arguments, config=MARKERS
    )


def _choice(commands: Mapping[str, type[Command] | Group], typed: Sequence[str]) -> Any:
    """Return the union type from which tyro builds its parser. A union needs two members: the second is None, hidden."""
    members = [_member(name, command, typed) for name, command in commands.items()]
    return Union[(*members, Annotated[None, tyro.conf.Suppress])]


def _member(name: str, command: type[Command] | Group, typed: Sequence[str]) -> Any:
    """A command that was not typed can only be listed, and a list wants one paragraph each."""
    if isinstance(command, Group):
        inner = _choice(command.commands, typed)
        return Annotated[inner, tyro.conf.subcommand(name, description=command.description)]
    text = cleandoc(command.__doc__ or "")
    return Annotated[command, tyro.conf.subcommand(name, description=text if name in typed else text.split("\n\n")[0])]


def choose_graphics() -> None:
    """Let MuJoCo render off screen on Linux without a display. Call it before mujoco is imported, which looks only once."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform != "linux" or screen or "MUJOCO_GL" in os.environ:
        return
    for name, library in GRAPHICS_LIBRARIES.items():
        if _loads(library):
            os.environ["MUJOCO_GL"] = name
            return


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
