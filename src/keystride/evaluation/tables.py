"""Result rows as tables: one line per scenario, one column per metric, the paper's result below ours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keystride.evaluation.episodes import METRICS
from keystride.evaluation.results import MET_SHARE, Row

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 118  # characters, for tables printed to a file or a pipe
METRIC_HEADINGS = {
    "distance_m": "distance, m",
    "roll_deg": "roll, deg",
    "pitch_deg": "pitch, deg",
    "yaw_deg": "yaw, deg",
    "posture_deg": "posture, deg",
    "height_m": "height, m",
    MET_SHARE: "met",
    "drift_m": "drift, m",
    "drift_deg": "drift, deg",
    "airborne_s": "airborne, s",
    "flight_share": "flights of 0.15 s, share",
    "joint_speed_share": "joint speed (99.9th percentile), share of rating",
    "frechet_angles_rad": "Fréchet distance of joint angles, rad",
    "frechet_velocities_rad_s": "Fréchet distance of joint velocities, rad/s",
    "duty_factor": "duty factor",
    "stride_hz": "stride frequency, Hz",
    "clearance_m": "foot clearance, m",
    "slide_m_s": "movement of planted feet, m/s",
    "slip_m_s": "slip of planted feet, m/s",
    "skating_share": "ground contact with a skating foot, share",
    "joint_acceleration": "joint acceleration (rms), rad/s²",
}
TITLES = {
    "matching": "Keyframe matching: full poses, analogous to the paper's",
    "generalization": "Generalization: by source of the keyframes",
    "anticipation": "Anticipation: two consecutive goals",
    "style": "Style: policy and clips",
    "everyday": "Everyday: scripts as people write them",
    "motors": "Motors: joint speed",
    "robustness": "Robustness: effect of each randomized factor",
}
OTHER_METRICS = ("drift_m", "drift_deg", "airborne_s", "flight_share", "joint_speed_share")  # not errors at keyframes


@dataclass(frozen=True)
class TableCell:
    ours: str
    paper: str = ""
    better: bool | None = None  # whether ours is at most the paper's mean; None without one


@dataclass(frozen=True)
class Table:
    title: str
    headings: tuple[str, ...]
    lines: tuple[tuple[TableCell, ...], ...]


def suite_table(suite: str, rows: Sequence[Row]) -> Table:
    return _style_table(rows) if suite == "style" else _error_table(suite, rows)


def _error_table(suite: str, rows: Sequence[Row]) -> Table:
    metrics = [metric for metric in (*METRICS, MET_SHARE, *OTHER_METRICS) if any(row.metric == metric for row in rows)]
    lines = []
    for (scenario, goal), group in _grouped(rows).items():
        found = {row.metric: row for row in group}
        cells = [error_cell(found[metric]) if metric in found else TableCell("") for metric in metrics]
        lines.append(
            (TableCell(scenario), TableCell(goal), *cells, TableCell(f"{group[0].falls} of {group[0].episodes}"))
        )
    return Table(TITLES[suite], ("scenario", "goal", *(METRIC_HEADINGS[m] for m in metrics), "falls"), tuple(lines))


def _style_table(rows: Sequence[Row]) -> Table:
    """Return a table with one line per metric, and the policy and the clips as columns."""
    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    lines = []
    for metric in dict.fromkeys(row.metric for row in rows):
        found = {row.scenario: row for row in rows if row.metric == metric}
        lines.append((TableCell(METRIC_HEADINGS[metric]), *(TableCell(_spread(found[name])) for name in scenarios)))
    return Table(TITLES["style"], ("", *scenarios), tuple(lines))


def error_cell(row: Row) -> TableCell:
    digits = decimals(row.metric)
    if row.metric in (MET_SHARE, "flight_share"):
        return TableCell(f"{100 * row.mean:.0f}%")
    if row.metric == "joint_speed_share":
        return TableCell(f"{row.mean:.2f}")
    if row.analogous is not None:
        paper = f"analogous: {row.analogous:.{digits}f} ± {row.analogous_std or 0.0:.{digits}f}"
        return TableCell(f"{row.mean:.{digits}f} ± {row.std:.{digits}f}", paper)
    if row.paper is None:
        return TableCell(f"{row.mean:.{digits}f} ± {row.std:.{digits}f}")
    paper = f"{row.paper:.{digits}f} ± {row.paper_std or 0.0:.{digits}f}"
    return TableCell(f"{row.mean:.{digits}f} ± {row.std:.{digits}f}", paper, row.mean <= row.paper)


def decimals(metric: str) -> int:
    return 3 if metric.endswith("_m") else 2 if metric.endswith("_s") else 1


def _spread(row: Row) -> str:
    return f"{row.mean:.3g} ± {row.std:.2g}" if row.std else f"{row.mean:.3g}"


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.scenario, row.goal), []).append(row)
    return groups


def print_tables(tables: Iterable[Table], console: "Console | None" = None) -> None:
    """Print tables as wide as the terminal, or FILE_WIDTH characters wide to a file or a pipe."""
    from rich import box
    from rich.table import Table as RichTable

    console = console or table_console()
    for table in tables:
        drawn = RichTable(
            box=box.SIMPLE_HEAD, pad_edge=False, title=table.title, title_justify="left", title_style="bold"
        )
        for i, heading in enumerate(table.headings):
            drawn.add_column(heading.replace(", ", "\n", 1), justify="left" if i == 0 else "right")
        for line in table.lines:
            drawn.add_row(*map(_rich_cell, line))
        console.print(drawn)


def table_console(file: Any = None) -> "Console":
    from rich.console import Console

    console = Console(file=file)
    return console if console.is_terminal else Console(file=file, width=FILE_WIDTH)


def _rich_cell(cell: TableCell) -> Any:
    from rich.text import Text

    text = Text(cell.ours, "green" if cell.better else "")
    return text.append(f"\n{cell.paper}", "dim") if cell.paper else text
