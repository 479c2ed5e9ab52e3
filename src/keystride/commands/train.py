"""`keystride train`: learn a policy."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from keystride.training.config import Flag, Preset, Settings, TrainingConfig, config_text
from keystride.training.launch import WorkerCrash
from keystride.training.start import train


@dataclass(frozen=True)
class Train:
    """Learn to meet keyframes on time, in the style of a motion library.

    The run lives in RUNS/NAME: configuration, metrics, checkpoints, the best policy so far. Ctrl-C and SIGTERM save it; it may
    also be killed at any moment. `--resume` continues it exactly where the newest checkpoint left it.

    Settings come from the preset, then from the --config file, then from the command line. --print-config shows the result.
    """

    config: Path | None = None
    """YAML file with settings, nested as --print-config prints them, and with stages if there are any."""
    preset: Preset | None = None
    """Complete configuration to start from. cpu (the default): the paper's method sized for a few cores. paper: the paper's own
    sizes. single-critic: the cpu preset with one critic for the weighted sum of all rewards."""
    print_config: Flag = False
    """Print the configuration as YAML and exit."""
    resume: Flag = False
    """Continue the run of this name with its own settings."""
    change: tuple[str, ...] = ()
    """Settings that may differ from the run's own on resuming, by path, such as learner.steps or task. The change is recorded in
    the run's changes.jsonl."""
    settings: Settings = field(default_factory=TrainingConfig)

    def run(self) -> int:
        if self.print_config:
            print(config_text(self.settings), end="")
            return 0
        try:
            outcome = train(self.settings, resume=self.resume, change=self.change)
        except WorkerCrash as error:  # its traceback is the one that matters
            print(error, file=sys.stderr)
            return 1
        print(outcome.message)
        return 0 if outcome.stopped_by is None else 128 + outcome.stopped_by
