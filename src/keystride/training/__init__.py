"""Train policies: `train(config)` runs a `TrainingConfig` to completion.

config      the configuration of a run: presets, files, stages, command line
start       validate, create or resume the run folder, start the processes
loop        the training loop of one process
run_folder  metrics, checkpoints and the best policy so far
"""

from keystride.training.config import PRESETS, EvaluationConfig, TrainingConfig, TrainingStage, read_config
from keystride.training.start import RunOutcome, train

__all__ = ["PRESETS", "EvaluationConfig", "RunOutcome", "TrainingConfig", "TrainingStage", "read_config", "train"]
