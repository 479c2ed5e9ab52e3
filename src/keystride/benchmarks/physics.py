"""`keystride benchmark physics`: compare the speed of the simulator with that of plain MuJoCo."""

import json as jsonlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from keystride.files import write_atomically

if TYPE_CHECKING:
    from keystride.robot.description import Robot

ROUND_SECONDS = 0.3  # short, so that both sides of a ratio are measured under the same load
NOISE = 0.1  # rad on the joint targets, so that the robots move
EPISODE_STEPS = 150  # control steps until a robot is reset, about as in training; resets are spread evenly


@dataclass(frozen=True)
class PhysicsFigures:
    """Control steps per second of the simulator and of plain MuJoCo, and their ratio."""

    ratio: float
    steps_per_second: float
    raw_steps_per_second: float
    envs: int
    threads: int


@dataclass(frozen=True)
class BenchmarkPhysics:
    """Measure control steps per second of the simulator as used in training, and of plain MuJoCo.

    The simulator runs with randomization, state readout and resets. The limit is the rate of mj_step on one thread, multiplied
    by the number of threads. Both are measured alternately in one process, so that their ratio is valid on a busy machine too.
    """

    envs: int = 1024
    """Number of robots to simulate."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    threads: int = 0
    """Number of threads. 0: one per core."""
    rounds: int = 31
    """Number of measurements, of which the median ratio is reported."""
    json: Path | None = None
    """Write the figures as JSON to this file."""

    def run(self) -> int:
        from keystride.robot.catalogue import load_robot

        figures = physics_figures(load_robot(self.robot), self.envs, self.threads or os.cpu_count() or 1, self.rounds)
        if self.json:
            write_atomically(self.json, jsonlib.dumps(asdict(figures), indent=1))
        print(
            f"{figures.envs} robots on {figures.threads} threads: {figures.steps_per_second:,.0f} control steps/s, "
            f"raw limit {figures.raw_steps_per_second:,.0f}, ratio {figures.ratio:.2f}"
        )
        return 0


def physics_figures(robot: "Robot", envs: int, threads: int, rounds: int) -> PhysicsFigures:
    """Measure the simulator and plain MuJoCo alternately."""
    batched, raw = _batched(robot, envs, threads), _raw(robot)
    ours, limit = [], []
    for _ in range(rounds):
        ours.append(_rate(batched) * envs)
        limit.append(_rate(raw) * threads)
    ratio = median(a / b for a, b in zip(ours, limit, strict=True))
    return PhysicsFigures(ratio, median(ours), median(limit), envs, threads)


def _rate(step: Callable[[], None]) -> float:
    """Return calls per second."""
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < ROUND_SECONDS:
        step()
        calls += 1
    return calls / (time.perf_counter() - start)


def _batched(robot: "Robot", envs: int, threads: int) -> Callable[[], None]:
    """Return a function that simulates one control step of all robots and resets some of them."""
    import numpy as np

    from keystride.physics.simulator import CpuSimulator, Randomization, standing_start
    from keystride.robot.kinematics import standing_height

    height = float(standing_height(robot, robot.stance))
    simulator = CpuSimulator(robot, envs, randomization=Randomization(), threads=threads)
    simulator.reset(np.arange(envs), standing_start(envs, height, robot.stance))
    targets = robot.stance + NOISE * np.random.default_rng(0).normal(size=(16, envs, 12))
    turn = iter(range(10**9))

    def step() -> None:
        now = next(turn)
        due = np.arange(now % EPISODE_STEPS, envs, EPISODE_STEPS)
        if len(due):
            simulator.reset(due, standing_start(len(due), height, robot.stance))
        simulator.advance(targets[now % 16])

    return step


def _raw(robot: "Robot") -> Callable[[], None]:
    """Return a function that simulates one control step of one robot on one thread."""
    import mujoco
    import numpy as np

    from keystride.physics.simulator import PHYSICS_STEPS, training_model
    from keystride.robot.kinematics import standing_height

    model = training_model(robot)
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7:] = standing_height(robot, robot.stance), robot.stance
    targets = robot.stance + NOISE * np.random.default_rng(0).normal(size=(16, 12))
    turn = iter(range(10**9))

    def step() -> None:
        data.ctrl[:] = targets[next(turn) % 16]
        mujoco.mj_step(model, data, PHYSICS_STEPS)

    return step
