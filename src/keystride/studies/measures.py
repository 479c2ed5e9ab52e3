"""What a study measures of its runs: learning curves, errors of the final policies, and how seeds compare."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from keystride.benchmarks.learning import first_at_or_below
from keystride.evaluation.episodes import run_episodes
from keystride.files import write_atomically
from keystride.policy.curve import read_curve
from keystride.robot.description import Floats
from keystride.studies.runs import final_policy, study_library
from keystride.task.config import TaskConfig
from keystride.task.sampling import EpisodeSampler

RANDOM_SHARES = {"dataset": 0.0, "random": 1.0}  # of keyframes, and the share of random ones that draws them
THRESHOLD = 0.3  # m, mean distance at keyframes
FINAL = "final.json"  # in a run's folder


@dataclass(frozen=True)
class Curve:
    """Evaluations of one run: the deterministic policy on the same episodes each time, (P,) each.

    Means over two kinds of keyframes, from clips and random, which count equally.
    """

    steps: Floats
    distance: Floats  # m, at keyframes
    reward: Floats  # goal reward of a keyframe
    survival: Floats  # share of the episodes

    @property
    def samples_to_threshold(self) -> float | None:
        """Control steps until the distance first comes down to the threshold; None if it does not."""
        known = [None if np.isnan(value) else float(value) for value in self.distance]
        return first_at_or_below(known, self.steps.tolist(), THRESHOLD)

    def as_dict(self) -> dict[str, list[float | None]]:
        return {
            name: [None if np.isnan(value) else round(float(value), 6) for value in getattr(self, name)]
            for name in ("steps", "distance", "reward", "survival")
        }


def read_run_curve(run: Path) -> Curve:
    columns = read_curve(run / "metrics.jsonl")["evaluation"]

    def mean(name: str) -> Floats:
        kinds = [columns.get(f"{kind}/{name}", [None] * len(columns["steps"])) for kind in RANDOM_SHARES]
        return np.array(kinds, dtype=np.float64).mean(axis=0)

    return Curve(
        np.array(columns["steps"], dtype=np.float64), mean("position"), mean("goal_reward_when_due"), mean("survival")
    )


def across_seeds(curves: Sequence[Curve], name: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Steps, and least, mean and largest value over the seeds, (P,) each, at the evaluations that all of them have."""
    points = min(len(curve.steps) for curve in curves)
    values = np.stack([getattr(curve, name)[:points] for curve in curves])
    return curves[0].steps[:points], values.min(axis=0), values.mean(axis=0), values.max(axis=0)


@dataclass(frozen=True)
class Errors:
    """Distances at keyframes of one or several policies, m; those of a fallen robot are read where it lies."""

    by_seed: tuple[Floats, ...]  # (n,) each
    falls: int
    episodes: int

    @property
    def mean(self) -> float:
        return float(np.concatenate(self.by_seed).mean())

    @property
    def std(self) -> float:
        """Over all keyframes of all seeds."""
        return float(np.concatenate(self.by_seed).std())

    @property
    def seed_means(self) -> list[float]:
        return [float(values.mean()) for values in self.by_seed]

    def as_dict(self) -> dict[str, Any]:
        return {
            "mean_m": self.mean,
            "std_m": self.std,
            "seed_means_m": self.seed_means,
            "seed_std_m": float(np.std(self.seed_means)),
            "falls": self.falls,
            "episodes": self.episodes,
        }


def pooled(errors: Sequence[Errors]) -> Errors:
    """Those of several seeds as one."""
    by_seed = tuple(values for one in errors for values in one.by_seed)
    return Errors(by_seed, sum(one.falls for one in errors), sum(one.episodes for one in errors))


def final_errors(run: Path, task: TaskConfig, episodes: int) -> dict[str, Errors]:
    """Errors of the policy with which a run ended, by the kind of keyframes. Kept in the run's folder, and measured only once."""
    place = run / FINAL
    kept = json.loads(place.read_text()) if place.is_file() else {}
    if kept.get("episodes") != episodes:
        kept = {"episodes": episodes, "kinds": _measured(run, task, episodes)}
        write_atomically(place, json.dumps(kept))
    return {
        kind: Errors((np.array(found["distances"]),), found["falls"], episodes) for kind, found in kept["kinds"].items()
    }


def _measured(run: Path, task: TaskConfig, episodes: int) -> dict[str, Any]:
    """Every policy of a study meets the same episodes, drawn as in its training."""
    library = study_library()
    robot = library.robot
    policy, sampler = final_policy(run, robot), EpisodeSampler(robot, library, task)
    kinds = {}
    for kind, random_share in RANDOM_SHARES.items():
        drawn = sampler.draw(np.random.default_rng([0, *kind.encode()]), episodes, random_share)
        rollout = run_episodes(policy, robot, drawn.start, drawn.goals, inbetween=False)
        distance = rollout.errors[..., 0]
        kinds[kind] = {"distances": distance[~np.isnan(distance)].round(6).tolist(), "falls": rollout.falls}
    return kinds


Verdict = Literal["better", "worse", "undecided"]


def compared(ours: Sequence[float | None], theirs: Sequence[float | None]) -> Verdict:
    """Return how figures of which less is better compare: better or worse only where every seed of two or more agrees.

    None stands for what was never reached.
    """
    if min(len(ours), len(theirs)) < 2:
        return "undecided"
    mine, other = ([np.inf if value is None else value for value in values] for values in (ours, theirs))
    if max(mine) < min(other):
        return "better"
    return "worse" if min(mine) > max(other) else "undecided"


def counted(comparisons: Mapping[str, Verdict]) -> str:
    """One sentence on where a claim holds."""
    where = {how: [name for name, found in comparisons.items() if found == how] for how in get_args(Verdict)}
    phrases = {"better": "better with every seed", "worse": "worse with every seed", "undecided": "undecided"}
    return "; ".join(f"{phrases[how]} at {', '.join(names)}" for how, names in where.items() if names)


def judged(comparisons: Mapping[str, Verdict]) -> str:
    """Return whether a claim of "better" holds everywhere, nowhere or in part."""
    found = set(comparisons.values())
    if found == {"better"}:
        return "supports the paper's claim"
    if "better" not in found and "worse" in found:
        return "contradicts the paper's claim"
    return (
        "supports the paper's claim in part"
        if "better" in found
        else "neither supports nor contradicts the paper's claim"
    )
