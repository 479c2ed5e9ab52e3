"""What `keystride train` does in each process: join task and learner, and keep the run's folder."""

import ctypes
import sys
from dataclasses import replace

import numpy as np
import torch

from keystride.commands.run_folder import KINDS, RunFolder
from keystride.commands.train import Train, check_folder
from keystride.learner import parallel
from keystride.learner.networks import Actor
from keystride.learner.ppo import Symmetry
from keystride.learner.rollout import tensors
from keystride.learner.trainer import Trainer, reduced
from keystride.motion.index import load_library_clips
from keystride.motion.library import Library
from keystride.physics.cpu import CpuSimulator
from keystride.physics.simulator import Randomization
from keystride.robot.go2 import GO2
from keystride.task.config import TaskConfig
from keystride.task.environment import KeyframeEnvironment
from keystride.task.symmetry import action_mirror, goal_mirror, state_mirror

EVALUATION_ROBOTS = 256  # over all processes
EVALUATION_STEPS = 320


def train(command: Train) -> int:
    settle_process()
    parallel.start(command.device)
    command = command.resolved()
    if parallel.rank() == 0:
        check_folder(command)
    parallel.wait()
    library = load_library(command)
    trainer = make_trainer(command, library)
    run = RunFolder(command, trainer, lambda: fixed_evaluation(trainer.averaged, library, command.task))
    run.begin()
    try:
        while trainer.steps < command.learner.steps:
            run.note(trainer.iterate())
        run.keep()
    finally:
        run.end()
    parallel.stop()
    return 0


def settle_process() -> None:
    """One thread a process, and memory that stays with it: returning freed tensors to the system costs a quarter of the time."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


def load_library(command: Train) -> Library:
    clips = [clip for folder in command.library for clip in load_library_clips(folder, split="train")]
    if command.authored or not clips:
        from keystride.motion.authored.catalogue import authored_clips

        clips += authored_clips(GO2)
    return Library(GO2, clips)


def make_environment(library: Library, task: TaskConfig, robots: int, seed: int) -> KeyframeEnvironment:
    randomization = Randomization() if task.randomize else None
    physics = CpuSimulator(GO2, robots, randomization=randomization, seed=seed, threads=1)
    return KeyframeEnvironment(GO2, physics, library, task, seed=seed + 1)


def make_trainer(command: Train, library: Library) -> Trainer:
    robots = command.learner.environments // parallel.size()
    seed = command.learner.seed + 10_000 * parallel.rank()
    environment = make_environment(library, command.task, robots, seed)
    return Trainer(
        command.learner, environment, len(GO2.joint_names), symmetry=_symmetry(command.device), device=command.device
    )


def _symmetry(device: str) -> Symmetry:
    def pair(signed_order: tuple[np.ndarray, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        order, sign = signed_order
        return torch.as_tensor(order, device=device), torch.as_tensor(sign, dtype=torch.float32, device=device)

    return Symmetry(pair(state_mirror(GO2)), pair(goal_mirror(GO2)), pair(action_mirror(GO2)))


@torch.no_grad()
def fixed_evaluation(actor: Actor, library: Library, task: TaskConfig) -> dict[str, float]:
    """Errors of the deterministic policy on the same episodes every time: dataset keyframes, then random ones."""
    results: dict[str, float] = {}
    for kind, share in zip(KINDS, (0.0, 1.0), strict=True):
        ranges = replace(task.ranges, random_share=(share, share), leap_share=0.0)
        fixed = replace(task, ranges=ranges, randomize=False)
        environment = make_environment(library, fixed, EVALUATION_ROBOTS // parallel.size(), 777 + parallel.rank())
        for _ in range(EVALUATION_STEPS):
            environment.step(actor.act(tensors(environment.observe(), actor.floor.device)).cpu().numpy())
        means = reduced(environment.metrics())
        results |= {f"{kind}/{n.removeprefix('kernel_error/')}": v for n, v in means.items() if "term/" not in n}
    return results
