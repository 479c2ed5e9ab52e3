"""`keystride train`: learn a policy."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from keystride.commands.errors import UserError
from keystride.commands.launch import launch
from keystride.learner.config import CPU, PRESETS, SINGLE_CRITIC, LearnerConfig
from keystride.task.config import TaskConfig


@dataclass(frozen=True)
class Train:
    """Learn to meet keyframes on time, in the style of a motion library.

    The run lives in RUNS/NAME: configuration, metrics, checkpoints, the best policy so far. It may be killed at any moment
    and continued with --resume.
    """

    preset: Literal["cpu", "paper"] = "cpu"
    """Where the defaults of all learner settings come from."""
    goals: Literal["position", "pose", "any"] = "position"
    """What keyframes hold: position alone, full poses, or any subset of position, roll, pitch, yaw and posture."""
    library: tuple[Path, ...] = ()
    """Folders of clips (see `keystride motion import`). None: the authored clips that ship with keystride."""
    authored: bool = True
    """Add the authored clips to the library."""
    name: str = "policy"
    """Name of the run."""
    runs: Path = Path("runs")
    resume: bool = False
    """Continue the run from its latest checkpoint."""
    start_from: Path | None = None
    """A policy whose weights the new run begins with: a shipped one by its name, a bundle, a run or a checkpoint."""
    critic: Literal["multi", "single"] = "multi"
    """One critic for each reward group, or (the baseline) one for their weighted sum."""
    processes: int = 0
    """Processes of one thread each that learn together on this machine; 0: one for each core. torchrun works too."""
    device: str = "cpu"
    """cpu, or cuda where there is one: networks go there, physics stays on the CPU."""
    learner: Annotated[LearnerConfig, tyro.conf.AvoidSubcommands] = field(default_factory=lambda: CPU)
    task: TaskConfig = field(default_factory=TaskConfig)

    def run(self) -> int:
        processes = self.processes or os.cpu_count() or 1
        if "WORLD_SIZE" not in os.environ and processes > 1:
            return launch(processes)
        from keystride.commands.training import train

        return train(self)

    def resolved(self) -> "Train":
        """With the choices on top folded into the settings they stand for."""
        groups = SINGLE_CRITIC if self.critic == "single" else self.learner.ppo.groups
        learner = replace(self.learner, ppo=replace(self.learner.ppo, groups=groups))
        return replace(self, learner=learner, task=replace(self.task, goals=self.goals))

    @property
    def folder(self) -> Path:
        return self.runs / self.name


def train_with_preset(arguments: list[str]) -> Train:
    """The command's defaults under the preset that the arguments name."""
    for i, word in enumerate(arguments):
        name = word.removeprefix("--preset=") if word.startswith("--preset=") else (arguments[i + 1 : i + 2] or [""])[0]
        if word.startswith("--preset") and name in PRESETS:
            return Train(preset=name, learner=PRESETS[name])  # type: ignore[arg-type]
    return Train()


def check_folder(command: Train) -> None:
    exists = (command.folder / "checkpoints").is_dir()
    if exists and not command.resume:
        raise UserError(f"{command.folder} holds a run already: continue it with --resume, or choose another --name")
    if command.resume and not exists:
        raise UserError(f"{command.folder} holds no checkpoint to resume from")
