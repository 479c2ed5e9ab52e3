"""`keystride benchmark forecast`: how well the studio's forecasts tell what happens, and how fast they come."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.robot.description import Robot


@dataclass(frozen=True)
class BenchmarkForecast:
    """Compare two forecasts of whether keyframes will be met, by roll-outs and by the goal critic, with what happens.

    Random scripts of three position keyframes, from easy to impossible, are played once from an exact stance.
    """

    policy: str = "go2-pose"
    """A shipped policy's name, or a bundle: a forecast by critic needs the bundle's critics."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    scripts: int = 64
    """Random scripts to play."""
    rollouts: int = 64
    """Roll-outs that are counted for each script."""
    json: bool = False
    """Print JSON instead of sentences."""

    def run(self) -> int:
        from keystride.policy.bundle import PolicyError
        from keystride.robot.catalogue import load_robot

        try:
            figures = measure_forecast(load_robot(self.robot), self.policy, self.scripts, self.rollouts)
        except PolicyError as error:
            raise UserError(str(error)) from error
        if self.json:
            import json

            print(json.dumps({"policy": self.policy, **figures}, indent=2))
        else:
            _print(figures)
        return 0


def measure_forecast(robot: Robot, policy: str, scripts: int, rollouts: int) -> dict[str, Any]:
    import numpy as np

    from keystride.benchmarks.predictors import brier, goals_of, predict, random_scripts, ranking
    from keystride.policy.loading import open_policy
    from keystride.policy.runtime import ExportedCritics

    controller, critics = open_policy(policy, robot=robot), ExportedCritics.load(policy, robot=robot)
    goals = goals_of(random_scripts(scripts, np.random.default_rng(0)), robot)
    start = time.perf_counter()
    found = predict(robot, controller, critics, critics.metadata.value_names.index("goal"), goals, rollouts)
    steps = int(goals.step.max() + 50) * scripts * rollouts
    return {
        "scripts": scripts,
        "rollouts": rollouts,
        "met_share": round(float(found.met.mean()), 3),
        "rollout_ranking": round(ranking(found.counted, found.met), 3),
        "critic_ranking": round(ranking(found.valued, found.met), 3),
        "rollout_brier": round(brier(found.counted, found.met), 4),
        "base_rate_brier": round(float(found.met.mean() * (1 - found.met.mean())), 4),
        "control_steps_per_second": round(steps / (time.perf_counter() - start)),
    }


def _print(figures: dict[str, Any]) -> None:
    print(f"{figures['scripts']} scripts of 3 keyframes, {figures['met_share']:.0%} of the keyframes met")
    print(
        "a keyframe that is met is ranked above one that is not: "
        f"{figures['rollout_ranking']:.3f} by {figures['rollouts']} roll-outs, {figures['critic_ranking']:.3f} by the critic"
    )
    print(
        f"Brier score of the roll-outs {figures['rollout_brier']:.4f} (base rate alone {figures['base_rate_brier']:.4f})"
    )
    print(f"{figures['control_steps_per_second']:,} control steps a second")
