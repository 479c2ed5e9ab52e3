"""`keystride benchmark learner`: compare the speed of our update with a straightforward one, rsl-rl-lib and the machine's peak."""

import json as jsonlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Literal

from keystride.errors import UserError
from keystride.files import write_atomically

LARGEST_GAP = 1e-4  # allowed difference between the outputs of both versions


@dataclass(frozen=True)
class BenchmarkLearner:
    """Measure the samples per second of a gradient step on one thread, for each contender in a fresh process.

    Contenders: our update; the same function written with nn.TransformerEncoder on padded tokens (the outputs are checked to be
    equal); and rsl-rl-lib's PPO with an MLP at the same batch size, if it is installed. Also prints how much of the measured
    matrix-multiply rate our update reaches.
    """

    preset: Literal["cpu", "paper"] = "paper"
    """Preset whose network and losses are measured."""
    batch: int = 12_288
    """Samples per minibatch. The default is what each of two processes gets of the paper's 4096 x 24 samples in 4 minibatches."""
    rounds: int = 3
    """Number of gradient steps in each measurement."""
    turns: int = 3
    """Number of measurements, of which the median is reported."""
    json: Path | None = None
    """Write the figures as JSON to this file."""

    def run(self) -> int:
        from keystride.benchmarks import contenders

        turns = [self._turn(contenders) for _ in range(self.turns)]
        figures = {name: median(turn[name] for turn in turns) for name in turns[0] if turns[0][name] is not None}
        figures["matmul_share"] = figures["ours"] * contenders.operations(self.preset) / figures["matmul"]
        figures["speedup"] = median(turn["ours"] / turn["plain"] for turn in turns)
        if "rsl_rl" in figures:
            figures["versus_rsl_rl"] = median(turn["ours"] / turn["rsl_rl"] for turn in turns)
        if self.json:
            write_atomically(self.json, jsonlib.dumps(figures, indent=1))
        self._print(figures)
        return 0

    def _turn(self, contenders: Any) -> dict[str, Any]:
        plain, gap = _in_own_process(contenders.straightforward, self.preset, self.batch, self.rounds)
        if gap > LARGEST_GAP:
            raise UserError(
                f"the outputs of the two versions differ by {gap:.1e}, more than {LARGEST_GAP:g}: comparing their speed is meaningless"
            )
        return {
            "ours": _in_own_process(contenders.ours, self.preset, self.batch, self.rounds),
            "plain": plain,
            "rsl_rl": _in_own_process(contenders.rsl_rl, self.batch, self.rounds) if _installed("rsl_rl") else None,
            "matmul": _in_own_process(contenders.matmul),
            "gap": gap,
        }

    def _print(self, figures: dict[str, float]) -> None:
        print(
            f"{self.preset} network, {self.batch} samples, one thread; outputs of both versions within {figures['gap']:.0e}"
        )
        print(
            f"ours {figures['ours']:,.0f} samples/s, straightforward {figures['plain']:,.0f}: {figures['speedup']:.2f} times as fast"
        )
        if "rsl_rl" in figures:
            print(
                f"rsl-rl-lib's MLP {figures['rsl_rl']:,.0f} samples/s: ours {figures['versus_rsl_rl']:.2f} times as fast"
            )
        else:
            print("rsl-rl-lib is not installed (pip install 'keystride[bench]'): not compared")
        print(
            f"matrix multiply {figures['matmul'] / 1e9:.0f} GFLOPS, of which our update reaches {figures['matmul_share']:.0%}"
        )


def _in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a fresh process, so that the allocator and thread settings of one contender do not affect another."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None
