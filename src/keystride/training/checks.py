"""Validate a configuration before any folder is created or process started."""

import os
from collections.abc import Callable, Collection
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from keystride.errors import FileError, UserError
from keystride.reading import one_line
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
    "learner.network.width": 0,
    "learner.network.layers": 1,
    "learner.network.heads": 1,
    "learner.network.feedforward": 1,
    "learner.network.mlp": 1,
    "learner.ppo.epochs": 1,
    "learner.ppo.critic_epochs": 1,
    "learner.ppo.minibatches": 1,
    "learner.ppo.critic_warmup_steps": 0,
    "learner.ppo.learning_rate": 0,
    "learner.ppo.entropy": 0,
    "learner.ppo.clone": 0,
    "learner.ppo.clone_steps": 1,
    "learner.ppo.imitation_steps": 0,
    "learner.ppo.exploration.learning_rate": 0,
    "learner.discriminator.hidden": 1,
    "learner.discriminator.learning_rate": 0,
    "learner.discriminator.updates": 0,
    "learner.discriminator.batch": 1,
    "learner.discriminator.gradient_penalty": 0,
    "learner.discriminator.weight_decay": 0,
    "learner.discriminator.blur": 0,
    "learner.discriminator.replay": 1,
    "task.max_keyframes": 1,
    "task.tail_steps": 1,
    "task.ranges.interval_steps": 1,
    "task.ranges.radius": 0,
    "task.ranges.count": 0,
    "task.ranges.random_ramp": 0,
    "task.ranges.everyday.interval_steps": 1,
    "task.ranges.everyday.turn_rate": 0,
    "task.ranges.everyday.reaction": 0,
    "task.regularization.joint_acceleration_tolerance": 0,
}
"""Least value of a setting, or of each entry of a tuple."""
ABOVE_ZERO = (
    "learner.network.time_scales",
    "learner.network.initial_std",
    "learner.ppo.learning_rate_range",
    "learner.ppo.target_kl",
    "learner.ppo.clip",
    "learner.ppo.max_gradient_norm",
    "learner.ppo.clone_scale",
    "learner.ppo.exploration.std_range",
    "learner.ppo.exploration.final_std",
    "task.ranges.everyday.speed_ahead",
    "task.ranges.everyday.speed_back",
    "task.ranges.everyday.speed_sideways",
    "task.ranges.everyday.height",
    *(f"task.goal_widths.{name}" for name in ("position", "roll", "pitch", "yaw", "posture")),
    *(f"task.goal_widths.{name}" for name in ("start", "follow", "narrowest")),
    *(f"task.regularization.{name}" for name in ("action_rate", "base_acceleration", "joint_acceleration")),
    "task.regularization.soft_limits",
)
BETWEEN_0_AND_1 = (
    "learner.average",
    "learner.ppo.gamma",
    "learner.ppo.lam",
    "learner.ppo.value_lam",
    "learner.ppo.exploration.correlation",
    "learner.ppo.exploration.anneal_share",
    "task.reference_start",
    "task.randomized_share",
    "task.ranges.random_share",
    "task.ranges.leap_share",
    "task.ranges.posture_share",
    "task.ranges.backward_share",
    "task.ranges.everyday_share",
    "task.ranges.everyday.shares",
    "task.ranges.everyday.standing_share",
    "task.regularization.soft_limit_share",
)
RANGE_SETTINGS = (
    "learner.ppo.learning_rate_range",
    "learner.ppo.exploration.std_range",
    "task.tail_steps",
    "task.ranges.interval_steps",
    "task.ranges.radius",
    "task.ranges.direction",
    "task.ranges.turn",
    "task.ranges.count",
    "task.ranges.everyday.interval_steps",
    "task.ranges.everyday.height",
)
"""Pairs of a least and a largest value. (random_share is not one of them: a curriculum may run in either direction.)"""
EPISODE_KINDS = ("leap_share", "posture_share", "backward_share", "everyday_share")


def check(config: TrainingConfig, own_rewards: Collection[str] = ()) -> None:
    """Raise UserError for settings that would fail later. `own_rewards` names the caller's custom rewards."""
    check_settings(config, own_rewards)
    _check_device(config.device)
    _check_wandb(config)
    stages = resolved_stages(config)
    for stage in stages:
        _check_files(stage)
    processes = process_count(config)
    for stage in stages:
        _check_batch(stage, processes)
    if own_rewards and processes > 1 and "WORLD_SIZE" not in os.environ:
        raise UserError("rewards: custom reward functions need processes=1, or a script run by torchrun")


