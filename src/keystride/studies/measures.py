"""Measure the runs of a study: learning curves, errors of the final policies, and comparisons over seeds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from keystride.benchmarks.learning import first_at_or_below
from keystride.evaluation.episodes import run_episodes
from keystride.files import write_atomically
from keystride.policy.curve import read_curve
from keystride.reading import check_model, read_json
from keystride.robot.description import Floats
from keystride.studies.runs import check_same_settings, final_policy, finish_runs, study_library
from keystride.task.config import TaskConfig
from keystride.task.sampling import EpisodeSampler
from keystride.training.config import TrainingConfig, config_of_run, plain_config

RANDOM_SHARES = {"dataset": 0.0, "random": 1.0}  # share of random keyframes that gives each kind
THRESHOLD = 0.3  # m, mean distance at keyframes


@dataclass(frozen=True)
class Curve:
    """The P evaluations of one run, with the deterministic policy on the same episodes each time.

    All values are means over keyframes from clips and random keyframes, with equal weight.
    """

    steps: Floats  # (P,)
    distance: Floats  # (P,) m, at keyframes
    reward: Floats  # (P,) goal reward when a keyframe is due
    survival: Floats  # (P,) share of episodes without a fall

    @property
    def samples_to_threshold(self) -> float | None:
        """Return the control steps until the distance first falls to the threshold, or None."""
        known = [None if np.isnan(value) else float(value) for value in self.distance]
        return first_at_or_below(known, self.steps.tolist(), THRESHOLD)

    def as_dict(self) -> dict[str, list[float | None]]:
        return {
            name: [None if np.isnan(value) else round(float(value), 6) for value in getattr(self, name)]
            for name in ("steps", "distance", "reward", "survival")
        }


def read_run_curve(run: Path) -> Curve:
    """Return the evaluations of the run in this folder."""
    columns = read_curve(run / "metrics.jsonl")["evaluation"]

    def mean(name: str) -> Floats:
        kinds = [columns.get(f"{kind}/{name}", [None] * len(columns["steps"])) for kind in RANDOM_SHARES]
        return np.array(kinds, dtype=np.float64).mean(axis=0)

    return Curve(
        np.array(columns["steps"], dtype=np.float64), mean("position"), mean("goal_reward_when_due"), mean("survival")
    )


def across_seeds(curves: Sequence[Curve], name: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the steps (P,) and the minimum, mean and maximum (P,) over seeds, for the evaluations that all seeds have."""
    points = min(len(curve.steps) for curve in curves)
    values = np.stack([getattr(curve, name)[:points] for curve in curves])
    return curves[0].steps[:points], values.min(axis=0), values.mean(axis=0), values.max(axis=0)


@dataclass(frozen=True)
class Errors:
    """The distances at keyframes of one or more policies, m. Fallen robots are measured where they lie."""

    by_seed: tuple[Floats, ...]  # (n,) each
    falls: int
    episodes: int

    @property
    def mean(self) -> float:
        return float(np.concatenate(self.by_seed).mean())

    @property
    def std(self) -> float:
        """Return the standard deviation over all keyframes of all seeds."""
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
    """Return the errors of several seeds as one object."""
    by_seed = tuple(values for one in errors for values in one.by_seed)
    return Errors(by_seed, sum(one.falls for one in errors), sum(one.episodes for one in errors))


@dataclass(frozen=True)
class RunResult:
    """What a study needs of a finished run."""

    curve: Curve
    errors: Mapping[str, Errors]  # of the final policy, by kind of keyframes


class _Final(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    distances: list[float] = Field(min_length=1)
    falls: int = Field(ge=0)


class _Curve(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    steps: list[float] = Field(min_length=1)
    distance: list[float | None]
    reward: list[float | None]
    survival: list[float | None]

    @model_validator(mode="after")
    def _one_value_per_evaluation(self) -> "_Curve":
        if {len(self.distance), len(self.reward), len(self.survival)} != {len(self.steps)}:
            raise ValueError("the columns differ in length; allowed: one value for each of steps")
        return self


class _Result(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    settings: dict[str, Any]
    episodes: int = Field(ge=1)
    final: dict[Literal["dataset", "random"], _Final] = Field(min_length=2)
    curve: _Curve


def result_file(config: TrainingConfig) -> Path:
    """Return the file that keeps the result of a run: without the run's own folder, it is all that a study needs."""
    return config.runs.parent / "results" / f"{config.name}.json"


def finished_results(configs: Sequence[TrainingConfig], episodes: int) -> list[RunResult]:
    """Train those of the runs that are not finished, measure and keep their results, and return the results of all."""
    finish_runs(
        configs,
        kept=lambda config: read_result(config, episodes) is not None,
        keep=lambda config: keep_result(config, episodes),
    )
    results = [read_result(config, episodes) for config in configs]
    return [result for result in results if result is not None]


def read_result(config: TrainingConfig, episodes: int) -> RunResult | None:
    """Return the kept result of a run, or None if there is none for this number of episodes."""
    place = result_file(config)
    if not place.is_file():
        return None
    kept = check_model(read_json(place), _Result, str(place))
    check_same_settings(kept.settings, config, place)
    if kept.episodes != episodes:
        return None
    columns = {name: np.array(values, dtype=np.float64) for name, values in kept.curve.model_dump().items()}
    errors = {kind: Errors((np.array(one.distances),), one.falls, episodes) for kind, one in kept.final.items()}
    return RunResult(Curve(**columns), errors)


def keep_result(config: TrainingConfig, episodes: int) -> None:
    """Measure the final policy of a finished run and keep the result, without the run's folder so that it can be copied elsewhere."""
    settings = plain_config(config)
    del settings["runs"]
    result = {
        "settings": settings,
        "episodes": episodes,
        "final": _measure_final_errors(config.folder, config.task, episodes),
        "curve": read_run_curve(config.folder).as_dict(),
    }
    write_atomically(result_file(config), json.dumps(result))


def _measure_final_errors(run: Path, task: TaskConfig, episodes: int) -> dict[str, Any]:
    """Evaluate on episodes sampled as in training; they are the same for all policies of a study."""
    library = study_library(config_of_run(run).robot)
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


def compare(ours: Sequence[float | None], theirs: Sequence[float | None]) -> Verdict:
    """Compare two methods by one value per seed, where lower is better and None means never reached.

    The verdict is better or worse only if there are at least two seeds and all of ours are better, or worse, than all of theirs.
    """
    if min(len(ours), len(theirs)) < 2:
        return "undecided"
    mine, other = ([np.inf if value is None else value for value in values] for values in (ours, theirs))
    if max(mine) < min(other):
        return "better"
    return "worse" if min(mine) > max(other) else "undecided"


def comparison_summary(comparisons: Mapping[str, Verdict]) -> str:
    """Return a phrase that lists the cases by verdict."""
    where = {how: [name for name, found in comparisons.items() if found == how] for how in get_args(Verdict)}
    phrases = {"better": "better with every seed", "worse": "worse with every seed", "undecided": "undecided"}
    return "; ".join(f"{phrases[how]} at {', '.join(names)}" for how, names in where.items() if names)


def claim_verdict(comparisons: Mapping[str, Verdict]) -> str:
    """Return a phrase that says whether the paper's claim of "better" holds in all cases, in some or in none."""
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
