"""`keystride benchmark forecast`: measure the accuracy and speed of the studio's forecasts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.robot.description import Robot


@dataclass(frozen=True)
class BenchmarkForecast:
    """Compare two forecasts of whether keyframes will be met, from rollouts and from the goal critic, with the outcome.

    Plays random scripts of three position keyframes, from easy to impossible, once from an exact stance.
    """

    policy: str = "go2-pose"
    """Name of a built-in policy, or a bundle folder with critics."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    scripts: int = 64
    """Number of random scripts to play."""
    rollouts: int = 64
    """Number of rollouts per script that the forecast is computed from."""
    json: bool = False
    """Print JSON instead of text."""

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
    """Return the figures of both forecasts."""
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
        "probability that a met keyframe ranks above a missed one: "
        f"{figures['rollout_ranking']:.3f} by {figures['rollouts']} rollouts, {figures['critic_ranking']:.3f} by the critic"
    )
    print(
        f"Brier score of the rollouts {figures['rollout_brier']:.4f} (base rate alone {figures['base_rate_brier']:.4f})"
    )
    print(f"{figures['control_steps_per_second']:,} control steps/s")
