"""The `keystride` command: its subcommands, and how they are parsed and run."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, Any, Protocol, Union

import tyro

from keystride import __version__, errors
from keystride.benchmarks.forecast import BenchmarkForecast
from keystride.benchmarks.learner import BenchmarkLearner
from keystride.benchmarks.learning import LEARNING_PRESETS, BenchmarkLearning
from keystride.benchmarks.physics import BenchmarkPhysics
from keystride.benchmarks.policy import BenchmarkPolicy
from keystride.benchmarks.studio import BenchmarkStudio
from keystride.benchmarks.train import BenchmarkTrain
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
from keystride.graphics import choose_graphics
from keystride.training.config import parse_training

DESCRIPTION = """Direct a legged robot with timed keyframes.

Start with `keystride play walk` or `keystride studio`. `keystride COMMAND --help` explains a command, and
`keystride --version` prints the version."""
MARKERS = (tyro.conf.FlagCreatePairsOff,)  # --json without --no-json


class Command(Protocol):
    """A frozen dataclass whose fields are the arguments; run() returns the exit code."""

    def run(self) -> int: ...


@dataclass(frozen=True)
class Group:
    """Subcommands under one word, as in `keystride motion import`."""

    description: str
    commands: Mapping[str, type[Command]]


# All of these modules are imported for every --help, so they keep heavy imports inside functions.
COMMANDS: dict[str, type[Command] | Group] = {
    "benchmark": Group(
        "Measure the speed of physics, learning, policies and the studio.",
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
        "Play scripts on a real or simulated Go2.",
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
        "Import motion clips, view them, report on them.",
        {"import": ImportMotion, "report": ReportMotion, "view": ViewMotion},
    ),
    "play": Play,
    "robot": ShowRobot,
    "studio": OpenStudio,
    "study": Group(
        "Reproduce two studies of the paper, with policies trained from scratch.",
        {"anticipation": StudyAnticipation, "critics": StudyCritics},
    ),
    "train": Train,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
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
    """Return the union type from which tyro builds its parser. The hidden None makes it a union even of a single command."""
    members = [_member(name, command, typed) for name, command in commands.items()]
    return Union[(*members, Annotated[None, tyro.conf.Suppress])]


def _member(name: str, command: type[Command] | Group, typed: Sequence[str]) -> Any:
    """Return a member of the union. Only the command that was typed gets its full description; a list shows one paragraph each."""
    if isinstance(command, Group):
        inner = _choice(command.commands, typed)
        return Annotated[inner, tyro.conf.subcommand(name, description=command.description)]
    text = cleandoc(command.__doc__ or "")
    return Annotated[command, tyro.conf.subcommand(name, description=text if name in typed else text.split("\n\n")[0])]
