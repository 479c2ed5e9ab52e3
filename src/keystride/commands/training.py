"""What `keystride train` does in each process: join task and learner, and keep the run's folder."""

import ctypes
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import yaml

from keystride.commands.errors import UserError
from keystride.commands.train import Train, check_folder
from keystride.learner import parallel
from keystride.learner.checkpoint import publish, save_tree
from keystride.learner.networks import Actor
from keystride.learner.ppo import Symmetry
from keystride.learner.rollout import tensors
from keystride.learner.trainer import Trainer, latest, reduced
from keystride.motion.library import Library, load_clips
from keystride.physics.cpu import CpuSimulator
from keystride.physics.simulator import Randomization
from keystride.policy.weights import load_weights
from keystride.robot.go2 import GO2
from keystride.task.config import TaskConfig
from keystride.task.environment import KeyframeEnvironment
from keystride.task.symmetry import action_mirror, goal_mirror, state_mirror

EVALUATION_ROBOTS = 256  # over all processes
EVALUATION_STEPS = 320
KEPT_SETTINGS = "config.yaml"


def train(command: Train) -> int:
    settle_process()
    parallel.start(command.device)
    command = command.resolved()
    if parallel.rank() == 0:
        check_folder(command)
    parallel.wait()
    library = load_library(command)
    trainer = make_trainer(command, library)
    run = Run(command, trainer, library)
    run.begin()
    while trainer.steps < command.learner.steps:
        run.note(trainer.iterate())
    run.keep()
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
    clips = [clip for folder in command.library for clip in load_clips(folder, split="train")]
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
    for kind, share in (("dataset", 0.0), ("random", 1.0)):
        fixed = replace(task, ranges=replace(task.ranges, random_share=(share, share)), randomize=False)
        environment = make_environment(library, fixed, EVALUATION_ROBOTS // parallel.size(), 777 + parallel.rank())
        for _ in range(EVALUATION_STEPS):
            environment.step(actor.act(tensors(environment.observe(), actor.floor.device)).cpu().numpy())
        means = reduced(environment.metrics())
        results |= {f"{kind}/{n.removeprefix('kernel_error/')}": v for n, v in means.items() if "term/" not in n}
    return results


class Run:
    """The run's folder: configuration, metrics, checkpoints, the best policy so far."""

    def __init__(self, command: Train, trainer: Trainer, library: Library) -> None:
        self.command, self.trainer, self.library = command, trainer, library
        self.folder = command.folder
        self.best = float("inf")
        self.saved_at = self.started_at = self.printed_at = time.monotonic()
        self.evaluated_at = self.first_step = 0

    def begin(self) -> None:
        newest = latest(self.folder / "checkpoints")
        if self.command.resume and newest is not None:
            self.trainer.load(newest)
            best = self.folder / "best" / "figures.json"
            self.best = json.loads(best.read_text())["score"] if best.exists() else self.best
        elif self.command.start_from is not None:
            self._start_from(self.command.start_from)
        self.first_step = self.trainer.steps
        self.evaluated_at = self.trainer.steps // self.command.learner.evaluate_steps
        if parallel.rank() == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / KEPT_SETTINGS).write_text(yaml.safe_dump(json.loads(json.dumps(asdict(self.command), default=str))))

    def _start_from(self, policy: Path) -> None:
        try:
            self.trainer.load_weights(load_weights(policy).tree())
        except RuntimeError as error:  # torch lists every tensor
            raise UserError(f"the networks of {policy} are of other sizes than those of this run") from error

    def note(self, means: dict[str, float]) -> None:
        """After every iteration: log, now and then evaluate and keep."""
        turn = self.trainer.steps // self.command.learner.evaluate_steps
        if turn > self.evaluated_at:
            self.evaluated_at = turn
            means |= self._evaluate()
        self._write(means)
        if self._agreed(time.monotonic() - self.saved_at > 60 * self.command.learner.checkpoint_minutes):
            self.keep()

    def keep(self) -> None:
        self.trainer.save(self.folder / "checkpoints")
        self.saved_at = time.monotonic()

    def _evaluate(self) -> dict[str, float]:
        results = fixed_evaluation(self.trainer.actor, self.library, self.command.task)
        score = results.get("dataset/position", 0.0) + results.get("random/position", 0.0)
        if parallel.rank() == 0:
            self._print({"steps": self.trainer.steps, **results}, "evaluation")
            if score < self.best:
                self._keep_best(score, results)
        self.best = min(self.best, score)
        return {f"evaluation/{name}": value for name, value in results.items()}

    def _keep_best(self, score: float, results: dict[str, float]) -> None:
        part = self.folder / "best.part"
        part.mkdir(exist_ok=True)
        save_tree(self.trainer._shared_state(), part / "learner")
        (part / "figures.json").write_text(json.dumps({"score": score, "steps": self.trainer.steps, **results}))
        publish(part, self.folder / "best")

    def _agreed(self, wish: bool) -> bool:
        """The first process decides for all."""
        return bool(parallel.total(torch.tensor([float(wish and parallel.rank() == 0)])).item())

    def _write(self, means: dict[str, float]) -> None:
        if parallel.rank() != 0:
            return
        elapsed = time.monotonic() - self.started_at
        rate = (self.trainer.steps - self.first_step) / elapsed
        row = {"steps": self.trainer.steps, "seconds": round(elapsed, 2), "steps_per_second": round(rate), **means}
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({k: round(v, 6) for k, v in row.items()}) + "\n")
        if time.monotonic() - self.printed_at > 20:
            self.printed_at = time.monotonic()
            self._print(row, "train")

    def _print(self, row: dict[str, float], what: str) -> None:
        print(what, " ".join(f"{name}={value:.4g}" for name, value in row.items()), flush=True)