def check_settings(config: TrainingConfig, own_rewards: Collection[str] = ()) -> None:
    """Check what does not depend on this machine: its cores, its devices, its files."""
    _check_name(config)
    _check_robot(config.robot)
    stages = resolved_stages(config)
    for stage in stages:
        _check_numbers(stage)
        _check_network(stage)
        _check_rewards(stage, own_rewards)
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
        raise UserError(
            f"name: {one_line(repr(config.name), 60)} is not a valid folder name; use --runs to choose its parent folder"
        )


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    if device.partition(":")[0] != "cuda":
        raise UserError(f"device: {one_line(repr(device), 60)} is not supported; use cpu, cuda or cuda:N")
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


def _check_wandb(config: TrainingConfig) -> None:
    if config.wandb is not None and find_spec("wandb") is None:
        raise UserError("wandb is not installed; run `pip install wandb`, or train without --wandb")


def _check_rewards(stage: ResolvedStage, own: Collection[str]) -> None:
    from keystride.task.rewards import REWARDS

    if not stage.config.learner.ppo.groups:
        raise UserError(f"{_place(stage, 'learner.ppo.groups')} must contain at least one group")
    known = ["style", *REWARDS, *own]  # the style reward comes from the discriminator
    for group in stage.config.learner.ppo.groups:
        if group.lam is not None and not 0 <= group.lam <= 1:
            place = _place(stage, f"learner.ppo.groups.{group.name}.lam")
            raise UserError(f"{place} must lie between 0 and 1, not {group.lam}")
        if not group.rewards:
            raise UserError(
                f"{_place(stage, f'learner.ppo.groups.{group.name}.rewards')} must name at least one reward"
            )
        for name, _ in group.rewards:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
                place = _place(stage, f"learner.ppo.groups.{group.name}")
                raise UserError(f"{place}: unknown reward {one_line(repr(name), 60)}; {hint}")


def _check_numbers(stage: ResolvedStage) -> None:
    for path, least in AT_LEAST.items():
        _require(stage, path, lambda value, least=least: value >= least, f"must be at least {least}")
    for path in ABOVE_ZERO:
        _require(stage, path, lambda value: value > 0, "must be above 0")
    for path in BETWEEN_0_AND_1:
        _require(stage, path, lambda value: 0 <= value <= 1, "must lie between 0 and 1")
    for path in RANGE_SETTINGS:
        low, high = value_at(stage.config, path) or (0, 0)
        if not low <= high:
            raise UserError(f"{_place(stage, path)}: the least value comes first, not {low}, {high}")
    ranges = stage.config.task.ranges
    total = sum(getattr(ranges, name) for name in EPISODE_KINDS)
    if total > 1.0 + 1e-9:
        names = ", ".join(EPISODE_KINDS)
        raise UserError(f"{_place(stage, 'task.ranges')}: the sum of {names} must be at most 1, not {total:g}")
    if abs(sum(ranges.everyday.shares) - 1.0) > 1e-6:
        place = _place(stage, "task.ranges.everyday.shares")
        raise UserError(f"{place} must add up to 1, not {sum(ranges.everyday.shares):g}")


def _require(stage: ResolvedStage, path: str, holds: Callable[[Any], bool], complaint: str) -> None:
    """Check a setting, or each entry of a tuple. None stands for another setting, and needs no check."""
    value = value_at(stage.config, path)
    if value is not None and not all(map(holds, value if isinstance(value, tuple) else (value,))):
        found = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        raise UserError(f"{_place(stage, path)} {complaint}, not {found}")


def _check_network(stage: ResolvedStage) -> None:
    from keystride.keyframes.goals import GOAL_SIZE
    from keystride.robot.catalogue import load_robot
    from keystride.task.observations import STATE_SIZE

    network = stage.config.learner.network
    for name in ("time_scales", "servo_column"):
        if getattr(network, name) not in (None, ()) and network.next_goal_time_column is None:
            raise UserError(f"{_place(stage, f'learner.network.{name}')} needs learner.network.next_goal_time_column")
    width = network.width or STATE_SIZE + GOAL_SIZE
    if width % network.heads:
        place = _place(stage, "learner.network.heads")
        raise UserError(f"{place} must divide the width of a token, which is {width}; {network.heads} does not")
    joints = len(load_robot(stage.config.robot).joint_names)
    for name, columns in {"next_goal_time_column": 1, "servo_column": joints}.items():
        column = getattr(network, name)
        if column is not None and not 0 <= column <= GOAL_SIZE - columns:
            place = _place(stage, f"learner.network.{name}")
            raise UserError(f"{place} must lie between 0 and {GOAL_SIZE - columns}, not {column}")


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
