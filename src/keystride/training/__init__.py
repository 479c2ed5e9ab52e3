"""Training a policy: `train(config)` runs a `TrainingConfig` to its end.

config      everything that decides what a run learns, with presets, files and stages
start       checks, the folder, resuming; starts the processes
loop        what each process does
run_folder  metrics, checkpoints, the best policy so far
"""

from keystride.training.config import PRESETS, EvaluationConfig, TrainingConfig, TrainingStage, read_config
from keystride.training.start import RunOutcome, train

__all__ = ["PRESETS", "EvaluationConfig", "RunOutcome", "TrainingConfig", "TrainingStage", "read_config", "train"]
