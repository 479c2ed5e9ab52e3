"""Result rows, from which tables, the JSON file and the report are made, and the paper's results to compare them with."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.episodes import METRICS, EpisodeRollout
from keystride.keyframes.goals import used
from keystride.robot.description import Floats

Cell = tuple[float, float]  # mean, standard deviation
Cells = Mapping[str, Cell]  # by metric
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


def _column(*cells: Cell) -> dict[str, Cell]:
    return dict(zip(METRICS, cells, strict=False))


# Keyframe matching error for three different scenarios; by scenario and goal.
PAPER_MATCHING: dict[tuple[str, int], Cells] = {
    ("walk", 1): _column((0.048, 0.011), (3.094, 0.327), (0.332, 0.178), (1.209, 0.384), (2.469, 0.309)),
    ("walk", 2): _column((0.020, 0.003), (1.621, 0.074), (0.934, 0.235), (2.120, 0.367), (2.595, 0.126)),
    ("jump", 1): _column((0.118, 0.012), (1.473, 0.579), (1.558, 0.940), (7.110, 1.060), (3.226, 0.103)),
    ("paw up", 1): _column((0.044, 0.015), (1.209, 0.733), (0.516, 0.246), (2.773, 1.301), (4.698, 0.808)),
}

# Keyframe matching performance across different keyframe sampling strategies.
PAPER_GENERALIZATION: dict[str, Cells] = {
    "dataset": _column((0.060, 0.050), (1.873, 1.888), (3.084, 6.747), (2.394, 1.775), (5.119, 3.143)),
    "random": _column((0.142, 0.087), (3.181, 3.466), (4.260, 9.202), (8.754, 6.220), (4.640, 1.606)),
    "unseen": _column((0.064, 0.060), (3.231, 9.053), (1.438, 2.842), (2.200, 2.235), (9.207, 7.122)),
}

# Average position error for three keyframe scenarios; by awareness, scenario and goal.
PAPER_ANTICIPATION: dict[tuple[str, str, int], Cells] = {
    ("all", "straight", 1): _column((0.0872, 0.0336)),
    ("all", "turn", 1): _column((0.0781, 0.0236)),
    ("all", "slow turn", 1): _column((0.0806, 0.0265)),
    ("next", "straight", 1): _column((0.0898, 0.0317)),
    ("next", "turn", 1): _column((0.0841, 0.0335)),
    ("next", "slow turn", 1): _column((0.0787, 0.0208)),
    ("all", "straight", 2): _column((0.0472, 0.0187)),
    ("all", "turn", 2): _column((0.3340, 0.1162)),
    ("all", "slow turn", 2): _column((0.0566, 0.0804)),
    ("next", "straight", 2): _column((0.1332, 0.0605)),
    ("next", "turn", 2): _column((0.7271, 0.1528)),
    ("next", "slow turn", 2): _column((0.1711, 0.1071)),
}
