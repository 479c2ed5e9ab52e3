"""`keystride benchmark train`: measure the speed of training, compared with physics alone and with more processes."""

import json as jsonlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from keystride.errors import UserError
from keystride.files import write_atomically
from keystride.training.checks import check, process_count
from keystride.training.config import PRESETS, TrainingConfig
from keystride.training.launch import launch


@dataclass(frozen=True)
class BenchmarkTrain:
    """Train for some iterations and measure control steps per second of training, of physics alone, and where the time goes.

    With --scaling, measure one process alone and all processes together, with the same number of robots per process, and print
    the efficiency: the rate per process of all together, divided by the rate of one alone.
    """

    preset: Literal["cpu", "paper"] = "cpu"
    """Preset whose sizes are used."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    iterations: int = 12
    """Number of iterations to measure, after three to warm up."""
    processes: int = 0
    """Number of processes, one thread each. 0: one per core."""
    environments: int = 0
    """Number of robots, summed over all processes. 0: that of the preset."""
    scaling: bool = False
    """Compare one process with all of them."""
    rounds: int = 3
    """With --scaling, number of measurements of each, of which medians are compared."""
    json: Path | None = None
    """Write the figures as JSON to this file."""

    def run(self) -> int:
        config = self._config()
        check(config)
        processes = process_count(config)
        if self.scaling:
            return self._compare_processes(config.learner.environments // processes, processes)
        if "WORLD_SIZE" not in os.environ and processes > 1:
            stopped_by = launch([sys.executable, "-m", "keystride", *sys.argv[1:]], processes)
            return 0 if stopped_by is None else 128 + stopped_by
        figures = self._measure(config)
        from keystride.learner import parallel

        if parallel.rank() == 0:
            self._print(figures)
        parallel.stop()
        return 0

    def _config(self) -> TrainingConfig:
        config = replace(PRESETS[self.preset], robot=self.robot, processes=self.processes)
        robots = self.environments or config.learner.environments
        return replace(config, learner=replace(config.learner, environments=robots))

    def _measure(self, config: TrainingConfig) -> dict[str, Any]:
        import numpy as np

        from keystride.learner import parallel
        from keystride.training.build import load_library, make_trainer

        parallel.start("cpu")
        learner = config.learner
        library = load_library(config)
        trainer = make_trainer(config, library)
        for _ in range(3):
            trainer.iterate()
        trainer.seconds.clear()
        steps, busy, alone = 0, 0.0, 0.0
        targets = np.tile(library.robot.stance, (learner.environments // parallel.size(), 1))
        for _ in range(self.iterations):
            begin, before = time.perf_counter(), trainer.steps
            trainer.iterate()
            busy += time.perf_counter() - begin
            steps += trainer.steps - before
            saved, begin = trainer.environment.snapshot(), time.perf_counter()
            for _ in range(learner.horizon):
                trainer.environment.physics.advance(targets)  # type: ignore[attr-defined]
            alone += time.perf_counter() - begin
            trainer.environment.restore(saved)
        split = {name: round(seconds / busy, 3) for name, seconds in trainer.seconds.items()}
        return {
            "ratio": alone / busy,
            "steps_per_second": steps / busy,
            "physics_steps_per_second": steps / alone,
            "split": split,
        }

    def _compare_processes(self, robots: int, processes: int) -> int:
        """Measure one process and all processes alternately, each by running this command; `robots` is the number per process."""
        if processes == 1:
            raise UserError("--scaling needs at least two processes, such as --processes 2")
        rates: dict[int, list[float]] = {1: [], processes: []}
        with tempfile.TemporaryDirectory(prefix="keystride-") as folder:
            for _ in range(self.rounds):
                for count, found in rates.items():
                    figures = Path(folder) / "figures.json"
                    command = [sys.executable, "-m", "keystride", "benchmark", "train", "--preset", self.preset]
                    command += ["--robot", self.robot]
                    command += ["--iterations", str(self.iterations), "--processes", str(count)]
                    command += ["--environments", str(robots * count), "--json", str(figures)]
                    print(f"{count} of {processes} processes: ", end="", flush=True)
                    code = subprocess.run(command, check=False).returncode
                    if code:
                        return code
                    found.append(jsonlib.loads(figures.read_text())["steps_per_second"])
        share = efficiency(rates)
        print(
            f"{processes} processes of {robots} robots each: {median(rates[processes]) / median(rates[1]):.2f} times the rate of one, "
            f"efficiency {share:.2f}"
        )
        if self.json:
            content = {"steps_per_second": rates, "robots_of_a_process": robots, "efficiency": share}
            write_atomically(self.json, jsonlib.dumps(content, indent=1))
        return 0

    def _print(self, figures: dict[str, Any]) -> None:
        if self.json:
            write_atomically(self.json, jsonlib.dumps(figures, indent=1))
        parts = ", ".join(f"{name} {share:.0%}" for name, share in figures["split"].items())
        print(
            f"{figures['steps_per_second']:,.0f} control steps/s end to end, {figures['physics_steps_per_second']:,.0f} physics alone, "
            f"ratio {figures['ratio']:.2f}; time spent: {parts}"
        )


def efficiency(rates: Mapping[int, Sequence[float]]) -> float:
    """Return the median rate of the largest number of processes per process, relative to one process; rates are by number."""
    most = max(rates)
    return median(rates[most]) / (most * median(rates[1]))
