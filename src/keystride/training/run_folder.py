"""The folder of a run: configuration, metrics, checkpoints and the best policy so far."""

import json
import time
from pathlib import Path
from typing import Any

import torch

from keystride.errors import FileError, UserError
from keystride.files import part_folder, refuse_links, write_atomically
from keystride.keyframes.goals import COMPONENTS
from keystride.learner import parallel
from keystride.learner.checkpoint import save_tree
from keystride.learner.trainer import Trainer, latest
from keystride.motion.library import Library
from keystride.policy.bundle import METRICS_FILE, POLICY_FILE, is_checkpoint
from keystride.policy.loading import load_weights, policy_content
from keystride.policy.provenance import read_settings, steps_of_checkpoint
from keystride.reading import read_json
from keystride.task.config import TaskConfig
from keystride.task.rewards import paper_widths
from keystride.training.build import KEYFRAME_KINDS, fixed_evaluation
from keystride.training.config import ResolvedStage, TrainingConfig, overridden
from keystride.training.progress import ProgressDisplay, loggers

Results = dict[str, float]
CHECKPOINTS = "checkpoints"


class RunFolder:
    """Stores what a run produces. Every process has an instance, but only the first process writes."""

    def __init__(self, config: TrainingConfig) -> None:
        self.config, self.folder = config, config.folder
        newest = latest(self.folder / CHECKPOINTS)
        self.steps = 0 if newest is None else steps_of_checkpoint(newest)
        self.best = float("inf")
        self.first_step = self.steps
        self.saved_at = self.started_at = time.monotonic()
        self.view = ProgressDisplay(config.name, config.learner.steps) if parallel.rank() == 0 else None
        self.loggers = loggers(config) if parallel.rank() == 0 else []

    def begin(self, trainer: Trainer, stage: ResolvedStage, library: Library) -> None:
        """Load the newest checkpoint into the trainer, or the initial weights if there is none."""
        self.trainer, self.stage, self.library = trainer, stage, library
        newest = latest(self.folder / CHECKPOINTS)
        if newest is not None:
            saved = read_settings(newest)
            trainer.load(newest, episodes=_same_episodes(saved, stage))
            rate = stage.config.learner.ppo.learning_rate
            if saved["learner"]["ppo"]["learning_rate"] != rate:  # otherwise the adapted rate is kept
                trainer.ppo.set_learning_rate(rate)
        elif self.config.start_from is not None:
            self._start_from(self.config.start_from)
        self.best = self._best_so_far()
        self.evaluated_at = trainer.steps // stage.config.learner.evaluate_steps
        if self.view:
            self.view.start(stage.name)
        if trainer.steps == 0:
            self._write(self._evaluate())

    def note(self, means: Results) -> None:
        """Log an iteration, and evaluate and save when due."""
        turn = self.trainer.steps // self.stage.config.learner.evaluate_steps
        if turn > self.evaluated_at or self.trainer.steps >= self.config.learner.steps:
            self.evaluated_at = turn
            means |= self._evaluate()
        self._write(means)
        minutes = (time.monotonic() - self.saved_at) / 60
        if first_process_says(minutes > self.stage.config.learner.checkpoint_minutes):
            self.save()

    def save(self) -> Path:
        """Write a checkpoint and return its folder."""
        place = self.trainer.save(self.folder / CHECKPOINTS, {"settings": self.stage.settings})
        self.saved_at = time.monotonic()
        self.steps = self.trainer.steps
        return place

    def close(self) -> None:
        """Close the display and the loggers."""
        if self.view:
            self.view.stop()
        for logger in self.loggers:
            logger.close()

    def _start_from(self, policy: Path) -> None:
        try:
            self.trainer.start_from(load_weights(policy).tree())
        except FileError as error:
            raise UserError(f"the networks of {policy} do not have the sizes of this run's: {error}") from error

    def _best_so_far(self) -> float:
        """Return the best score in this stage; scores of different stages are not comparable."""
        figures = self.folder / "best" / "figures.json"
        best = read_json(figures) if figures.exists() else {}
        if not isinstance(best, dict) or not isinstance(best.get("score", 0.0), int | float):
            raise FileError(f"{figures}: expected a mapping with a numeric score")
        return float(best.get("score", "inf")) if best.get("stage") == self.stage.name else float("inf")

    def _evaluate(self) -> Results:
        now = self.stage.config
        results = fixed_evaluation(self.trainer.averaged, self.library, now.task, now.evaluation)
        rated = score(self.stage.config.task, results)
        if self.view:
            self.view.show_evaluation(results, self.trainer.steps)
        if rated < self.best and self.trainer.steps:
            self.best = rated
            self._keep_best(results)
        return {f"evaluation/{name}": value for name, value in results.items()}

    def _keep_best(self, results: Results) -> None:
        if parallel.rank():
            return
        figures = {"score": self.best, "steps": self.trainer.steps, "stage": self.stage.name, **results}
        self._check_replaceable(self.folder / "best")
        with part_folder(self.folder / "best") as part:
            save_tree({**self.trainer.averaged_state(), "settings": self.stage.settings}, part / "learner")
            (part / "figures.json").write_text(json.dumps(figures))
        if self.stage.config.evaluation.export:
            write_atomically(self.folder / POLICY_FILE, policy_content(self.folder / "best", self.library.robot))

    def _check_replaceable(self, best: Path) -> None:
        """Raise an error rather than replace what this run did not write."""
        refuse_links(self.folder)
        if best.exists() and not is_checkpoint(best) and not (best.is_dir() and not any(best.iterdir())):
            raise UserError(f"{best} holds something that is not a checkpoint; move it away")

    def _write(self, means: Results) -> None:
        if self.view is None:
            return
        elapsed = time.monotonic() - self.started_at
        rate = (self.trainer.steps - self.first_step) / elapsed
        row = {"steps": self.trainer.steps, "seconds": round(elapsed, 2), "steps_per_second": round(rate), **means}
        if self.config.stages:
            row["stage"] = self.stage.number + 1
        with (self.folder / METRICS_FILE).open("a") as file:
            file.write(json.dumps({name: round(value, 6) for name, value in row.items()}) + "\n")
        for logger in self.loggers:
            logger.log(means, self.trainer.steps)
        self.view.show(row, self.trainer.seconds)


def first_process_says(value: bool) -> bool:
    """Return the value of the first process in all processes."""
    return any_process_says(value and parallel.rank() == 0)


def any_process_says(value: bool) -> bool:
    """Return whether the value is true in any process."""
    return bool(parallel.total(torch.tensor([float(value)])).item())


def score(task: TaskConfig, results: Results) -> float:
    """Return the sum of keyframe errors in units of the paper's kernel widths; lower is better."""
    widths = paper_widths(task.goal_widths)
    named = [
        (f"{kind}/{name}", width) for kind in KEYFRAME_KINDS for name, width in zip(COMPONENTS, widths, strict=True)
    ]
    return sum(results[name] / float(width) for name, width in named if name in results)


def _same_episodes(saved: dict[str, Any], stage: ResolvedStage) -> bool:
    """Return whether the episodes of a checkpoint with these settings can continue. Missing settings take their defaults."""
    values = dict(saved)
    name = values.pop("stage", "")
    try:
        before, now = overridden(TrainingConfig(), values), stage.config
    except UserError:  # settings from another version
        return False
    same = all(getattr(before, part) == getattr(now, part) for part in ("robot", "library", "authored", "task"))
    return same and name == stage.name and before.learner.ppo == now.learner.ppo
