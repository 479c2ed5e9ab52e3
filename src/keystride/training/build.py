"""Build the motion library, the environment and the trainer from a configuration, and evaluate on fixed episodes."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from keystride.keyframes.goals import COMPONENTS, ERROR_SIZE
from keystride.learner import parallel
from keystride.learner.discriminator import Discriminator
from keystride.learner.networks import Actor, Critics, Observations, upcoming
from keystride.learner.ppo import Symmetry
from keystride.learner.rollout import tensors
from keystride.learner.trainer import Specialist, Trainer, mean_over_processes
from keystride.motion.library import Library, load_library_clips
from keystride.physics.simulator import CpuSimulator
from keystride.policy.export import load_trained
from keystride.robot.catalogue import load_robot
from keystride.robot.description import Robot
from keystride.task.config import TaskConfig
from keystride.task.environment import KeyframeEnvironment, randomization
from keystride.task.observations import action_mirror, goal_mirror, state_mirror
from keystride.task.rewards import REWARDS, Reward
from keystride.training.config import EvaluationConfig, TrainingConfig

NEAR_KEYFRAME = 0.3  # m: nearer keyframes need not lie ahead for a policy that walks forwards
KEYFRAME_KINDS = ("dataset", "random", "leap", "posture", "backward", "everyday")  # in evaluation order


def load_library(config: TrainingConfig) -> Library:
    """Return the motion library that a run trains on."""
    robot = load_robot(config.robot)
    clips = [clip for folder in config.library for clip in load_library_clips(folder, split="train")]
    if config.authored or not clips:
        from keystride.motion.authored.catalogue import authored_clips

        clips += authored_clips(robot)
    return Library(robot, clips)


def make_environment(
    library: Library,
    task: TaskConfig,
    robots: int,
    seed: int,
    *,
    rewards: Mapping[str, Reward] = REWARDS,
    demonstrations: bool = False,
) -> KeyframeEnvironment:
    """Return an environment with this many robots, simulated on one thread."""
    bodies, _ = randomization(task)
    physics = CpuSimulator(library.robot, robots, randomization=bodies, seed=seed, threads=1)
    return KeyframeEnvironment(
        library.robot, physics, library, task, rewards=rewards, demonstrations=demonstrations, seed=seed + 1
    )


def make_trainer(config: TrainingConfig, library: Library, rewards: Mapping[str, Reward] | None = None) -> Trainer:
    """Return the trainer of this process.

    `rewards` adds custom reward functions to those in `task.rewards.REWARDS`.
    """
    robots = config.learner.environments // parallel.size()
    seed = config.learner.seed + 10_000 * parallel.rank()
    used = {name for group in config.learner.ppo.groups for name, _ in group.rewards}
    environment = make_environment(
        library,
        config.task,
        robots,
        seed,
        rewards={name: reward for name, reward in {**REWARDS, **(rewards or {})}.items() if name in used},
        demonstrations=config.learner.ppo.clone > 0.0 or config.learner.ppo.imitation_steps > 0,
    )
    robot, device = library.robot, config.device
    return Trainer(
        config.learner,
        environment,
        len(robot.joint_names),
        symmetry=_symmetry(robot, device),
        specialist=_specialist(config, robot),
        device=device,
    )


def _specialist(config: TrainingConfig, robot: Robot) -> Specialist | None:
    if config.position_teacher is None or not config.learner.ppo.imitation_steps:
        return None
    return Specialist(load_trained(config.position_teacher, robot).actor.to(config.device), positions_ahead)


def positions_ahead(seen: Observations) -> torch.Tensor:
    """Return where all keyframes are positions alone, and the next one is due within a second and ahead of the robot or close; (N,)."""
    alone = torch.tensor([True] + [False] * (len(COMPONENTS) - 1), device=seen.goals.device)
    positions = (seen.goals[..., ERROR_SIZE + 1 :].bool() == alone).all(dim=-1) | ~seen.visible
    goal = upcoming(seen.goals, ERROR_SIZE, seen.visible)
    wait, x, y = goal[:, ERROR_SIZE], goal[:, 0], goal[:, 1]
    ahead = (x > 0.3 * y.abs()) | (torch.hypot(x, y) < NEAR_KEYFRAME)
    return positions.all(dim=1) & (wait > 0.0) & (wait <= 1.0) & ahead


def network_sizes(config: TrainingConfig) -> dict[str, object]:
    """Return the name and shape of every weight, and the names of the reward groups in the order of the critics' outputs."""
    from keystride.keyframes.goals import GOAL_SIZE
    from keystride.task.observations import STATE_SIZE

    learner = config.learner
    groups, actions = [group.name for group in learner.ppo.groups], len(load_robot(config.robot).joint_names)
    with torch.device("meta"):
        networks = {
            "actor": Actor(learner.network, STATE_SIZE, GOAL_SIZE, actions),
            "critics": Critics(learner.network, STATE_SIZE, GOAL_SIZE, len(groups)),
            "discriminator": Discriminator(learner.discriminator, torch.zeros(2), torch.ones(2)),
        }
    shapes = {
        f"{part}.{name}": tuple(values.shape)
        for part, network in networks.items()
        for name, values in network.state_dict().items()
    }
    return {**shapes, "groups": groups}


def evaluated_kinds(task: TaskConfig) -> tuple[str, ...]:
    """Return the kinds of keyframes to evaluate: the paper's two, and any other kind that training samples."""
    asked = (True, True, *(getattr(task.ranges, f"{kind}_share") > 0.0 for kind in KEYFRAME_KINDS[2:]))
    return tuple(kind for kind, wanted in zip(KEYFRAME_KINDS, asked, strict=True) if wanted)


@torch.no_grad()
def fixed_evaluation(
    actor: Actor, library: Library, task: TaskConfig, evaluation: EvaluationConfig
) -> dict[str, float]:
    """Return the errors of the deterministic policy for each kind of keyframe; the episodes are the same on every call."""
    results: dict[str, float] = {}
    for kind in evaluated_kinds(task):
        share = float(kind == "random")
        others = {f"{other}_share": float(other == kind) for other in KEYFRAME_KINDS[2:]}
        ranges = replace(task.ranges, random_share=(share, share), **others)
        fixed = replace(task, ranges=ranges, randomize="nothing")
        robots = max(evaluation.robots // parallel.size(), 1)
        goal = {"goal": REWARDS["goal"]}
        environment = make_environment(library, fixed, robots, 777 + parallel.rank(), rewards=goal)
        for _ in range(evaluation.control_steps if kind in KEYFRAME_KINDS[:2] else evaluation.control_steps // 2):
            environment.step(actor.act(tensors(environment.observe(), actor.log_std.device)).cpu().numpy())
        means = mean_over_processes(environment.metrics())
        results |= {f"{kind}/{n.removeprefix('kernel_error/')}": v for n, v in means.items()}
    return results


def _symmetry(robot: Robot, device: str) -> Symmetry:
    def pair(signed_order: tuple[np.ndarray, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        order, sign = signed_order
        return torch.as_tensor(order, device=device), torch.as_tensor(sign, dtype=torch.float32, device=device)

    return Symmetry(pair(state_mirror(robot)), pair(goal_mirror(robot)), pair(action_mirror(robot)))
