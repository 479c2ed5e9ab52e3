"""Commands about training runs: `keystride train`, `keystride curves` and `keystride export`."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from keystride.errors import UserError
from keystride.training.checks import check_settings
from keystride.training.config import Flag, Preset, Settings, TrainingConfig, config_text
from keystride.training.launch import WorkerCrash
from keystride.training.start import train


@dataclass(frozen=True)
class Train:
    """Train a policy to reach keyframes on time, in the style of a motion library.

    The run is stored in RUNS/NAME: configuration, metrics, checkpoints and the best policy so far. Ctrl-C and SIGTERM save a
    checkpoint before exiting, and it is safe to kill the command at any time. `--resume` continues exactly from the newest checkpoint.

    Command-line settings override those of the --config file, which override those of the preset. --print-config shows the result.
    """

    config: Path | None = None
    """YAML file with settings, nested as in the output of --print-config, and optional stages."""
    preset: Preset | None = None
    """Complete configuration to start from. cpu (the default): the paper's method, sized for a few CPU cores.
    paper: the paper's sizes. single-critic: the cpu preset with one critic for the weighted sum of all rewards."""
    print_config: Flag = False
    """Print the configuration as YAML and exit."""
    resume: Flag = False
    """Continue the run NAME with its own settings."""
    change: tuple[str, ...] = ()
    """Settings or sections that may change on resuming, such as learner.steps or task. RUN/changes.jsonl records the changes."""
    settings: Settings = field(default_factory=TrainingConfig)

    def run(self) -> int:
        if self.print_config:
            check_settings(self.settings)
            print(config_text(self.settings), end="")
            return 0
        try:
            outcome = train(self.settings, resume=self.resume, change=self.change)
        except WorkerCrash as error:  # the message contains the worker's traceback; ours adds nothing
            print(error, file=sys.stderr)
            return 1
        print(outcome.message)
        return 0 if outcome.stopped_by is None else 128 + outcome.stopped_by


@dataclass(frozen=True)
class CompareCurves:
    """Compare learning curves at equal sample counts: print the errors of every evaluation during training, and optionally plot them.

    Errors are means of position (m), yaw (rad) and posture (rad, norm over the joints). docs/metrics.md explains all metrics.
    """

    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help_behavior_hint="")] = ()
    """Runs, bundles, or names of built-in policies."""
    plot: Path | None = None
    """Plot to write (.png, .svg or .pdf): errors at keyframes from clips and at random keyframes, and rewards, over control steps."""

    def run(self) -> int:
        if not self.runs:
            raise UserError(
                "no run given; usage: keystride curves RUN... (runs, bundles, or names of built-in policies)"
            )
        curves = {_curve_name(run, self.runs): _read_curve(run) for run in self.runs}
        for name, curve in curves.items():
            _print_curve(name, curve)
        if self.plot is not None:
            from keystride.evaluation.rendering.figures import compared_curves
            from keystride.plotting import save_figure

            try:
                save_figure(compared_curves(curves), self.plot)
            except ValueError as error:
                raise UserError(str(error)) from error
            print(f"wrote {self.plot}")
        return 0


def _curve_name(run: str, runs: tuple[str, ...]) -> str:
    """Return the folder name, or the full path if two runs have the same name."""
    alone = sum(Path(other).name == Path(run).name for other in runs) == 1
    return Path(run).name if alone else run


def _read_curve(run: str) -> dict[str, Any]:
    from keystride.policy.bundle import CURVE, METRICS_FILE, find
    from keystride.policy.curve import read_bundle_curve, read_curve

    metrics = Path(run) / METRICS_FILE
    if metrics.is_file():  # checked before `find`, which needs a checkpoint: a run that has just begun has none
        return read_curve(metrics)
    place = find(run)
    if (place / CURVE).is_file():
        return read_bundle_curve(place / CURVE)
    raise UserError(f"{run} has no learning curve: found neither metrics.jsonl (run) nor curve.json (bundle)")


