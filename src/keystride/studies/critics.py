"""Compare multi-critic with single-critic training for three ranges of time between keyframes (paper, multi-critic RL)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keystride.colours import SERIES, SOFT
from keystride.evaluation.rendering.report import Picture
from keystride.evaluation.tables import Table, TableCell, print_tables
from keystride.learner.config import MULTI_CRITIC, RewardGroup
from keystride.plotting import styled_figure
from keystride.studies.measures import (
    RANDOM_SHARES,
    THRESHOLD,
    Curve,
    Errors,
    RunResult,
    Verdict,
    across_seeds,
    claim_verdict,
    compare,
    comparison_summary,
    finished_results,
    pooled,
)
from keystride.studies.page import StudyReport
from keystride.studies.runs import Size, paper_task, run_config, single_critic, size_warning
from keystride.training.config import TrainingConfig

PAPER_GOAL_WEIGHT = next(group.advantage_weight for group in MULTI_CRITIC if group.name == "goal")
"""The paper states no weights other than those of the multi-critic's advantages: 0.5, 0.5 and 0.1."""

Horizon = tuple[int, int]  # minimum and maximum control steps between keyframes


@dataclass(frozen=True)
class Method:
    """Reward groups, with one critic each."""

    label: str
    name: str  # used in the names of runs
    groups: tuple[RewardGroup, ...]


@dataclass(frozen=True)
class CriticsStudy:
    """The settings of the study, which determine its runs."""

    out: Path
    size: Size
    width: float = 0.8
    horizons: tuple[Horizon, ...] = ((25, 50), (50, 75), (75, 100))
    weights: tuple[float, ...] = (5.0, 20.0, 80.0)
    robot: str = "go2"

    def config(self, method: Method, horizon: Horizon, seed: int) -> TrainingConfig:
        """Return the configuration of one run."""
        name = f"{method.name}-{horizon[0]}-{horizon[1]}-seed{seed}"
        task = paper_task(self.size, self.width, horizon)
        return run_config(self.size, self.out / "runs", name, seed, task, method.groups, robot=self.robot)


@dataclass(frozen=True)
class Arm:
    """The results of all seeds of one method at one horizon."""

    method: Method
    horizon: Horizon
    curves: tuple[Curve, ...]
    errors: Mapping[str, Errors]  # of the final policies, by kind of keyframes

    @property
    def samples(self) -> list[float | None]:
        return [curve.samples_to_threshold for curve in self.curves]

    @property
    def final_means(self) -> list[float]:
        """Return the mean error of each seed, with equal weight for both kinds of keyframes."""
        return [
            sum(means) / len(means)
            for means in zip(*(errors.seed_means for errors in self.errors.values()), strict=True)
        ]


def multi() -> Method:
    return Method("multi-critic", "multi", MULTI_CRITIC)


def single(weight: float, note: str = "") -> Method:
    return Method(f"single critic, goal weight {weight:g}{note}", f"single-{weight:g}", single_critic(weight))


def run_critics(study: CriticsStudy) -> StudyReport:
    """Search the goal weight of the single critic at the first horizon, then train every method at every horizon with every seed.

    Runs of the search are complete runs with the first seed, so those of the selected weights are reused.
    """
    weights = tuple(dict.fromkeys((PAPER_GOAL_WEIGHT, *study.weights)))
    candidates = {weight: study.config(single(weight), study.horizons[0], 0) for weight in weights}
    print(f"searching goal weights of the single critic: {', '.join(f'{weight:g}' for weight in weights)}", flush=True)
    results = finished_results(list(candidates.values()), study.size.episodes)
    found = dict(zip(candidates, results, strict=True))
    tuned = min(found, key=lambda weight: _overall(found[weight].errors))
    table = search_table(study, found, tuned)
    print_tables([table])
    methods = [multi(), single(PAPER_GOAL_WEIGHT, " (the paper's)")]
    if tuned == PAPER_GOAL_WEIGHT:
        methods[1] = single(tuned, " (the paper's, best in the search)")
    else:
        methods.append(single(tuned, " (best in the search)"))
    cases = [(method, horizon) for horizon in study.horizons for method in methods]
    configs = [study.config(*case, seed) for case in cases for seed in range(study.size.seeds)]
    results = finished_results(configs, study.size.episodes)
    arms = [
        _arm(method, horizon, results[i * study.size.seeds : (i + 1) * study.size.seeds])
        for i, (method, horizon) in enumerate(cases)
    ]
    search = {
        f"{weight:g}": {kind: errors.as_dict() for kind, errors in result.errors.items()}
        for weight, result in found.items()
    }
    return critics_report(study, arms, table, {"weights": search, "chosen": tuned})


