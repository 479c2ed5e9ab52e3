"""`keystride curves`: how runs learnt, side by side."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from keystride.commands.errors import UserError


@dataclass(frozen=True)
class CompareCurves:
    """Learning curves on equal samples: the errors of every evaluation while training, as a table and as a picture.

    Errors are means in m and rad, that of the posture is the norm over the joints.
    """

    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Runs, bundles, or names of shipped policies."""
    plot: Path | None = None
    """Write a picture (.png, .svg, .pdf): errors on dataset and random keyframes, and rewards, over control steps."""

    def run(self) -> int:
        curves = {_name(run, self.runs): _curve(run) for run in self.runs}
        for name, curve in curves.items():
            _print(name, curve)
        if self.plot is not None:
            from keystride.evaluation.figures import compared_curves
            from keystride.evaluation.ink import save_figure

            try:
                save_figure(compared_curves(curves), self.plot)
            except ValueError as error:
                raise UserError(str(error)) from error
            print(f"wrote {self.plot}")
        return 0


def _name(run: str, runs: tuple[str, ...]) -> str:
    """The folder's name, unless two are called the same."""
    alone = sum(Path(other).name == Path(run).name for other in runs) == 1
    return Path(run).name if alone else run


def _curve(run: str) -> dict[str, Any]:
    from keystride.policy.bundle import CURVE, METRICS, find
    from keystride.policy.curve import read_curve

    place = find(run)
    if (place / METRICS).is_file():
        return read_curve(place / METRICS)
    if (place / CURVE).is_file():
        return json.loads((place / CURVE).read_text())
    raise UserError(f"{run}: neither a run nor a bundle, so nothing is known of how it learnt")


def _print(name: str, curve: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    evaluation = curve["evaluation"]
    errors = [column for column in evaluation if column.endswith(("/position", "/yaw", "/posture"))]
    title = f"{name}: {curve['steps'] / 1e6:.1f} million control steps, {curve['hours']:.1f} hours"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("million steps", *errors, "survival"):
        table.add_column(heading.replace("/", "\n"), justify="right")
    for i, steps in enumerate(evaluation["steps"]):
        alive = min(evaluation[f"{kind}/survival"][i] for kind in ("dataset", "random"))
        values = [evaluation[column][i] for column in errors]
        table.add_row(f"{steps / 1e6:.1f}", *("" if v is None else f"{v:.3f}" for v in values), f"{alive:.3f}")
    Console().print(table)
