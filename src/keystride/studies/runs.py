"""Configure and train the runs of a study, one after the other, continuing those that were stopped."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from math import hypot
from pathlib import Path
from typing import Any, Literal

from keystride.errors import UserError
from keystride.learner.config import CPU, MULTI_CRITIC, RewardGroup
from keystride.motion.library import Library
from keystride.policy.bundle import run_checkpoint
from keystride.policy.runtime import Network, Policy
from keystride.reading import MOST_NAMED, one_line
from keystride.robot.description import Robot
from keystride.task.config import GoalWidths, KeyframeRanges, TaskConfig
from keystride.training.config import EvaluationConfig, TrainingConfig, TrainingStage, differences, plain_config
from keystride.training.start import config_of_run, steps_saved, train, was_started

TAIL_STEPS = (50, 50)  # paper, training procedure: an episode ends about one second after its last keyframe
BAR = 30  # characters
LONGEST_WAIT = 300.0  # s for the processes of a killed study to save and exit


class StudyStopped(Exception):
    """A signal stopped a run. It is saved, and running the study again continues it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.signal = number


@dataclass(frozen=True)
class Size:
    """The size of a study: number of seeds, and the sizes of every run."""

    steps: int = 6_000_000
    seeds: int = 2
    robots: int = CPU.environments
    evaluate_steps: int = 500_000
    evaluation_robots: int = 128
    evaluation_steps: int = 500
    episodes: int = 256
    processes: int = 0


QUICK = Size(
    steps=4 * 1536,
    robots=32,
    evaluate_steps=2 * 1536,
    evaluation_robots=16,
    evaluation_steps=150,
    episodes=16,
    processes=1,
)
"""Runs within minutes, without learning anything."""

LEAST_STEPS = 1_000_000  # robots do not walk with fewer


def size_warning(size: Size) -> tuple[str, ...]:
    """Return a warning if the study is too small for meaningful results, else nothing."""
    small = size.steps < LEAST_STEPS
    return ("Too few control steps for a robot to learn to walk: these results say nothing about the method.",) * small


def single_critic(goal_weight: float) -> tuple[RewardGroup, ...]:
    """Return one reward group for the sum of the paper's rewards, with style and regularization weighted as in the multi-critic.

    Its advantage weight gives the same spread as the multi-critic's sum of independent advantages, so that the entropy bonus
    has the same relative weight.
    """
    weights = {group.name: group.advantage_weight for group in MULTI_CRITIC}
    rewards = tuple((weights | {"goal": goal_weight}).items())
    return (RewardGroup("all", hypot(*weights.values()), rewards),)


def fixed_widths(width: float) -> GoalWidths:
    """Return kernel widths that do not follow the error: `width` in m for positions, the other components in proportion."""
    factor = width / GoalWidths().position
    return GoalWidths(start=factor, narrowest=factor)


