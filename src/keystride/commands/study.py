"""`keystride study`: reproduce two studies of the paper, from training to the report."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.studies.page import StudyReport
    from keystride.studies.runs import Size

DEFAULT_OUT = Path("runs")


@dataclass(frozen=True)
class SizeArguments:
    """Sizes of a study. The defaults below are those of the full study; --quick uses much smaller ones."""

    steps: int | None = None
    """Control steps of each run. Default: 6 million for critics, 10 million for anticipation."""
    seeds: int | None = None
    """Number of seeds, starting from 0. Default: 2."""
    robots: int | None = None
    """Number of robots simulated in each run, over all processes. Default: 256."""
    evaluate_steps: int | None = None
    """Control steps between the evaluations that make up the learning curves. Default: 500,000."""
    evaluation_robots: int | None = None
    """Number of robots in an evaluation during training. Default: 128."""
    evaluation_steps: int | None = None
    """Control steps per robot in an evaluation, for each of the two kinds of keyframes. Default: 500."""
    episodes: int | None = None
    """Episodes to evaluate each final policy on, for each kind of keyframes or scenario. Default: 256."""
    processes: int | None = None
    """Number of training processes, one thread each. Default: one per core."""


Sizes = Annotated[SizeArguments, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class StudyCritics:
    """Compare the multi-critic with a single critic for three ranges of time between keyframes, as the paper's figure does.

    Everything else is equal: the paper's three reward groups, position goals on the built-in clips, and goal kernels of a fixed
    width. The single critic is trained with the paper's goal weight and with the best one found in a search.

    Runs are trained one after the other in OUT/runs. The command can be stopped at any time, even with kill -9, and continues
    when started again. The results are OUT/critics.html, OUT/critics.json and a figure.
    """

    quick: bool = False
    """Run everything at tiny sizes within minutes. The policies learn nothing; use it to try the command."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-critics, or runs/study-critics-quick with --quick."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    width: float = 0.8
    """Width of the goal kernels in m. The paper's 0.2 gives no signal to a policy that cannot walk yet."""
    horizons: tuple[tuple[int, int], ...] = ((25, 50), (50, 75), (75, 100))
    """Pairs of minimum and maximum control steps between keyframes. The goal weight is searched with the first pair."""
    weights: tuple[float, ...] = (5.0, 20.0, 80.0)
    """Goal weights of the single critic to try in addition to the paper's 0.5."""
    size: Sizes = field(default_factory=SizeArguments)

    def run(self) -> int:
        from keystride.studies.critics import CriticsStudy, run_critics
        from keystride.studies.runs import QUICK, Size

        size = _size(self.size, QUICK if self.quick else Size())
        if self.width <= 0 or not self.horizons or any(not 1 <= low <= high for low, high in self.horizons):
            raise UserError("--width must be positive, and --horizons pairs of minimum and maximum steps such as 25 50")
        out = _out(self.out, "critics", self.quick)
        return _run(
            lambda: run_critics(CriticsStudy(out, size, self.width, self.horizons, self.weights, self.robot)), out
        )


@dataclass(frozen=True)
class StudyAnticipation:
    """Compare a policy that sees all goals with one that sees only the next goal, on the paper's three scenarios.

    Both are trained from scratch with the same settings, seeds and sample counts. Runs are trained one after the other in OUT/runs.
    The command can be stopped at any time, even with kill -9, and continues when started again. The results are
    OUT/anticipation.html, OUT/anticipation.json and figures.
    """

    quick: bool = False
    """Run everything at tiny sizes within minutes. The policies learn nothing; use it to try the command."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-anticipation, or runs/study-anticipation-quick with --quick."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    widths: tuple[float, ...] = (0.8, 0.6, 0.4)
    """Widths of the goal kernels in m, each for an equal part of a run."""
    size: Sizes = field(default_factory=SizeArguments)

    def run(self) -> int:
        from keystride.studies.anticipation import AnticipationStudy, run_anticipation
        from keystride.studies.runs import QUICK, Size

        size = _size(self.size, QUICK if self.quick else Size(steps=10_000_000))
        if not self.widths or min(self.widths) <= 0 or size.steps < len(self.widths):
            raise UserError("--widths must be positive, and --steps at least the number of widths")
        out = _out(self.out, "anticipation", self.quick)
        return _run(lambda: run_anticipation(AnticipationStudy(out, size, self.widths, self.robot)), out)


def _size(given: SizeArguments, default: "Size") -> "Size":
    size = replace(default, **{name: value for name, value in asdict(given).items() if value is not None})
    for name, value in asdict(size).items():
        if value < (0 if name == "processes" else 1):
            raise UserError(f"--{name.replace('_', '-')} must be at least {int(name != 'processes')}, not {value}")
    return size


def _out(given: Path | None, name: str, quick: bool) -> Path:
    return given or DEFAULT_OUT / f"study-{name}{'-quick' if quick else ''}"


def _run(study: "Callable[[], StudyReport]", out: Path) -> int:
    from keystride.evaluation.tables import print_tables
    from keystride.studies.page import write_study_report
    from keystride.studies.runs import StudyStopped
    from keystride.training.launch import WorkerCrash

    try:
        report = study()
    except StudyStopped as stop:
        print("stopped and saved; run the same command again to continue")
        return 128 + stop.signal
    except WorkerCrash as error:  # the message contains the worker's traceback; ours adds nothing
        print(error, file=sys.stderr)
        return 1
    print_tables(report.tables)
    for sentence in report.findings:
        print(sentence)
    for path in write_study_report(report, out):
        print(f"wrote {path}")
    return 0
