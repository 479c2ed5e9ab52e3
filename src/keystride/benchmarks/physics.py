"""`keystride benchmark physics`: how near the simulator comes to what MuJoCo can do on this machine."""

import json as jsonlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from keystride.files import write_atomically

ROUND_SECONDS = 0.3  # short turns: both sides of a ratio see the same machine
NOISE = 0.1  # rad on the joint targets, so that the robots move
EPISODE = 150  # control steps after which a robot starts anew, about as in training; restarts are spread evenly


@dataclass(frozen=True)
class PhysicsFigures:
    ratio: float
    steps_per_second: float
    raw_steps_per_second: float
    envs: int
    threads: int


@dataclass(frozen=True)
class BenchmarkPhysics:
    """Control steps a second of the simulator as training uses it, against the raw limit of MuJoCo.

    The simulator runs with randomisation on, its states read and its robots restarted. The limit is threads x single-thread
    mj_step on the same model. Both are measured in turn in one process, so that the ratio holds on a busy machine.
    """

    envs: int = 1024
    """Robots simulated at once."""
    threads: int = 0
    """Threads; 0: all cores."""
    rounds: int = 31
    """Turns; the median of their ratios is reported."""
    json: Path | None = None
    """Write the figures to this file."""

    def run(self) -> int:
        figures = measure(self.envs, self.threads or os.cpu_count() or 1, self.rounds)
        if self.json:
            write_atomically(self.json, jsonlib.dumps(asdict(figures), indent=1))
        print(
            f"{figures.envs} robots on {figures.threads} threads: {figures.steps_per_second:,.0f} control steps/s, "
            f"raw limit {figures.raw_steps_per_second:,.0f}, ratio {figures.ratio:.2f}"
        )
        return 0


def measure(envs: int, threads: int, rounds: int) -> PhysicsFigures:
    batched, raw = _batched(envs, threads), _raw()
    ours, limit = [], []
    for _ in range(rounds):
        ours.append(_rate(batched) * envs)
        limit.append(_rate(raw) * threads)
    ratio = median(a / b for a, b in zip(ours, limit, strict=True))
    return PhysicsFigures(ratio, median(ours), median(limit), envs, threads)


def _rate(step: Callable[[], None]) -> float:
    """Calls a second."""
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < ROUND_SECONDS:
        step()
        calls += 1
    return calls / (time.perf_counter() - start)


def _batched(envs: int, threads: int) -> Callable[[], None]:
    import numpy as np

    from keystride.physics.cpu import CpuSimulator
    from keystride.physics.simulator import Randomization, standing_start
    from keystride.robot.go2 import GO2

    simulator = CpuSimulator(GO2, envs, randomization=Randomization(), threads=threads)
    simulator.reset(np.arange(envs), standing_start(envs, 0.33, GO2.stance))
    targets = GO2.stance + NOISE * np.random.default_rng(0).normal(size=(16, envs, 12))
    turn = iter(range(10**9))

    def step() -> None:
        now = next(turn)
        due = np.arange(now % EPISODE, envs, EPISODE)
        if len(due):
            simulator.reset(due, standing_start(len(due), 0.33, GO2.stance))
        simulator.advance(targets[now % 16])

    return step


def _raw() -> Callable[[], None]:
    """A control step of one robot on one thread."""
    import mujoco
    import numpy as np

    from keystride.physics.cpu import training_model
    from keystride.physics.simulator import PHYSICS_STEPS
    from keystride.robot.go2 import GO2

    model = training_model(GO2)
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7:] = 0.33, GO2.stance
    targets = GO2.stance + NOISE * np.random.default_rng(0).normal(size=(16, 12))
    turn = iter(range(10**9))

    def step() -> None:
        data.ctrl[:] = targets[next(turn) % 16]
        mujoco.mj_step(model, data, PHYSICS_STEPS)

    return step
