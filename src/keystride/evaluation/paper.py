"""The paper's result tables: mean and standard deviation of every cell."""

from collections.abc import Mapping

from keystride.evaluation.errors import METRICS

Cell = tuple[float, float]  # mean, standard deviation
Cells = Mapping[str, Cell]  # by metric


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
GENERALIZATION: dict[str, Cells] = {
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
