"""One row a figure: what every table, the JSON file and the report are made of."""

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
    """Mean and standard deviation of one metric over all episodes, those with a fall included."""

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
    analogous: float | None = None  # the paper's figure for a scenario that is alike, not the same
    analogous_std: float | None = None
    policy: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Subject:
    """What rows are about."""

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
    counts: NDArray[np.bool_] | None = None,
) -> list[Row]:
    """Return the rows of the goal-th keyframe (counted from 1) of every episode.

    cells are the paper's, of the same scenario or of an analogous one; where counts (E,) is False, the keyframe is missed.
    """
    chosen = np.zeros(rollout.goals.step.shape, dtype=bool)
    chosen[:, goal - 1] = True
    return _rows(subject, str(goal), rollout, chosen, cells, same, counts)


def rows_of_all_goals(subject: Subject, rollout: EpisodeRollout, cells: Cells = NO_CELLS) -> list[Row]:
    """Return the rows of every keyframe of every episode."""
    return _rows(subject, "all", rollout, used(rollout.goals), cells)


def single_row(subject: Subject, metric: str, values: Floats, *, episodes: int, falls: int) -> Row:
    """Return the row of a figure that is not an error at a keyframe: over episodes (n,), or over all frames together (1,)."""
    mean, std = (float(values.mean()), float(values.std())) if len(values) else (0.0, 0.0)
    return Row(subject.suite, subject.scenario, "all", metric, mean, std, episodes, falls, policy=subject.policy)


def _rows(
    subject: Subject,
    goal: str,
    rollout: EpisodeRollout,
    chosen: NDArray[np.bool_],
    cells: Cells,
    same: bool = True,
    counts: NDArray[np.bool_] | None = None,
) -> list[Row]:
    """chosen (E, K) of the keyframes."""
    met = rollout.met if counts is None else rollout.met & counts[:, None]
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
