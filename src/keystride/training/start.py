"""`train`: validate a configuration, prepare the run folder and start the training processes."""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keystride.errors import UserError
from keystride.files import recover, refuse_links
from keystride.training.checks import check, process_count
from keystride.training.config import (
    CONFIG,
    TrainingConfig,
    config_of_run,
    differences,
    is_within,
    plain_config,
    write_config,
)
from keystride.training.launch import WorkerKilled, launch

if TYPE_CHECKING:
    from keystride.task.rewards import Reward

CHANGES = "changes.jsonl"  # record of settings changed on resuming
MOVABLE = ("name", "runs")  # a run folder may be renamed or moved


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of `train`."""

    folder: Path
    steps: int
    """Control steps in the newest checkpoint; 0 if there is none."""
    stopped_by: int | None
    """The signal that stopped the run early, if any."""

    @property
    def message(self) -> str:
        """Return one line that says what was saved and how to continue."""
        if self.stopped_by is None:
            return f"finished at {self.steps:,} control steps: {self.folder}"
        if not self.steps:
            return f"stopped before the first checkpoint; start over with `{resume_command(self.folder)}`"
        return f"stopped and saved at {self.steps:,} control steps; continue with `{resume_command(self.folder)}`"


def train(
    config: TrainingConfig,
    *,
    resume: bool = False,
    change: Sequence[str] = (),
    rewards: "Mapping[str, Reward] | None" = None,
) -> RunOutcome:
    """Train a run to completion; on SIGINT or SIGTERM, save it and return.

    `resume` continues the run in `config.folder`. Settings that differ from those of the run are rejected unless `change` lists
    them or a section that contains them: "task" allows every setting of the task to change.

    `rewards` maps names used in `config.learner.ppo.groups` to custom reward functions, in addition to `task.rewards.REWARDS`.
    They exist in this process only and therefore require processes=1 or torchrun.
    """
    check(config, rewards or {})
    torchrun = "WORLD_SIZE" in os.environ
    if torchrun and os.environ.get("RANK", "0") != "0":
        return _outcome(config.folder, _run_here(config, rewards))
    if not resume and was_started(config.folder):
        raise UserError(f"{config.folder} already contains a run: continue it with --resume, or choose another --name")
    if resume and not was_started(config.folder):
        raise UserError(f"{config.folder} contains no run to resume")
    with _locked(config.folder) as lock:
        if resume:
            recover(config.folder / "best")
            _record_changes(config, change)
        write_config(config, config.folder)
        processes = process_count(config)
        if torchrun or processes == 1:
            return _outcome(config.folder, _run_here(config, rewards))
        command = [sys.executable, "-m", "keystride.training.loop", str(config.folder)]
        try:
            return _outcome(config.folder, launch(command, processes, files=lock))
        except WorkerKilled as error:
            raise UserError(
                f"{error}; continue from the last checkpoint with `{resume_command(config.folder)}`"
            ) from None


def was_started(folder: Path) -> bool:
    """Return whether a run was started in this folder; it may have no checkpoint yet."""
    return (folder / CONFIG).exists() or (folder / "checkpoints").exists()


def resume_command(folder: Path) -> str:
    """Return the command line that continues a run."""
    place = [] if folder.parent == Path("runs") else ["--runs", str(folder.parent)]
    return shlex.join(["keystride", "train", *place, "--name", folder.name, "--resume"])


def _run_here(config: TrainingConfig, rewards: "Mapping[str, Reward] | None") -> int | None:
    from keystride.training.loop import run_process  # imports torch

    return run_process(config, rewards)


def _record_changes(config: TrainingConfig, allowed: Sequence[str]) -> None:
    """Reject settings that differ from those of the run, except the allowed ones, which are recorded."""
    changes = differences(plain_config(config_of_run(config.folder)), plain_config(config))
    changes = {path: pair for path, pair in changes.items() if path not in MOVABLE}
    refused = [path for path in changes if not any(is_within(path, name) for name in allowed)]
    if refused:
        differing = "; ".join(
            f"{path} is {_short(changes[path][0])}, not {_short(changes[path][1])}" for path in refused
        )
        raise UserError(
            f"{config.folder} was started with other settings: {differing}. "
            f"To continue with the new ones, add --change {' '.join(refused)}"
        )
    if changes:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "steps": steps_saved(config.folder),
            "changes": {path: {"from": old, "to": new} for path, (old, new) in changes.items()},
        }
        with (config.folder / CHANGES).open("a") as file:
            file.write(json.dumps(entry) + "\n")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def steps_saved(folder: Path) -> int:
    """Return the number of control steps in the newest checkpoint of a run."""
    from keystride.policy.bundle import run_checkpoint
    from keystride.policy.provenance import steps_of_checkpoint

    newest = run_checkpoint(folder, newest=True)
    return 0 if newest is None else steps_of_checkpoint(newest)


def _outcome(folder: Path, stopped_by: int | None) -> RunOutcome:
    return RunOutcome(folder, steps_saved(folder), stopped_by)


@contextmanager
def _locked(folder: Path) -> Iterator[list[int]]:
    """Prevent other processes from training the same run. Workers inherit the lock, which is held until the last of them exits."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, folder / "checkpoints"):
        refuse_links(place)
    try:
        import fcntl
    except ImportError:  # Windows
        yield []
        return
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(descriptor, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is training {folder}") from None
        yield [file.fileno()]
