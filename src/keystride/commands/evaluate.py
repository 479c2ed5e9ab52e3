"""`keystride evaluate`: evaluate a policy on the paper's scenarios and on everyday scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from keystride.errors import UserError
from keystride.policy import DEFAULT_POLICY

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from keystride.evaluation.episodes import Progress
    from keystride.evaluation.setting import Contender, Libraries, Setting, SuiteOutcome
    from keystride.robot.description import Robot


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a policy: errors at keyframes, falls, style and robustness, next to the paper's results.

    Seeds are fixed: the same command prints the same results on the same machine.

    Example: `keystride evaluate --policy go2-pose --suite matching --out report`.
    """

    policy: str = DEFAULT_POLICY
    """Name of a built-in policy, a bundle folder, an ONNX file or a training run."""
    next_policy: str | None = None
    """Policy that sees only the next goal, for comparison in the anticipation suite."""
    suite: Literal["matching", "generalization", "anticipation", "everyday", "style", "robustness", "all"] = "all"
    """Suite to run; docs/evaluation.md describes them."""
    episodes: int = 256
    """Number of episodes per scenario."""
    library: tuple[Path, ...] = ()
    """Motion libraries to sample keyframes from, in addition to the built-in clips."""
    unseen: tuple[Path, ...] = ()
    """Motion libraries that the policy was not trained on."""
    authored: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Sample keyframes from the libraries alone, without the built-in clips."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    inbetween: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Show the policy the keyframes alone, without waypoints in gaps longer than it was trained on."""
    seed: int = 0
    """Random seed."""
    threads: int = 0
    """Number of threads; 0 means one per core. Results do not depend on it."""
    json: Path | None = None
    """Write all results as JSON to this file; with -, print JSON instead of tables."""
    out: Path | None = None
    """Folder for the report, a single HTML file with all tables and figures."""

    def run(self) -> int:
        if self.episodes < 1:
            raise UserError("--episodes must be at least 1")
        from keystride.evaluation.suites import SUITES, run_suites

        with _bars() as bars:
            setting = _setting(self, bars)
            outcomes = run_suites(SUITES if self.suite == "all" else [self.suite], setting)
            pictures = _pictures(setting) if self.out is not None else []
        if self.json != Path("-"):
            _print(self, outcomes)
        if self.json is not None:
            _write_json(self, outcomes)
        if self.out is not None:
            _write_report(self, outcomes, pictures)
        return 0

    @property
    def about(self) -> str:
        return f"{Path(self.policy).name}, {self.episodes} episodes per scenario, seed {self.seed}"


def _setting(command: Evaluate, bars: Bars) -> Setting:
    from keystride.evaluation.setting import Setting
    from keystride.robot.catalogue import load_robot

    robot = load_robot(command.robot)
    return Setting(
        robot=robot,
        contender=_contender(command.policy, robot),
        rival=None if command.next_policy is None else _contender(command.next_policy, robot),
        libraries=_libraries(command, robot),
        episodes=command.episodes,
        seed=command.seed,
        threads=command.threads,
        inbetween=command.inbetween,
        watch=lambda name: _watched(bars, name),
    )


def _libraries(command: Evaluate, robot: Robot) -> Libraries:
    from keystride.evaluation.setting import load_libraries

    try:
        return load_libraries(robot, command.library, command.unseen, authored=command.authored)
    except ValueError as error:  # an index of another version, or no JSON at all
        raise UserError(str(error)) from error


def _contender(name: str, robot: Robot) -> Contender:
    from keystride.evaluation.setting import Contender
    from keystride.policy.loading import open_policy

    return Contender(Path(name).name, open_policy(name, robot=robot))


def _bars() -> Bars:
    """Return progress bars on standard error, so that tables and JSON can be piped."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    return Bars(console=Console(stderr=True), transient=True)


@contextmanager
def _watched(bars: Bars, name: str) -> Iterator[Progress]:
    task = bars.add_task(name, total=1.0)
    yield lambda share: bars.update(task, completed=share)
    bars.remove_task(task)


def _print(command: Evaluate, outcomes: Mapping[str, SuiteOutcome]) -> None:
    from keystride.evaluation.episodes import THRESHOLDS
    from keystride.evaluation.tables import print_tables, suite_table, table_console

    console = table_console()
    console.print(f"{command.about}; the paper's results below ours", highlight=False)
    print_tables((suite_table(name, outcome.rows) for name, outcome in outcomes.items()), console)
    console.print(f"met: within {THRESHOLDS}, and no fall before", highlight=False)
    for hint in _hints(command, outcomes):
        console.print(hint, style="dim", highlight=False)


def _hints(command: Evaluate, outcomes: Mapping[str, SuiteOutcome]) -> Iterator[str]:
    if "generalization" in outcomes and not command.unseen:
        yield "unseen clips were not evaluated; pass a library with --unseen"
    if "anticipation" in outcomes and command.next_policy is None:
        yield "no comparison for anticipation; pass a policy that sees only the next goal with --next-policy"


def _write_json(command: Evaluate, outcomes: Mapping[str, SuiteOutcome]) -> None:
    import json

    from keystride import __version__
    from keystride.files import write_atomically

    data = {
        "policy": Path(command.policy).name,
        "next_policy": None if command.next_policy is None else Path(command.next_policy).name,
        "episodes": command.episodes,
        "seed": command.seed,
        "inbetween": command.inbetween,
        "keystride_version": __version__,
        "rows": [row.as_dict() for outcome in outcomes.values() for row in outcome.rows],
    }
    text = json.dumps(data, indent=1, allow_nan=False)
    if command.json == Path("-"):
        print(text)
    elif command.json is not None:
        write_atomically(command.json, f"{text}\n")
        print(f"wrote {command.json}", file=sys.stderr)


def _pictures(setting: Setting) -> list[Any]:
    """Return the paper's figures of position goals, which are not part of a suite."""
    from keystride.evaluation.rendering import figures
    from keystride.evaluation.rendering.report import Picture
    from keystride.evaluation.scenarios import TIMINGS, TRAJECTORIES
    from keystride.evaluation.setting import run_waypoints

    courses = {one.name: run_waypoints(setting, one, setting.contender) for one in TRAJECTORIES}
    timings = {one.name: run_waypoints(setting, one, setting.contender) for one in TIMINGS}
    return [
        Picture("Paths of the base for two sets of position goals.", figures.trajectories(courses)),
        Picture("The same goal due at different times; bands contain 90% of the episodes.", figures.timing(timings)),
    ]


def _write_report(command: Evaluate, outcomes: Mapping[str, SuiteOutcome], pictures: list[Any]) -> None:
    from keystride.evaluation.rendering.report import evaluation_page
    from keystride.files import write_atomically

    assert command.out is not None
    path = command.out / "report.html"
    page = evaluation_page(command.about, outcomes, pictures, _curve(command.policy))
    write_atomically(path, page)
    print(f"wrote {path}", file=sys.stderr)


def _curve(policy: str) -> dict[str, Any] | None:
    """Return the learning curve of the policy, or None."""
    from keystride.policy.bundle import CURVE, find, is_trained_run
    from keystride.policy.curve import read_bundle_curve, read_curve

    place = find(policy)
    if (place / CURVE).is_file():
        return read_bundle_curve(place / CURVE)
    if is_trained_run(place) and (place / "metrics.jsonl").is_file():
        return read_curve(place / "metrics.jsonl")
    return None
