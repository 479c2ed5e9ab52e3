"""A run's learning curve, thinned to what a plot can show."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, float]
POINTS = 200
EVALUATION = "evaluation/"
KEPT = (
    "reward/",
    "kernel_error/",
    "survival",
    "met",
    "std",
    "width/",
    "learning_rate",
    "random_share",
    "discriminator/",
)


def read_curve(metrics: Path, until: int | None = None) -> dict[str, Any]:
    """Means over stretches of training, every evaluation, and the hours it took; up to a number of control steps.

    {"steps": N, "hours": H, "training": {"steps": [...], name: [...], ...}, "evaluation": {"steps": [...], ...}}
    """
    rows, seconds = _continued(_rows(metrics), until)
    evaluations = [row for row in rows if any(name.startswith(EVALUATION) for name in row)]
    return {
        "steps": int(rows[-1]["steps"]) if rows else 0,
        "hours": round(seconds / 3600, 2),
        "training": _columns(_thinned(rows, POINTS), KEPT),
        "evaluation": _columns(evaluations, (EVALUATION,)),
    }


def _rows(metrics: Path) -> Iterable[Row]:
    for line in metrics.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # the line that a killed run did not finish


def _continued(rows: Iterable[Row], until: int | None) -> tuple[list[Row], float]:
    """The rows that led to the policy, and the seconds spent on them.

    A run that was resumed starts its clock again, a little before the last row: what it repeats, replaces.
    """
    kept: list[Row] = []
    spent, clock = 0.0, 0.0
    for row in rows:
        if until is not None and row["steps"] > until:
            continue
        while kept and kept[-1]["steps"] >= row["steps"]:
            kept.pop()
        spent += row["seconds"] - clock if row["seconds"] >= clock else row["seconds"]
        clock = row["seconds"]
        kept.append(row)
    return kept, spent


def _thinned(rows: Sequence[Row], points: int) -> list[Row]:
    size = -(-len(rows) // points) or 1
    return [_mean(rows[i : i + size]) for i in range(0, len(rows), size)]


def _mean(rows: Sequence[Row]) -> Row:
    names = {name: None for row in rows for name in row}
    means = {name: _average([row[name] for row in rows if name in row]) for name in names}
    return {**means, "steps": rows[-1]["steps"]}


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _columns(rows: Sequence[Row], prefixes: tuple[str, ...]) -> dict[str, list[float | None]]:
    names = sorted({name for row in rows for name in row if name.startswith(prefixes)})
    columns: dict[str, list[float | None]] = {"steps": [int(row["steps"]) for row in rows]}
    for name in names:
        columns[name.removeprefix(EVALUATION)] = [_rounded(row.get(name)) for row in rows]
    return columns


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
