"""The loop of a training process: build the trainer of the current stage, iterate, continue with the next stage.

`python -m keystride.training.loop FOLDER` runs one of several processes that train the same run.
"""

import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from keystride.errors import UserError, explain
from keystride.learner import parallel
from keystride.learner.trainer import Trainer, TrainingStopped
from keystride.task.rewards import Reward
from keystride.training.build import load_library, make_trainer
from keystride.training.config import ResolvedStage, TrainingConfig, config_of_run, stage_at
from keystride.training.launch import StopRequest, follow_parent, report_failure
from keystride.training.run_folder import RunFolder, any_process_says


def run_process(config: TrainingConfig, rewards: Mapping[str, Reward] | None = None) -> int | None:
    """Train until the run is complete; on a signal, save and return the signal."""
    with StopRequest() as stop:
        parallel.start(config.device)
        run = RunFolder(config)
        try:
            stopped = _run_stages(config, rewards, run, stop)
        except TrainingStopped as error:
            raise UserError(str(error)) from error
        finally:
            run.close()
        parallel.stop()
        return stop.signal if stopped else None


def _run_stages(
    config: TrainingConfig, rewards: Mapping[str, Reward] | None, run: RunFolder, stop: StopRequest
) -> bool:
    """Return whether training was stopped early."""
    library, clips = None, None
    while (stage := stage_at(config, run.steps)) is not None:
        if library is None or clips != (stage.config.library, stage.config.authored):
            library, clips = load_library(stage.config), (stage.config.library, stage.config.authored)
        trainer = make_trainer(stage.config, library, rewards)
        run.begin(trainer, stage, library)
        if _run_stage(trainer, stage, run, stop):
            return True
    return False


def _run_stage(trainer: Trainer, stage: ResolvedStage, run: RunFolder, stop: StopRequest) -> bool:
    begun = trainer.steps
    while trainer.steps < stage.until:
        if any_process_says(stop.requested):
            if trainer.steps > begun:
                run.save()
            return True
        start = time.perf_counter()
        means = trainer.iterate()
        run.note({**means, "iteration_seconds": time.perf_counter() - start})
    run.save()  # the next stage starts from this checkpoint, even without an interruption
    return False


def run_worker(folder: Path) -> int:
    """Train the run in this folder as one of several processes; return the exit code."""
    follow_parent()
    try:
        run_process(config_of_run(folder))
    except Exception as error:
        message = explain(error)  # None if the failure is a bug
        report_failure(message or traceback.format_exc(), by_user=message is not None)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run_worker(Path(sys.argv[1])))