def paper_task(
    size: Size, width: float, interval_steps: tuple[int, int] = (25, 50), see: Literal["all", "next"] = "all"
) -> TaskConfig:
    """Return the paper's task with position goals. Random keyframes reach their full share half-way through the run."""
    return TaskConfig(
        goals="position",
        see=see,
        tail_steps=TAIL_STEPS,
        ranges=KeyframeRanges(interval_steps=interval_steps, random_ramp=max(size.steps // 2, 1)),
        goal_widths=fixed_widths(width),
    )


def run_config(
    size: Size,
    folder: Path,
    name: str,
    seed: int,
    task: TaskConfig,
    groups: tuple[RewardGroup, ...] = MULTI_CRITIC,
    stages: tuple[TrainingStage, ...] = (),
    robot: str = "go2",
) -> TrainingConfig:
    """Return the configuration of a run: the CPU preset without its additions to the paper, on the built-in clips."""
    learner = replace(
        CPU,
        environments=size.robots,
        steps=size.steps,
        seed=seed,
        evaluate_steps=size.evaluate_steps,
        checkpoint_minutes=1.0,
        keep=1,
        network=replace(CPU.network, next_goal_time_column=None),  # keyframes only enter through the encoder
        ppo=replace(CPU.ppo, groups=groups),
    )
    return TrainingConfig(
        name=name,
        runs=folder,
        robot=robot,
        processes=size.processes,
        evaluation=EvaluationConfig(size.evaluation_robots, size.evaluation_steps, export=False),
        learner=learner,
        task=task,
        stages=stages,
    )


@cache
def study_library(robot: str = "go2") -> Library:
    """Return the built-in clips, on which all runs of a study are trained."""
    from keystride.training.build import load_library

    return load_library(TrainingConfig(robot=robot))


def finish_runs(
    configs: Sequence[TrainingConfig],
    *,
    kept: Callable[[TrainingConfig], bool] = lambda config: False,
    keep: Callable[[TrainingConfig], None] = lambda config: None,
) -> None:
    """Train every run to completion. Finished runs are skipped; stopped or killed ones continue from their last checkpoint.

    A run whose result is `kept` needs no folder; `keep` is called for every other run when it is finished.
    """

    def saved(config: TrainingConfig) -> int:
        return config.learner.steps if kept(config) else min(_saved(config), config.learner.steps)

    total = sum(config.learner.steps for config in configs)
    begun, trained = time.monotonic(), 0
    for number, config in enumerate(configs, start=1):
        if kept(config):
            continue
        _check_settings(config)
        left = config.learner.steps - saved(config)
        if left > 0:
            done = sum(map(saved, configs))
            remaining = (time.monotonic() - begun) * (total - done) / trained if trained else None
            print(progress_line(done / total, f"run {number} of {len(configs)}, {config.name}", remaining), flush=True)
            wait_until_free(config.folder)
            outcome = train(config, resume=was_started(config.folder))
            if outcome.stopped_by is not None:
                raise StudyStopped(outcome.stopped_by)
            trained += left
        keep(config)
    print(progress_line(1.0, f"{len(configs)} runs finished"), flush=True)


def progress_line(share: float, text: str, seconds_left: float | None = None) -> str:
    """Return a progress bar with a text and the time left."""
    filled = round(BAR * share)
    left = "" if seconds_left is None else f", about {max(round(seconds_left / 60), 1)} min left"
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {share:.0%}: {text}{left}"


def final_policy(run: Path, robot: Robot) -> Policy:
    """Return the final policy of a run, with the averaged weights that evaluations during training also use."""
    from keystride.learner.checkpoint import load_module, load_tree
    from keystride.policy.export import load_trained, policy_file

    checkpoint = run_checkpoint(run, newest=True)
    if checkpoint is None:
        raise UserError(f"{run} contains no checkpoint: the run is not finished")
    trained, averaged = load_trained(checkpoint, robot), load_tree(checkpoint / "learner")["averaged"]
    load_module(trained.actor, averaged)
    weights = replace(trained.weights, actor=dict(averaged))
    return Policy(Network(policy_file(replace(trained, weights=weights), robot), robot=robot))


def _saved(config: TrainingConfig) -> int:
    return steps_saved(config.folder) if was_started(config.folder) else 0


def _check_settings(config: TrainingConfig) -> None:
    """Raise UserError if the run was started with other settings."""
    if (config.folder / "config.yaml").is_file():
        check_same_settings(plain_config(config_of_run(config.folder)), config, config.folder)


def check_same_settings(settings: Mapping[str, Any], config: TrainingConfig, place: Path) -> None:
    """Raise UserError if a run with these settings, stored at `place`, is not the one that a study needs."""
    changes = differences(settings, plain_config(config))
    changes = {path: pair for path, pair in changes.items() if path not in ("name", "runs")}
    if changes:
        parts = (
            f"{one_line(path, 60)} was {one_line(old, 60)}, now {one_line(new, 60)}"
            for path, (old, new) in changes.items()
        )
        differing = "; ".join(islice(parts, MOST_NAMED)) + ("; and more" if len(changes) > MOST_NAMED else "")
        raise UserError(f"{place} was started with other settings ({differing}): choose another --out")


def wait_until_free(folder: Path) -> None:
    """Wait until no process holds the lock of a run: the processes of a killed study save the run before they exit."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    if not (folder / ".lock").exists():
        return
    deadline = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < deadline:
        with (folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.2)
