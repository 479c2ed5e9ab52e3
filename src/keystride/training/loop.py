"""What each training process does: build the trainer of the current stage, iterate, go on to the next stage."""

import time

from keystride.errors import UserError
from keystride.learner import parallel
from keystride.learner.trainer import Trainer, TrainingStopped
from keystride.training.build import load_library, make_trainer
from keystride.training.config import ResolvedStage, TrainingConfig, stage_at
from keystride.training.run_folder import RunFolder, any_process_says
from keystride.training.signals import StopRequest


def run_process(config: TrainingConfig) -> int | None:
    """Train to the end, or until a signal comes: save then, and return the signal."""
    with StopRequest() as stop:
        parallel.start(config.device)
        run = RunFolder(config)
        try:
            stopped = _run_stages(config, run, stop)
        except TrainingStopped as error:
            raise UserError(str(error)) from error
        finally:
            run.close()
        parallel.stop()
        return stop.signal if stopped else None


def _run_stages(config: TrainingConfig, run: RunFolder, stop: StopRequest) -> bool:
    """Return whether training was stopped early."""
    library, clips = None, None
    while (stage := stage_at(config, run.steps)) is not None:
        if library is None or clips != (stage.config.library, stage.config.authored):
            library, clips = load_library(stage.config), (stage.config.library, stage.config.authored)
        trainer = make_trainer(stage.config, library)
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
    run.save()  # the next stage starts from this checkpoint, whether the run is resumed there or not
    return False
