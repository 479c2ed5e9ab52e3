"""Compare a policy that sees all goals with one that sees only the next goal (paper, future goal anticipation)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from keystride.colours import BLUE, ORANGE
from keystride.evaluation.episodes import EpisodeRollout
from keystride.evaluation.rendering import figures
from keystride.evaluation.rendering.report import Picture
from keystride.evaluation.results import PAPER_ANTICIPATION
from keystride.evaluation.scenarios import ANTICIPATION_SCENARIOS
from keystride.evaluation.setting import Contender, Libraries, Setting
from keystride.evaluation.suites import NEXT_ONLY, anticipation
from keystride.evaluation.tables import Table, TableCell
from keystride.plotting import styled_figure
from keystride.studies.measures import (
    Curve,
    Errors,
    Verdict,
    across_seeds,
    claim_verdict,
    compare,
    comparison_summary,
    pooled,
    read_run_curve,
)
from keystride.studies.page import StudyReport
from keystride.studies.runs import Size, final_policy, finish_runs, paper_task, run_config, size_warning, study_library
from keystride.training.config import TrainingConfig, TrainingStage

Sight = Literal["all", "next"]
SIGHTS: dict[Sight, str] = {"all": "sees all goals", "next": "sees only the next goal"}
GOALS = (1, 2)
ScenarioGoal = tuple[str, int]  # scenario, and goal counted from 1


@dataclass(frozen=True)
class AnticipationStudy:
    """The settings of the study, which determine its runs."""

    out: Path
    size: Size
    widths: tuple[float, ...] = (0.8, 0.6, 0.4)
    robot: str = "go2"

    def config(self, sight: Sight, seed: int) -> TrainingConfig:
        """Return the configuration of one run.

        Goal kernels narrow at fixed times: if they followed the error, they would differ between the policies.
        """
        task = paper_task(self.size, self.widths[0], see=sight)
        parts = [
            (width, self.size.steps * (i + 1) // len(self.widths) if i + 1 < len(self.widths) else None)
            for i, width in enumerate(self.widths)
        ]
        stages = tuple(
            TrainingStage(f"part {number}", until, {"task": {"goal_widths": _widths(self.size, width)}})
            for number, (width, until) in enumerate(parts, start=1)
        )
        return run_config(
            self.size, self.out / "runs", f"{sight}-seed{seed}", seed, task, stages=stages, robot=self.robot
        )


def _widths(size: Size, width: float) -> dict[str, float]:
    return asdict(paper_task(size, width).goal_widths)


def run_anticipation(study: AnticipationStudy) -> StudyReport:
    """Train both policies with every seed, then evaluate them on the paper's three scenarios from the same initial states."""
    seeds = range(study.size.seeds)
    configs = {(sight, seed): study.config(sight, seed) for seed in seeds for sight in SIGHTS}
    finish_runs(list(configs.values()))
    library = study_library(study.robot)
    robot, libraries = library.robot, Libraries(library)
    rollouts = []
    for seed in seeds:
        ours, theirs = (Contender(SIGHTS[sight], final_policy(configs[sight, seed].folder, robot)) for sight in SIGHTS)
        setting = Setting(
            robot, ours, libraries, rival=theirs, episodes=study.size.episodes, seed=seed, inbetween=False
        )
        rollouts.append(anticipation(setting).rollouts)
    curves: dict[Sight, tuple[Curve, ...]] = {
        sight: tuple(read_run_curve(configs[sight, seed].folder) for seed in seeds) for sight in SIGHTS
    }
    return anticipation_report(study, rollouts, curves)


def errors_of(rollouts: Sequence[Mapping[str, EpisodeRollout]]) -> dict[Sight, dict[ScenarioGoal, Errors]]:
    """Return the distances at each goal of each scenario, given the rollouts of each seed by scenario."""
    suffixes: dict[Sight, str] = {"all": "", "next": NEXT_ONLY}
    return {
        sight: {
            (scenario.name, goal): pooled(
                [
                    Errors((rollout.errors[:, goal - 1, 0],), rollout.falls, len(rollout.fell))
                    for rollout in (of_seed[scenario.name + suffix] for of_seed in rollouts)
                ]
            )
            for scenario in ANTICIPATION_SCENARIOS
            for goal in GOALS
        }
        for sight, suffix in suffixes.items()
    }