ERROR_PARTS = ("position", "yaw", "posture")


def _error(evaluation: dict[str, Any], column: str, row: int) -> str:
    """Return the error of an evaluation, in m to three digits and in rad to two, or a dash if it has none."""
    values = evaluation.get(column)
    if values is None or values[row] is None:
        return "-"
    return f"{values[row]:.{3 if column.endswith('/position') else 2}f}"


def _print_curve(name: str, curve: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    from keystride.evaluation.tables import table_console

    evaluation = curve["evaluation"]
    kinds = [column.removesuffix("/position") for column in evaluation if column.endswith("/position")]
    survival = [column for column in evaluation if column.endswith("/survival")]
    title = f"{name}: {curve['steps'] / 1e6:.1f} million control steps, {curve['hours']:.1f} hours"
    if not evaluation["steps"]:
        print(
            f"{title}. No evaluation yet: runs are evaluated at the start, every learner.evaluate_steps control steps, and at the end"
        )
        return
    print(title)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("million\nsteps", *(f"{kind}\nm, rad, rad" for kind in kinds), "survival"):
        table.add_column(heading, justify="right")
    for i, steps in enumerate(evaluation["steps"]):
        alive = [evaluation[column][i] for column in survival if evaluation[column][i] is not None]
        errors = [" ".join(_error(evaluation, f"{kind}/{part}", i) for part in ERROR_PARTS) for kind in kinds]
        table.add_row(f"{steps / 1e6:.2f}", *errors, f"{min(alive):.3f}" if alive else "")
    table_console().print(table)


@dataclass(frozen=True)
class Export:
    """Export a policy as a self-describing ONNX file that runs without torch, or as a bundle folder.

    Example: `keystride export runs/policy --out policy.onnx`.
    """

    policy: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """Name of a built-in policy, a bundle folder, an ONNX file, a training run (its best checkpoint) or a checkpoint."""
    out: Path | None = None
    """ONNX file to write."""
    bundle: Path | None = None
    """Bundle folder to write: weights, ONNX files of policy and critics, configuration, learning curve and model card."""
    newest: bool = False
    """Use the newest checkpoint of a run instead of its best."""
    card_figures: Path | None = None
    """Results written by `keystride evaluate --json`, for the model card of the bundle."""
    card_notes: Path | None = None
    """Markdown file with known limitations, for the model card of the bundle."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""

    def run(self) -> int:
        if self.out is None and self.bundle is None:
            raise UserError("nothing to write: give --out FILE.onnx or --bundle FOLDER")
        from keystride.files import write_atomically
        from keystride.policy.loading import policy_content
        from keystride.policy.packing import pack
        from keystride.policy.runtime import Policy
        from keystride.robot.catalogue import load_robot

        place, robot = self._place(), load_robot(self.robot)
        if self.out is not None:
            write_atomically(self.out, policy_content(place, robot))
            _say_written(self.out, Policy.load(self.out, robot=robot).metadata.licence)
        if self.bundle is not None:
            pack(place, self.bundle, self.card_figures, self.card_notes, robot=robot)
            _say_written(self.bundle, Policy.load(self.bundle, robot=robot).metadata.licence)
        return 0

    def _place(self) -> Path:
        from keystride.policy.bundle import find, is_trained_run, run_checkpoint

        place = find(self.policy)
        if not self.newest:
            return place
        if not is_trained_run(place):
            raise UserError(f"--newest: {place} is not a training run")
        checkpoint = run_checkpoint(place, newest=True)
        if checkpoint is None:
            raise UserError(f"{place} contains no checkpoint yet")
        return checkpoint


def _say_written(path: Path, licence: str) -> None:
    if "unknown" in licence:
        print(
            "warning: the licence of some training clips is unknown; export on a machine that has the motion libraries",
            file=sys.stderr,
        )
    print(f"wrote {path} (licence of the weights: {licence})")
