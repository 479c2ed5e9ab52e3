"""Show the progress of a training run on the terminal, in TensorBoard and in Weights & Biases."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from keystride.errors import UserError
from keystride.training.config import TrainingConfig, plain_config

LINE_SECONDS = 20.0  # between plain lines
ERRORS = (
    ("position", "distance", 1.0, "m"),
    ("roll", "roll", 57.2958, "deg"),
    ("pitch", "pitch", 57.2958, "deg"),
    ("yaw", "yaw", 57.2958, "deg"),
    ("posture", "posture", 57.2958 / 12**0.5, "deg RMSE"),
)  # metric, label, factor, unit


def iteration_summary(row: dict[str, float]) -> list[tuple[str, str]]:
    """Return labels and formatted values with units for the metrics of an iteration."""
    errors = [
        (f"error: {name}", f"{row[f'kernel_error/{key}'] * factor:.3g} {unit}")
        for key, name, factor, unit in ERRORS
        if f"kernel_error/{key}" in row
    ]
    known = [
        ("keyframes within 0.2 m", "met", "{:.0%}"),
        ("episodes survived", "survival", "{:.1%}"),
        ("reward: goal, when due", "goal_reward_when_due", "{:.3f}"),
        ("reward: style", "reward/style", "{:.3f}"),
        ("reward: regularization", "reward/regularization", "{:.4f}"),
        ("discriminator accuracy on clips", "discriminator/real_right", "{:.0%}"),
        ("discriminator accuracy on policy", "discriminator/policy_right", "{:.0%}"),
        ("KL divergence", "kl", "{:.4f}"),
        ("action std", "std", "{:.3f}"),
        ("learning rate", "learning_rate", "{:.1e}"),
        ("random keyframes", "random_share", "{:.0%}"),
        ("control steps/s", "steps_per_second", "{:,.0f}"),
    ]
    return errors + [(label, form.format(row[name])) for label, name, form in known if name in row]


def where_time_goes(seconds: dict[str, float]) -> str:
    """Return the share of time spent in each part of an iteration."""
    total = sum(seconds.values()) or 1.0
    return ", ".join(f"{name} {part / total:.0%}" for name, part in seconds.items())


class ProgressDisplay:
    """A live table on a terminal, plain lines elsewhere. Only the first process shows it."""

    def __init__(self, name: str, total: int) -> None:
        self.console = Console()
        self.name = self.title = name
        self.evaluation = "none yet"
        self._live = Live(console=self.console, refresh_per_second=2) if self.console.is_terminal else None
        self._bar = Progress(
            TextColumn("{task.completed:,} of {task.total:,} steps"), BarColumn(), TimeRemainingColumn()
        )
        self._task = self._bar.add_task("", total=total)
        self._said = time.monotonic()

    def start(self, stage: str) -> None:
        """Begin a stage; the name is empty for a run without stages."""
        self.title = f"{self.name}: {stage}" if stage else self.name
        if stage:
            self.console.print(f"stage {stage}")
        if self._live:
            self._live.start()

    def stop(self) -> None:
        if self._live:
            self._live.stop()

    def show(self, row: dict[str, float], seconds: dict[str, float]) -> None:
        """Show the metrics of an iteration and the time spent in each part."""
        if self._live:
            self._bar.update(self._task, completed=row["steps"])
            self._live.update(self._table(row, seconds))
        elif time.monotonic() - self._said > LINE_SECONDS:
            self._said = time.monotonic()
            print(
                f"{row['steps']:,} steps  " + "  ".join(f"{label} {value}" for label, value in iteration_summary(row)),
                flush=True,
            )

    def show_evaluation(self, results: dict[str, float], steps: int) -> None:
        """Print the results of an evaluation."""
        self.evaluation = "  ".join(f"{name} {value:.3g}" for name, value in results.items())
        self.console.print(f"evaluation at {steps:,} steps: {self.evaluation}", soft_wrap=True)

    def _table(self, row: dict[str, float], seconds: dict[str, float]) -> Panel:
        table = Table.grid(padding=(0, 3))
        for label, value in iteration_summary(row):
            table.add_row(label, value)
        table.add_row("time spent in", where_time_goes(seconds))
        table.add_row("latest evaluation", self.evaluation)
        whole = Table.grid()
        whole.add_row(self._bar)
        whole.add_row(table)
        return Panel(whole, title=self.title)


class Logger(Protocol):
    """Receives the metrics of every iteration."""

    def log(self, metrics: Mapping[str, float], steps: int) -> None: ...
    def close(self) -> None: ...


def loggers(config: TrainingConfig) -> list[Logger]:
    """Return the loggers of a run: TensorBoard if installed, Weights & Biases if requested."""
    found: list[Logger] = []
    board = _summary_writer(config.folder / "tensorboard")
    if board is not None:
        found.append(TensorBoard(board))
    if config.wandb is not None:
        found.append(WeightsAndBiases(config, config.wandb))
    return found


class TensorBoard:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, metrics: Mapping[str, float], steps: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, steps)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Log to a W&B run with the name of the run folder; resuming continues the same W&B run."""

    def __init__(self, config: TrainingConfig, project: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise UserError("wandb is not installed; run `pip install wandb`") from error
        self._run = wandb.init(
            project=project,
            name=config.name,
            id=config.name,
            resume="allow",
            dir=str(config.folder),
            config=plain_config(config),
        )

    def log(self, metrics: Mapping[str, float], steps: int) -> None:
        self._run.log({**metrics, "steps": steps}, step=steps)

    def close(self) -> None:
        self._run.finish()


def _summary_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
