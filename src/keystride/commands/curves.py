"""`keystride curves`: compare learning curves at equal sample counts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from keystride.errors import UserError


@dataclass(frozen=True)
class CompareCurves:
    """Compare learning curves at equal sample counts: the errors of every evaluation during training, as a table or a picture.

    Errors are means in m and rad; the posture error is the norm over the joints. docs/metrics.md explains all metrics of a run.
    """

    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Runs, bundles, or names of shipped policies."""
    plot: Path | None = None
    """Picture to write (.png, .svg, .pdf): errors at keyframes from clips and at random ones, and rewards, over control steps."""

    def run(self) -> int:
        curves = {_name(run, self.runs): _curve(run) for run in self.runs}
        for name, curve in curves.items():
            _print(name, curve)
        if self.plot is not None:
            from keystride.evaluation.rendering.figures import compared_curves
            from keystride.evaluation.rendering.plot_style import save_figure

            try:
                save_figure(compared_curves(curves), self.plot)
            except ValueError as error:
                raise UserError(str(error)) from error
            print(f"wrote {self.plot}")
        return 0


def _name(run: str, runs: tuple[str, ...]) -> str:
    """Return the folder's name, or the whole path if two runs have the same name."""
    alone = sum(Path(other).name == Path(run).name for other in runs) == 1
    return Path(run).name if alone else run


def _curve(run: str) -> dict[str, Any]:
    from keystride.policy.bundle import CURVE, METRICS_FILE, find
    from keystride.policy.curve import read_bundle_curve, read_curve

    if (
        Path(run) / METRICS_FILE
    ).is_file():  # before find, which needs a checkpoint: a run that has just begun has none
        return read_curve(Path(run) / METRICS_FILE)
    place = find(run)
    if (place / CURVE).is_file():
        return read_bundle_curve(place / CURVE)
    raise UserError(f"{run} has no learning curve: neither metrics.jsonl (of a run) nor curve.json (of a bundle)")


def _print(name: str, curve: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    evaluation = curve["evaluation"]
    errors = [column for column in evaluation if column.endswith(("/position", "/yaw", "/posture"))]
    survival = [column for column in evaluation if column.endswith("/survival")]
    title = f"{name}: {curve['steps'] / 1e6:.1f} million control steps, {curve['hours']:.1f} hours"
    if not evaluation["steps"]:
        print(
            f"{title}. No evaluation yet: a run is evaluated at the start, every learner.evaluate_steps control steps and at the end"
        )
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("million steps", *errors, "survival"):
        table.add_column(heading.replace("/", "\n"), justify="right")
    for i, steps in enumerate(evaluation["steps"]):
        alive = [evaluation[column][i] for column in survival if evaluation[column][i] is not None]
        values = [*(evaluation[column][i] for column in errors), min(alive, default=None)]
        table.add_row(f"{steps / 1e6:.1f}", *("" if value is None else f"{value:.3f}" for value in values))
    Console().print(table)
