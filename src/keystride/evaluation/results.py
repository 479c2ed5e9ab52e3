"""Result rows, one per figure. Tables, the JSON file and the report are made from them."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.episodes import EpisodeRollout
from keystride.evaluation.errors import METRICS
from keystride.evaluation.paper import Cells
from keystride.keyframes.goals import used
from keystride.robot.description import Floats

NO_CELLS: Cells = {}
MET_SHARE = "met_share"


@dataclass(frozen=True)
class Row:
    """Mean and standard deviation of one metric over all episodes, including those with a fall."""

    suite: str
    scenario: str
    goal: str  # number of the keyframe, or "all"
    metric: str
    mean: float
    std: float
    episodes: int
    falls: int
    paper: float | None = None
    paper_std: float | None = None
    analogous: float | None = None  # the paper's figure for a similar, not identical scenario
    analogous_std: float | None = None
    policy: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Subject:
    """The suite, scenario and policy that rows are about."""

    suite: str
    scenario: str
    policy: str


def rows_of_goal(
    subject: Subject,
    rollout: EpisodeRollout,
    goal: int,
    cells: Cells = NO_CELLS,
    *,
    same: bool = True,
    valid: NDArray[np.bool_] | None = None,
) -> list[Row]:
    """Return the rows for keyframe number `goal` (counted from 1) of every episode.

    `cells` are the paper's results, for the same scenario or an analogous one. Where `valid` (E,) is False, the keyframe counts
    as missed.
    """
    chosen = np.zeros(rollout.goals.step.shape, dtype=bool)
    chosen[:, goal - 1] = True
    return _rows(subject, str(goal), rollout, chosen, cells, same, valid)


def rows_of_all_goals(subject: Subject, rollout: EpisodeRollout, cells: Cells = NO_CELLS) -> list[Row]:
    """Return the rows for all keyframes of all episodes."""
    return _rows(subject, "all", rollout, used(rollout.goals), cells)


def single_row(subject: Subject, metric: str, values: Floats, *, episodes: int, falls: int) -> Row:
    """Return the row for a metric other than an error at keyframes; values are (n,) per episode, or (1,) overall."""
    mean, std = (float(values.mean()), float(values.std())) if len(values) else (0.0, 0.0)
    return Row(subject.suite, subject.scenario, "all", metric, mean, std, episodes, falls, policy=subject.policy)


def _rows(
    subject: Subject,
    goal: str,
    rollout: EpisodeRollout,
    chosen: NDArray[np.bool_],
    cells: Cells,
    same: bool = True,
    valid: NDArray[np.bool_] | None = None,
) -> list[Row]:
    """Return the rows for the keyframes selected by `chosen` (E, K)."""
    met = rollout.met if valid is None else rollout.met & valid[:, None]
    names = ("paper", "paper_std") if same else ("analogous", "analogous_std")
    found = [
        (metric, values)
        for metric, values in zip(METRICS, rollout.errors[chosen].T, strict=True)
        for values in [values[~np.isnan(values)]]
        if len(values)
    ]
    return [
        Row(
            suite=subject.suite,
            scenario=subject.scenario,
            goal=goal,
            metric=metric,
            mean=float(values.mean()),
            std=float(values.std()),
            episodes=len(rollout.fell),
            falls=rollout.falls,
            policy=subject.policy,
            **(dict(zip(names, cells[metric], strict=True)) if metric in cells else {}),
        )
        for metric, values in [*found, (MET_SHARE, met[chosen].astype(np.float64))]
    ]
