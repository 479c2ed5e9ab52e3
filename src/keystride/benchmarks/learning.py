"""`keystride benchmark learning`: measure the minutes and samples that training from scratch needs to reach given errors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keystride.files import write_atomically
from keystride.policy.curve import read_curve
from keystride.training.config import (
    PRESETS,
    EvaluationConfig,
    Preset,
    Settings,
    TrainingConfig,
    config_of_run,
    plain_config,
)
from keystride.training.start import steps_saved, train, was_started

TARGET_DISTANCES = (0.5, 0.3, 0.15)  # m, mean distance at keyframes
KIND_LABELS = {"dataset": "clips", "random": "random keyframes"}
LEARNING_PRESETS = {
    name: replace(
        preset,
        name="learning",
        evaluation=EvaluationConfig(robots=64, export=False),
        learner=replace(preset.learner, steps=6_000_000, evaluate_steps=500_000),
    )
    for name, preset in PRESETS.items()
}
"""The training presets, shortened, with frequent and cheap evaluations."""


@dataclass(frozen=True)
class BenchmarkLearning:
    """Train from scratch with several seeds, and print the minutes and control steps to reach mean distances of 0.5, 0.3 and 0.15 m.

    Distances are those of the deterministic policy at keyframes from clips and at random keyframes, interpolated between
    evaluations. Minutes exclude evaluations. The runs are stored in RUNS/NAME/seedN, the results in RUNS/NAME/learning.json and
    learning.png. Run the same command again to continue runs that were stopped. Accepts every setting of `keystride train`.
    """

    config: Path | None = None
    """YAML file with settings, as for `keystride train`."""
    preset: Preset | None = None
    """Complete configuration to start from, as for `keystride train`."""
    seeds: int = 2
    """Number of runs, with seeds learner.seed, learner.seed + 1 and so on."""
    settings: Settings = field(default_factory=lambda: LEARNING_PRESETS["cpu"])

    def run(self) -> int:
        configs = {
            seed: self._seed(seed)
            for seed in range(self.settings.learner.seed, self.settings.learner.seed + self.seeds)
        }
        for config in configs.values():
            outcome = _train(config)
            if outcome:
                print("stopped and saved; run the same command again to continue")
                return 128 + outcome
        curves = {
            f"seed {seed}": read_curve(config.folder / "metrics.jsonl")["evaluation"]
            for seed, config in configs.items()
        }
        results = {name: {kind: _reached(curve, kind) for kind in KIND_LABELS} for name, curve in curves.items()}
        self._write(curves, results)
        _print(curves, results)
        return 0

    def _seed(self, seed: int) -> TrainingConfig:
        learner = replace(self.settings.learner, seed=seed)
        return replace(self.settings, name=f"seed{seed}", runs=self.settings.folder, learner=learner)

    def _write(self, curves: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        from keystride.plotting import save_figure

        folder = self.settings.folder
        data = {"settings": plain_config(self.settings), "reached": results, "curves": curves}
        write_atomically(folder / "learning.json", json.dumps(data, indent=1))
        save_figure(distance_figure(curves), folder / "learning.png")
        print(f"wrote {folder / 'learning.json'} and {folder / 'learning.png'}")


def first_at_or_below(values: Sequence[float | None], places: Sequence[float], threshold: float) -> float | None:
    """Return the first place at which a curve is at or below a threshold, interpolated between its points, or None."""
    known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    for i, (place, value) in enumerate(known):
        if value <= threshold:
            if i == 0:
                return place
            before, above = known[i - 1]
            return before + (place - before) * (above - threshold) / (above - value)
    return None


def distance_figure(curves: Mapping[str, Any]) -> Any:
    """Plot the distances at keyframes over control steps and over minutes."""
    from keystride.colours import SOFT
    from keystride.plotting import styled_figure

    with styled_figure(10.0, 6.0) as figure:
        panels = figure.subplots(2, 2, sharey="col")
        for column, (kind, label) in enumerate(KIND_LABELS.items()):
            for row, (unit, scale) in enumerate((("steps", 1e-6), ("minutes", 1.0))):
                axes = panels[row][column]
                for name, curve in curves.items():
                    points = [
                        (x * scale, y)
                        for x, y in zip(curve[unit], curve[f"{kind}/position"], strict=True)
                        if y is not None
                    ]
                    axes.plot(*zip(*points, strict=True), marker=".", linewidth=1.5, label=name)
                for threshold in TARGET_DISTANCES:
                    axes.axhline(threshold, color=SOFT, linewidth=0.8, linestyle=":")
                axes.set(xlabel="million control steps" if unit == "steps" else "minutes of training", ylim=(0, None))
                axes.set(title=f"distance at {label}, m" if row == 0 else "")
        panels[0][0].legend(loc="best")
        return figure


def _train(config: TrainingConfig) -> int | None:
    """Train one seed unless it is finished; return the signal that stopped it, if any."""
    known = was_started(config.folder)
    if (
        known
        and plain_config(config_of_run(config.folder)) == plain_config(config)
        and steps_saved(config.folder) >= config.learner.steps
    ):
        return None
    return train(config, resume=known).stopped_by


def _reached(curve: Mapping[str, Any], kind: str) -> dict[str, dict[str, float] | None]:
    reached: dict[str, dict[str, float] | None] = {}
    for threshold in TARGET_DISTANCES:
        steps, minutes = (
            first_at_or_below(curve[f"{kind}/position"], curve[unit], threshold) for unit in ("steps", "minutes")
        )
        reached[str(threshold)] = None if steps is None or minutes is None else {"steps": steps, "minutes": minutes}
    return reached


def _print(curves: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title="from scratch to a mean distance at keyframes", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("", *curves):
        table.add_column(heading, justify="right")
    for kind, label in KIND_LABELS.items():
        for threshold in TARGET_DISTANCES:
            reached = [results[name][kind][str(threshold)] for name in curves]
            table.add_row(f"{label}, {threshold} m", *map(_cell, reached))
        last = [curve[f"{kind}/position"][-1] for curve in curves.values()]
        table.add_row(f"{label}, at the end", *("" if value is None else f"{value:.3f} m" for value in last))
    steps = [f"{curve['steps'][-1] / 1e6:.1f} M steps, {curve['minutes'][-1]:.1f} min" for curve in curves.values()]
    table.add_row("whole run", *steps)
    Console().print(table)


def _cell(reached: Mapping[str, float] | None) -> str:
    return "not reached" if reached is None else f"{reached['steps'] / 1e6:.2f} M steps, {reached['minutes']:.1f} min"