def anticipation_report(
    study: AnticipationStudy, rollouts: Sequence[Mapping[str, EpisodeRollout]], curves: Mapping[Sight, Sequence[Curve]]
) -> StudyReport:
    """Return the report on the rollouts and learning curves of all seeds."""
    errors = errors_of(rollouts)
    paths = {
        f"turn-seed{seed}": Picture(
            f"The turn from above, seed {seed}; arrows show the heading at the first goal. Right: yaw at the first goal.",
            figures.anticipation_figure(of_seed),
        )
        for seed, of_seed in enumerate(rollouts)
    }
    learning = Picture(
        "Evaluations during training: mean and range over the seeds. Half of the episodes have keyframes from clips, half random "
        "ones.",
        learning_figure(curves),
    )
    return StudyReport(
        name="anticipation",
        title="Anticipation: seeing all goals or only the next one",
        setup=_setup(study),
        findings=(*size_warning(study.size), *anticipation_findings(errors)),
        tables=(anticipation_table(errors),),
        pictures={"curves": learning, **paths},
        data={
            "size": asdict(study.size),
            "robot": study.robot,
            "widths_m": study.widths,
            "arms": [
                {
                    "sees": sight,
                    "scenarios": [
                        {"scenario": name, "goal": goal, **found.as_dict(), "paper_m": _paper_cell(sight, name, goal)}
                        for (name, goal), found in errors[sight].items()
                    ],
                    "curves": [curve.as_dict() for curve in curves[sight]],
                }
                for sight in SIGHTS
            ],
        },
    )


def anticipation_findings(errors: Mapping[Sight, Mapping[ScenarioGoal, Errors]]) -> list[str]:
    """Return sentences on the claim that seeing all goals helps, especially at the second goal."""
    sentences = []
    for goal, name in zip(GOALS, ("first", "second"), strict=True):
        comparisons: dict[str, Verdict] = {
            scenario.name: compare(
                errors["all"][scenario.name, goal].seed_means, errors["next"][scenario.name, goal].seed_means
            )
            for scenario in ANTICIPATION_SCENARIOS
        }
        sentence = f"Distance at the {name} goal, seeing all goals compared with seeing only the next: "
        sentence += f"{comparison_summary(comparisons)}."
        sentences.append(sentence + (f" This {claim_verdict(comparisons)}." if goal == GOALS[-1] else ""))
    return sentences


def anticipation_table(errors: Mapping[Sight, Mapping[ScenarioGoal, Errors]]) -> Table:
    """Return the table of distances. The paper's results, for the same goals but after longer training, are below ours."""
    lines = []
    for place in errors["all"]:
        found: dict[Sight, Errors] = {sight: errors[sight][place] for sight in SIGHTS}
        cells = [
            cell
            for sight, one in found.items()
            for cell in (_cell(sight, place, one), TableCell(", ".join(f"{mean:.3f}" for mean in one.seed_means)))
        ]
        falls = TableCell("; ".join(f"{one.falls} of {one.episodes}" for one in found.values()))
        lines.append((TableCell(f"{place[0]}, goal {place[1]}"), *cells, falls))
    headings = [heading for label in SIGHTS.values() for heading in (f"{label}, m", "mean per seed, m")]
    return Table("Distance at the goals", ("scenario", *headings, "falls (all; next)"), tuple(lines))


def _cell(sight: Sight, place: ScenarioGoal, errors: Errors) -> TableCell:
    mean, std = _paper_cell(sight, *place)
    return TableCell(f"{errors.mean:.3f} ± {errors.std:.3f}", f"paper: {mean:.3f} ± {std:.3f}")


def _paper_cell(sight: Sight, scenario: str, goal: int) -> tuple[float, float]:
    return PAPER_ANTICIPATION[sight, scenario, goal]["distance_m"]


def learning_figure(curves: Mapping[Sight, Sequence[Curve]]) -> Any:
    """Plot the mean and range over the seeds of the learning curves."""
    with styled_figure(9.0, 3.6) as figure:
        for axes, (name, title) in zip(
            figure.subplots(1, 2),
            (("distance", "distance at keyframes, m"), ("survival", "episodes without a fall")),
            strict=True,
        ):
            for sight, colour in zip(SIGHTS, (BLUE, ORANGE), strict=True):
                steps, low, mean, high = across_seeds(curves[sight], name)
                axes.fill_between(steps / 1e6, low, high, color=colour, alpha=0.18, linewidth=0)
                axes.plot(steps / 1e6, mean, color=colour, linewidth=1.8, label=SIGHTS[sight])
            axes.margins(y=0.1)
            axes.set(title=title, xlabel="million control steps", ylim=(0, None))
            axes.legend(loc="best")
        return figure


def _setup(study: AnticipationStudy) -> tuple[str, ...]:
    size = study.size
    widths = ", ".join(f"{width:g}" for width in study.widths)
    return (
        *size_warning(size),
        f"Position goals on the built-in clips, {size.steps:,} control steps per run, {size.robots} robots, {size.seeds} seeds. Both "
        "policies are trained from scratch with the same settings, seeds and sample counts; only what they see differs. Goal kernels "
        f"are {widths} m wide, each for an equal part of a run.",
        f"The policies are then evaluated on the paper's three scenarios with {size.episodes} episodes per scenario and seed, from "
        "slightly perturbed stances that are the same for both. Results are mean ± standard deviation over all episodes of all seeds, "
        "including those with a fall, with the paper's results in grey.",
    )