def _overall(errors: Mapping[str, Errors]) -> float:
    return sum(one.mean for one in errors.values()) / len(errors)


def _arm(method: Method, horizon: Horizon, results: Sequence[RunResult]) -> Arm:
    errors = {kind: pooled([result.errors[kind] for result in results]) for kind in RANDOM_SHARES}
    return Arm(method, horizon, tuple(result.curve for result in results), errors)


def search_table(study: CriticsStudy, found: Mapping[float, RunResult], tuned: float) -> Table:
    """Return the table of the search for the goal weight."""
    lines = tuple(
        (
            TableCell(f"{weight:g}{' (chosen)' if weight == tuned else ''}"),
            TableCell(_millions(result.curve.samples_to_threshold)),
            *(TableCell(f"{errors.mean:.3f} ± {errors.std:.3f}") for errors in result.errors.values()),
            TableCell(f"{_overall(result.errors):.3f}"),
        )
        for weight, result in found.items()
    )
    title = f"Search: goal weight of the single critic, keyframes {_steps(study.horizons[0])} apart, first seed"
    return Table(
        title, ("goal weight", _samples_heading(), "clips, final error, m", "random, final error, m", "both, m"), lines
    )


def critics_table(arms: Sequence[Arm]) -> Table:
    """Return the table of sample counts and final errors."""
    lines = tuple(
        (
            TableCell(f"{_steps(arm.horizon)}: {arm.method.label}"),
            TableCell(", ".join(_millions(samples) for samples in arm.samples)),
            *(
                TableCell(f"{errors.mean:.3f} ± {errors.std:.3f}", f"seeds {_listed(errors.seed_means)}")
                for errors in (arm.errors[kind] for kind in RANDOM_SHARES)
            ),
            TableCell(_listed(arm.final_means)),
            TableCell(f"{sum(e.falls for e in arm.errors.values())} of {sum(e.episodes for e in arm.errors.values())}"),
        )
        for arm in arms
    )
    headings = (_samples_heading(), "clips, final error, m", "random, final error, m", "both, m per seed", "falls")
    return Table("Multi-critic and single critic", ("time between keyframes: critic", *headings), lines)


def critics_report(study: CriticsStudy, arms: Sequence[Arm], search: Table, searched: Mapping[str, Any]) -> StudyReport:
    """Return the report on all arms; `searched` is the data of the search."""
    return StudyReport(
        name="critics",
        title="Multi-critic and single critic",
        setup=_setup(study),
        findings=(*size_warning(study.size), *critics_findings(arms)),
        tables=(critics_table(arms), search),
        pictures={
            "curves": Picture(
                "Evaluations of the deterministic policy over control steps: mean and range over the seeds. Half of the episodes have "
                f"keyframes from clips, half random ones. Dotted: {THRESHOLD} m.",
                curves_figure(arms),
            )
        },
        data={
            "size": asdict(study.size),
            "robot": study.robot,
            "width_m": study.width,
            "search": searched,
            "arms": [
                {
                    "method": arm.method.label,
                    "rewards": [asdict(group) for group in arm.method.groups],
                    "horizon_steps": arm.horizon,
                    "samples_to_threshold": arm.samples,
                    "threshold_m": THRESHOLD,
                    "final": {kind: errors.as_dict() for kind, errors in arm.errors.items()},
                    "curves": [curve.as_dict() for curve in arm.curves],
                }
                for arm in arms
            ],
        },
    )


