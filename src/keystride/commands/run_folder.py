"""A run's folder: configuration, metrics, checkpoints, the best policy so far."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml

from keystride.commands.errors import UserError
from keystride.commands.live import View
from keystride.commands.train import Train
from keystride.keyframes.goals import COMPONENTS
from keystride.learner import parallel
from keystride.learner.checkpoint import publish, save_tree
from keystride.learner.trainer import Trainer, latest
from keystride.policy.files import write_file
from keystride.policy.opening import policy_content
from keystride.policy.weights import load_weights
from keystride.task.rewards import paper_widths

Results = dict[str, float]
KINDS = ("dataset", "random")  # the keyframes that an evaluation tries


class RunFolder:
    """Every process has one; the first writes."""

    def __init__(self, command: Train, trainer: Trainer, evaluate: Callable[[], Results]) -> None:
        self.command, self.trainer, self.evaluate = command, trainer, evaluate
        self.folder = command.folder
        self.best = float("inf")
        self.saved_at = self.started_at = time.monotonic()
        self.evaluated_at = self.first_step = 0
        self.view = View(command.name, command.learner.steps) if parallel.rank() == 0 else None
        self.board = _tensorboard(self.folder) if parallel.rank() == 0 else None

    def begin(self) -> None:
        newest = latest(self.folder / "checkpoints")
        if self.command.resume and newest is not None:
            self.trainer.load(newest)
            best = self.folder / "best" / "figures.json"
            self.best = json.loads(best.read_text())["score"] if best.exists() else self.best
        elif self.command.start_from is not None:
            self._start_from(self.command.start_from)
        self.first_step = self.trainer.steps
        self.evaluated_at = self.trainer.steps // self.command.learner.evaluate_steps
        if self.view:
            self.folder.mkdir(parents=True, exist_ok=True)
            settings = json.loads(json.dumps(asdict(self.command), default=str))
            (self.folder / "config.yaml").write_text(yaml.safe_dump(settings))
            self.view.start()

    def end(self) -> None:
        if self.view:
            self.view.stop()

    def note(self, means: Results) -> None:
        """After every iteration: log, now and then evaluate and keep."""
        turn = self.trainer.steps // self.command.learner.evaluate_steps
        if turn > self.evaluated_at:
            self.evaluated_at = turn
            means |= self._evaluate()
        if self.view:
            self._write(means, self.view)
        if self._agreed(time.monotonic() - self.saved_at > 60 * self.command.learner.checkpoint_minutes):
            self.keep()

    def keep(self) -> None:
        self.trainer.save(self.folder / "checkpoints")
        self.saved_at = time.monotonic()

    def _start_from(self, policy: Path) -> None:
        try:
            self.trainer.load_weights(load_weights(policy).tree())
        except RuntimeError as error:  # torch lists every tensor
            raise UserError(f"the networks of {policy} are of other sizes than those of this run") from error

    def _evaluate(self) -> Results:
        results = self.evaluate()
        if self.view:
            self.view.tell(results, self.trainer.steps)
            if score(self.command, results) < self.best:
                self._keep_best(results)
        self.best = min(self.best, score(self.command, results))
        return {f"evaluation/{name}": value for name, value in results.items()}

    def _keep_best(self, results: Results) -> None:
        part = self.folder / "best.part"
        part.mkdir(exist_ok=True)
        save_tree(self.trainer.averaged_state(), part / "learner")
        figures = {"score": score(self.command, results), "steps": self.trainer.steps, **results}
        (part / "figures.json").write_text(json.dumps(figures))
        publish(part, self.folder / "best")
        write_file(policy_content(self.folder / "best"), self.folder / "policy.onnx")

    def _agreed(self, wish: bool) -> bool:
        """The first process decides for all."""
        return bool(parallel.total(torch.tensor([float(wish and parallel.rank() == 0)])).item())

    def _write(self, means: Results, view: View) -> None:
        elapsed = time.monotonic() - self.started_at
        rate = (self.trainer.steps - self.first_step) / elapsed
        row = {"steps": self.trainer.steps, "seconds": round(elapsed, 2), "steps_per_second": round(rate), **means}
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({k: round(v, 6) for k, v in row.items()}) + "\n")
        if self.board is not None:
            for name, value in means.items():
                self.board.add_scalar(name, value, self.trainer.steps)
        view.show(row, self.trainer.seconds)


def score(command: Train, results: Results) -> float:
    """Keyframe errors in units of the paper's kernel widths, summed; lower is better."""
    widths = paper_widths(command.task.goal_widths)
    named = [(f"{kind}/{name}", width) for kind in KINDS for name, width in zip(COMPONENTS, widths, strict=True)]
    return sum(results[name] / float(width) for name, width in named if name in results)


def _tensorboard(folder: Path) -> Any:
    """Where the extra is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"))
