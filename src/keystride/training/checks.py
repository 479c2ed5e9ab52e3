"""Validate a configuration before any folder is created or process started."""

import os
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from keystride.errors import FileError, UserError
from keystride.training.config import ResolvedStage, TrainingConfig, resolved_stages

AT_LEAST: dict[str, float] = {
    "processes": 0,
    "evaluation.robots": 1,
    "evaluation.control_steps": 1,
    "learner.environments": 1,
    "learner.horizon": 1,
    "learner.steps": 1,
    "learner.keep": 1,
    "learner.evaluate_steps": 1,
    "learner.checkpoint_minutes": 0,
    "learner.network.layers": 1,
    "learner.network.heads": 1,
    "learner.network.feedforward": 1,
    "learner.ppo.epochs": 1,
    "learner.ppo.critic_epochs": 1,
    "learner.ppo.minibatches": 1,
    "learner.ppo.learning_rate": 0,
    "learner.ppo.entropy": 0,
    "learner.discriminator.updates": 0,
    "learner.discriminator.batch": 1,
    "learner.discriminator.replay": 1,
    "task.max_keyframes": 1,
}
SHARE_SETTINGS = ("learner.average", "learner.ppo.gamma", "task.reference_start")  # between 0 and 1


def check(config: TrainingConfig, own_rewards: Collection[str] = ()) -> None:
    """Raise UserError for settings that would fail later. `own_rewards` names the caller's custom rewards."""
    _check_name(config)
    _check_device(config.device)
    _check_robot(config.robot)
    stages = resolved_stages(config)
    for stage in stages:
        _check_numbers(stage)
        _check_rewards(stage, own_rewards)
        _check_files(stage)
    processes = process_count(config)
    for stage in stages:
        _check_batch(stage, processes)
    if own_rewards and processes > 1 and "WORLD_SIZE" not in os.environ:
        raise UserError("rewards: custom reward functions need processes=1, or a script run by torchrun")
    if len(stages) > 1:
        _check_sizes(stages)


def process_count(config: TrainingConfig, cores: int | None = None) -> int:
    """Return the number of training processes: torchrun's world size, else the configured number, else one per core."""
    cores = cores or _available_cores()
    robots = [stage.config.learner.environments for stage in resolved_stages(config)]
    asked = int(os.environ.get("WORLD_SIZE", config.processes))
    if asked == 0:
        return next(n for n in range(cores, 0, -1) if all(number % n == 0 for number in robots))
    for number in robots:
        if number % asked:
            raise UserError(f"learner.environments: {number} robots cannot be divided evenly among {asked} processes")
    return asked


def value_at(config: Any, path: str) -> Any:
    """Return the setting at a dotted path."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_name(config: TrainingConfig) -> None:
    if config.name in ("", ".", "..") or "/" in config.name or os.sep in config.name:
        raise UserError(f"name: {config.name!r} is not a valid folder name; use --runs to choose its parent folder")


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    if device.partition(":")[0] != "cuda":
        raise UserError(f"device: {device!r} is not supported; use cpu, cuda or cuda:N")
    import torch

    if not torch.cuda.is_available():
        raise UserError(f"device: {device} requested, but torch finds no CUDA device; use --device cpu")


def _check_robot(name_or_path: str) -> None:
    from keystride.robot.catalogue import ROBOTS, load_robot
    from keystride.robot.model import load_model

    if name_or_path in ROBOTS:
        return
    try:
        load_model(load_robot(name_or_path), visual=False)
    except FileError as error:
        raise UserError(f"robot: {error}") from error


def _check_rewards(stage: ResolvedStage, own: Collection[str]) -> None:
    from keystride.task.rewards import REWARDS

    known = ["style", *REWARDS, *own]  # the style reward comes from the discriminator
    for group in stage.config.learner.ppo.groups:
        for name, _ in group.rewards:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
                place = _place(stage, f"learner.ppo.groups.{group.name}")
                raise UserError(f"{place}: unknown reward {name!r}; {hint}")


def _check_numbers(stage: ResolvedStage) -> None:
    for path, least in AT_LEAST.items():
        if value_at(stage.config, path) < least:
            raise UserError(f"{_place(stage, path)} must be at least {least}, not {value_at(stage.config, path)}")
    for path in SHARE_SETTINGS:
        if not 0.0 <= value_at(stage.config, path) <= 1.0:
            raise UserError(f"{_place(stage, path)} must lie between 0 and 1, not {value_at(stage.config, path)}")
    network = stage.config.learner.network
    for name in ("time_scales", "servo_column"):
        if getattr(network, name) not in (None, ()) and network.next_goal_time_column is None:
            raise UserError(f"{_place(stage, f'learner.network.{name}')} needs learner.network.next_goal_time_column")
    if not stage.config.learner.ppo.groups:
        raise UserError(f"{_place(stage, 'learner.ppo.groups')} must contain at least one group")


def _check_batch(stage: ResolvedStage, processes: int) -> None:
    learner = stage.config.learner
    samples = learner.environments // processes * learner.horizon
    if learner.ppo.minibatches > samples:
        raise UserError(
            f"{_place(stage, 'learner.ppo.minibatches')}: cannot split {samples} samples into {learner.ppo.minibatches} minibatches: "
            f"{learner.environments} robots x {learner.horizon} control steps over {processes} processes"
        )


def _check_files(stage: ResolvedStage) -> None:
    from keystride.motion.library import read_index
    from keystride.policy.bundle import find

    for folder in stage.config.library:
        read_index(folder)
    for policy in (stage.config.start_from, stage.config.position_teacher):
        if policy is not None:
            find(policy)


def _check_sizes(stages: list[ResolvedStage]) -> None:
    """Check that all stages have the same network sizes: they train the same networks."""
    if all(_network_settings(stage) == _network_settings(stages[0]) for stage in stages):
        return
    from keystride.training.build import network_sizes

    first = network_sizes(stages[0].config)
    for stage in stages[1:]:
        if network_sizes(stage.config) != first:
            raise UserError(
                f"stages.{stage.name}: changes the network sizes or the reward groups, which must be the same in every stage "
                "(a group's weight may be 0)"
            )


def _network_settings(stage: ResolvedStage) -> Any:
    learner = stage.config.learner
    return learner.network, learner.discriminator, [group.name for group in learner.ppo.groups]


def _place(stage: ResolvedStage, path: str) -> str:
    return f"stages.{stage.name}: {path}" if stage.name else path
