"""Where metrics go besides the run's folder: TensorBoard where it is installed, Weights & Biases when asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from keystride.errors import UserError
from keystride.training.config import TrainingConfig
from keystride.training.settings import plain


class Logger(Protocol):
    def log(self, metrics: Mapping[str, float], steps: int) -> None: ...
    def close(self) -> None: ...


def loggers(config: TrainingConfig) -> list[Logger]:
    """Return the loggers of a run; the first process has them."""
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
    """One W&B run per training run: it has the name of the folder, and goes on when training is resumed."""

    def __init__(self, config: TrainingConfig, project: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise UserError("wandb is not installed; it comes with: pip install wandb") from error
        self._run = wandb.init(
            project=project,
            name=config.name,
            id=config.name,
            resume="allow",
            dir=str(config.folder),
            config=plain(config),
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
