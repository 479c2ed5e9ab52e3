"""The learning curve of a run, thinned for plotting."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from keystride.errors import FileError
from keystride.reading import MIB, check_model, check_size, named_errors, one_line, parse_json, read_json

MetricsRow = dict[str, float]
POINTS = 200
MOST_METRICS = 128 * MIB  # of a run: a week of training
MAX_ITERATIONS = 200_000  # rows of a curve
LONGEST_ROW = MIB
MAX_METRIC = 1e18  # of a metric
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
    """Return means over intervals of training, every evaluation, and the hours spent; optionally up to a number of control steps.

    {"steps": N, "hours": H, "training": {"steps": [...], name: [...], ...},
     "evaluation": {"steps": [...], "minutes": [...], name: [...], ...}}
    """
    rows, seconds = _continued(_rows(metrics), until)
    evaluations = [row for row in rows if any(name.startswith(EVALUATION) for name in row)]
    minutes = dict(zip((row["steps"] for row in rows), _training_minutes(rows), strict=True))
    return {
        "steps": int(rows[-1]["steps"]) if rows else 0,
        "hours": round(seconds / 3600, 2),
        "training": _columns(_thinned(rows, POINTS), KEPT),
        "evaluation": {
            **_columns(evaluations, (EVALUATION,)),
            "minutes": [round(minutes[row["steps"]], 3) for row in evaluations],
        },
    }


class _Curve(BaseModel):
    model_config = ConfigDict(strict=True)
    steps: int = Field(ge=0)
    hours: float = Field(ge=0.0)
    training: dict[str, list[float | None]]
    evaluation: dict[str, list[float | None]]


def read_bundle_curve(path: Path) -> dict[str, Any]:
    """Return what `read_curve` returned when the bundle was made."""
    return check_model(read_json(path), _Curve, str(path)).model_dump()


def _rows(metrics: Path) -> Iterable[MetricsRow]:
    """Yield the rows of a run; a line that a killed run did not finish is left out."""
    for number, line in enumerate(_lines(metrics), 1):
        try:
            row = parse_json(line)
        except FileError:
            continue
        if number > MAX_ITERATIONS:
            raise FileError(f"{metrics}: more than {MAX_ITERATIONS} rows")
        if not isinstance(row, dict) or not {"steps", "seconds"} <= row.keys():
            raise FileError(f"{metrics}:{number}: not a row of metrics; allowed: names with numbers, steps and seconds")
        for name, value in row.items():
            if type(value) not in (int, float) or not abs(value) < MAX_METRIC:
                raise FileError(
                    f"{metrics}:{number}: {one_line(name, 60)} is {one_line(repr(value), 40)}; allowed: a number below {MAX_METRIC:g}"
                )
        yield row


def _lines(metrics: Path) -> Iterator[str]:
    """Yield the lines of a file one by one, so that it is never in memory as a whole."""
    try:
        check_size(metrics, MOST_METRICS)
    except FileError as error:
        raise FileError(f"{metrics}: {error}") from error
    with metrics.open("rb") as file, named_errors(metrics):
        while line := file.readline(LONGEST_ROW + 1):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise FileError(f"{metrics}: not text in UTF-8") from error
            if len(line) > LONGEST_ROW or "\0" in text:
                raise FileError(f"{metrics}: binary, or a line that is too long; allowed: lines of JSON")
            yield text


def _continued(rows: Iterable[MetricsRow], until: int | None) -> tuple[list[MetricsRow], float]:
    """Return the rows that led to the policy, and the seconds spent on them.

    A resumed run restarts its clock and repeats the rows since its last checkpoint; the repeated rows replace the earlier ones.
    """
    kept: list[MetricsRow] = []
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


def _training_minutes(rows: Sequence[MetricsRow]) -> Iterable[float]:
    """Yield the minutes spent on iterations, without evaluations and start-up, until each row."""
    total = 0.0
    for row in rows:
        total += row.get("iteration_seconds", 0.0) / 60
        yield total


def _thinned(rows: Sequence[MetricsRow], points: int) -> list[MetricsRow]:
    size = -(-len(rows) // points) or 1
    return [_mean(rows[i : i + size]) for i in range(0, len(rows), size)]


def _mean(rows: Sequence[MetricsRow]) -> MetricsRow:
    names = {name: None for row in rows for name in row}
    means = {name: _average([row[name] for row in rows if name in row]) for name in names}
    return {**means, "steps": rows[-1]["steps"]}


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _columns(rows: Sequence[MetricsRow], prefixes: tuple[str, ...]) -> dict[str, list[float | None]]:
    names = sorted({name for row in rows for name in row if name.startswith(prefixes)})
    columns: dict[str, list[float | None]] = {"steps": [int(row["steps"]) for row in rows]}
    for name in names:
        columns[name.removeprefix(EVALUATION)] = [_rounded(row.get(name)) for row in rows]
    return columns


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
