"""Put task and learner together: the library, the environment, the trainer, and the evaluation on fixed episodes."""

import ctypes
import sys
from dataclasses import replace

import numpy as np
import torch

from keystride.learner import parallel
from keystride.learner.config import LearnerConfig
from keystride.learner.discriminator import Discriminator
from keystride.learner.networks import Actor, Critics
from keystride.learner.ppo import Symmetry
from keystride.learner.rollout import tensors
from keystride.learner.trainer import Trainer, reduced
from keystride.motion.index import load_library_clips
from keystride.motion.library import Library
from keystride.physics.cpu import CpuSimulator
from keystride.robot.go2 import GO2
from keystride.task.config import TaskConfig
from keystride.task.environment import RANDOMIZATIONS, KeyframeEnvironment
from keystride.task.symmetry import action_mirror, goal_mirror, state_mirror
from keystride.training.config import EvaluationConfig, TrainingConfig

KINDS = ("dataset", "random", "leap", "posture", "everyday")  # of keyframes that an evaluation may try


def settle_process() -> None:
    """Use one thread, and keep freed memory in the process. Anything else makes training up to 13 times slower."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


def load_library(config: TrainingConfig) -> Library:
    clips = [clip for folder in config.library for clip in load_library_clips(folder, split="train")]
    if config.authored or not clips:
        from keystride.motion.authored.catalogue import authored_clips

        clips += authored_clips(GO2)
    return Library(GO2, clips)


def make_environment(
    library: Library, task: TaskConfig, robots: int, seed: int, *, demonstrations: bool = False
) -> KeyframeEnvironment:
    physics = CpuSimulator(GO2, robots, randomization=RANDOMIZATIONS[task.randomize][0], seed=seed, threads=1)
    return KeyframeEnvironment(GO2, physics, library, task, demonstrations=demonstrations, seed=seed + 1)


def make_trainer(config: TrainingConfig, library: Library) -> Trainer:
    """Return the trainer of this process, and set the process up so that it is fast."""
    settle_process()
    robots = config.learner.environments // parallel.size()
    seed = config.learner.seed + 10_000 * parallel.rank()
    environment = make_environment(library, config.task, robots, seed, demonstrations=config.learner.ppo.clone > 0.0)
    return Trainer(
        config.learner, environment, len(GO2.joint_names), symmetry=_symmetry(config.device), device=config.device
    )


def network_sizes(learner: LearnerConfig) -> dict[str, object]:
    """Return names and shapes of all weights, and the groups that the critics' outputs stand for."""
    from keystride.keyframes.goals import GOAL_SIZE
    from keystride.task.observations import STATE_SIZE

    groups = [group.name for group in learner.ppo.groups]
    with torch.device("meta"):
        networks = {
            "actor": Actor(learner.network, STATE_SIZE, GOAL_SIZE, len(GO2.joint_names)),
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
    """Return the paper's two kinds of keyframes, and those of the others that training draws."""
    asked = (True, True, *(getattr(task.ranges, f"{kind}_share") > 0.0 for kind in KINDS[2:]))
    return tuple(kind for kind, wanted in zip(KINDS, asked, strict=True) if wanted)


@torch.no_grad()
def fixed_evaluation(
    actor: Actor, library: Library, task: TaskConfig, evaluation: EvaluationConfig
) -> dict[str, float]:
    """Return errors of the deterministic policy on the same episodes every time, for each kind of keyframes that training draws."""
    results: dict[str, float] = {}
    for kind in evaluated_kinds(task):
        share = float(kind == "random")
        others = {name: float(name == f"{kind}_share") for name in ("leap_share", "posture_share", "everyday_share")}
        ranges = replace(task.ranges, random_share=(share, share), **others)
        fixed = replace(task, ranges=ranges, randomize="nothing")
        robots = max(evaluation.robots // parallel.size(), 1)
        environment = make_environment(library, fixed, robots, 777 + parallel.rank())
        for _ in range(evaluation.control_steps if kind in KINDS[:2] else evaluation.control_steps // 2):
            environment.step(actor.act(tensors(environment.observe(), actor.log_std.device)).cpu().numpy())
        means = reduced(environment.metrics())
        results |= {f"{kind}/{n.removeprefix('kernel_error/')}": v for n, v in means.items() if "term/" not in n}
    return results


def _symmetry(device: str) -> Symmetry:
    def pair(signed_order: tuple[np.ndarray, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        order, sign = signed_order
        return torch.as_tensor(order, device=device), torch.as_tensor(sign, dtype=torch.float32, device=device)

    return Symmetry(pair(state_mirror(GO2)), pair(goal_mirror(GO2)), pair(action_mirror(GO2)))