def critics_findings(arms: Sequence[Arm]) -> list[str]:
    """Return sentences on the claim that multi-critic training needs no retuning when the horizon changes."""
    ours = {arm.horizon: arm for arm in arms if arm.method.name == "multi"}
    sentences = []
    for label in dict.fromkeys(arm.method.label for arm in arms if arm.method.name != "multi"):
        theirs = {arm.horizon: arm for arm in arms if arm.method.label == label}
        error: dict[str, Verdict] = {_steps(h): compare(ours[h].final_means, theirs[h].final_means) for h in theirs}
        speed: dict[str, Verdict] = {_steps(h): compare(ours[h].samples, theirs[h].samples) for h in theirs}
        for measure, verdicts in (("Final error", error), (f"Samples to {THRESHOLD} m", speed)):
            summary = f"{measure} of multi-critic compared with {label}: {comparison_summary(verdicts)}."
            sentences.append(f"{summary} This {claim_verdict(verdicts)}.")
    return sentences


def curves_figure(arms: Sequence[Arm]) -> Any:
    """Plot rewards, errors and survival like the paper: one column per method, one line per horizon."""
    labels = list(dict.fromkeys(arm.method.label for arm in arms))
    rows = {
        "reward": "goal reward of a keyframe",
        "distance": "distance at keyframes, m",
        "survival": "episodes without a fall",
    }
    with styled_figure(4.2 * len(labels), 8.4) as figure:
        panels = figure.subplots(len(rows), len(labels), sharex=True, sharey="row", squeeze=False)
        for column, label in enumerate(labels):
            for row, (name, title) in enumerate(rows.items()):
                axes = panels[row][column]
                for colour, arm in zip(SERIES, (arm for arm in arms if arm.method.label == label), strict=False):
                    steps, low, mean, high = across_seeds(arm.curves, name)
                    axes.fill_between(steps / 1e6, low, high, color=colour, alpha=0.18, linewidth=0)
                    axes.plot(steps / 1e6, mean, color=colour, linewidth=1.8, label=f"{_steps(arm.horizon)} apart")
                if name == "distance":
                    axes.axhline(THRESHOLD, color=SOFT, linewidth=0.9, linestyle=":")
                if column == 0:
                    axes.set_ylabel(title)
                axes.set_ylim(0, None)
            panels[0][column].set_title(label.replace(" (", "\n("))
            panels[-1][column].set_xlabel("million control steps")
        panels[0][0].legend(loc="best")
        return figure


def _setup(study: CriticsStudy) -> tuple[str, ...]:
    size = study.size
    return (
        *size_warning(size),
        f"Position goals on the built-in clips, {size.steps:,} control steps per run, {size.robots} robots, {size.seeds} seeds. Every "
        "run is trained from scratch with the same settings; only the critics and the time between keyframes differ. Goal kernels are "
        f"{study.width:g} m wide throughout.",
        "Samples are control steps until the mean distance at keyframes, in evaluations on fixed episodes, first falls to "
        f"{THRESHOLD} m, for each seed. Final errors are mean ± standard deviation over all keyframes of "
        f"{size.episodes} episodes per kind and seed, including those of fallen robots.",
        "The goal weight of the single critic is searched with keyframes "
        f"{_steps(study.horizons[0])} apart and kept for the other horizons, as in the paper. The search selects the lowest final "
        "error with the first seed, which slightly favours the single critic.",
    )


def _samples_heading() -> str:
    return f"samples to {THRESHOLD} m, million"


def _steps(horizon: Horizon) -> str:
    return f"{horizon[0]}-{horizon[1]} steps"


def _millions(samples: float | None) -> str:
    return "not reached" if samples is None else f"{samples / 1e6:.2f}"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
