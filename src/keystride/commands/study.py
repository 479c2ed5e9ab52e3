"""`keystride study`: the paper's two studies, from scratch to a page."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.studies.page import Report
    from keystride.studies.runs import Size

DEFAULT_OUT = Path("runs")


@dataclass(frozen=True)
class SizeArguments:
    """What is left out comes from the full study, or with --quick from the small one."""

    steps: int | None = None
    """Control steps of each run. Default: 6 million for critics, 10 million for anticipation."""
    seeds: int | None = None
    """Number of seeds, from 0 on. Default: 2."""
    robots: int | None = None
    """Robots of each run, over all processes. Default: 512."""
    evaluate_steps: int | None = None
    """Control steps between evaluations, which make the curves. Default: 500,000."""
    evaluation_robots: int | None = None
    """Robots of an evaluation. Default: 128."""
    evaluation_steps: int | None = None
    """Control steps of each robot in an evaluation, for each of two kinds of keyframes. Default: 500."""
    episodes: int | None = None
    """Episodes on which each final policy is measured, for each kind of keyframes or scenario. Default: 256."""
    processes: int | None = None
    """Processes that train a run together, one thread each. Default: one for each core."""


Sizes = Annotated[SizeArguments, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class StudyCritics:
    """Compare the multi-critic with a single critic for three ranges of time between keyframes, as the paper's figure does.

    Everything else is equal: the paper's three reward groups, position goals on the authored clips, goal kernels of a fixed width.
    The single critic has the paper's goal weight, and another found by a search that is printed. Runs are stored in OUT/runs, one after
    the other; stop the command at any time, even by kill -9, and start it again: it continues. OUT gets critics.html,
    critics.json and the figure.
    """

    quick: bool = False
    """All of it on tiny sizes, in minutes: shows the machinery, learns nothing."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-critics, or runs/study-critics-quick."""
    width: float = 0.8
    """Width of the goal kernels in m, the same throughout. The paper's 0.2 gives no signal to a policy that cannot walk yet."""
    horizons: tuple[tuple[int, int], ...] = ((25, 50), (50, 75), (75, 100))
    """Least and most control steps between keyframes; the search is done on the first."""
    weights: tuple[float, ...] = (5.0, 20.0, 80.0)
    """Goal weights of the single critic that are tried besides the paper's 0.5."""
    size: Sizes = field(default_factory=SizeArguments)

    def run(self) -> int:
        from keystride.studies.critics import CriticsStudy, run_critics
        from keystride.studies.runs import QUICK, Size

        size = _size(self.size, QUICK if self.quick else Size())
        if self.width <= 0 or not self.horizons or any(not 1 <= low <= high for low, high in self.horizons):
            raise UserError("--width must be positive, and --horizons pairs of least and most steps, such as 25 50")
        out = _out(self.out, "critics", self.quick)
        return _run(lambda: run_critics(CriticsStudy(out, size, self.width, self.horizons, self.weights)), out)


@dataclass(frozen=True)
class StudyAnticipation:
    """Compare a policy that sees all goals with one that sees the next goal only, on the paper's three scenarios.

    Both are trained from scratch with the same recipe, seeds and samples. Runs are stored in OUT/runs, one after the other; stop the
    command at any time, even by kill -9, and start it again: it continues. OUT gets anticipation.html, anticipation.json and
    the figures.
    """

    quick: bool = False
    """All of it on tiny sizes, in minutes: shows the machinery, learns nothing."""
    out: Path | None = None
    """Folder of the study. Default: runs/study-anticipation, or runs/study-anticipation-quick."""
    widths: tuple[float, ...] = (0.8, 0.6, 0.4)
    """Widths of the goal kernels in m, each for an equal part of a run, whatever the error is."""
    size: Sizes = field(default_factory=SizeArguments)

    def run(self) -> int:
        from keystride.studies.anticipation import AnticipationStudy, run_anticipation
        from keystride.studies.runs import QUICK, Size

        size = _size(self.size, QUICK if self.quick else Size(steps=10_000_000))
        if not self.widths or min(self.widths) <= 0 or size.steps < len(self.widths):
            raise UserError("--widths must be positive, and a run must have a control step for each at least")
        out = _out(self.out, "anticipation", self.quick)
        return _run(lambda: run_anticipation(AnticipationStudy(out, size, self.widths)), out)


def _size(given: SizeArguments, default: "Size") -> "Size":
    size = replace(default, **{name: value for name, value in asdict(given).items() if value is not None})
    for name, value in asdict(size).items():
        if value < (0 if name == "processes" else 1):
            raise UserError(f"--{name.replace('_', '-')} must be at least {int(name != 'processes')}, not {value}")
    return size


def _out(given: Path | None, name: str, quick: bool) -> Path:
    return given or DEFAULT_OUT / f"study-{name}{'-quick' if quick else ''}"


def _run(study: "Callable[[], Report]", out: Path) -> int:
    from keystride.evaluation.tables import print_tables
    from keystride.studies.page import write_study_report
    from keystride.studies.runs import StudyStopped
    from keystride.training.launch import WorkerCrash

    try:
        report = study()
    except StudyStopped as stop:
        print("stopped and saved; the same command continues")
        return 128 + stop.signal
    except WorkerCrash as error:  # its traceback is the one that matters
        print(error, file=sys.stderr)
        return 1
    print_tables(report.tables)
    for sentence in report.findings:
        print(sentence)
    for path in write_study_report(report, out):
        print(f"wrote {path}")
    return 0
