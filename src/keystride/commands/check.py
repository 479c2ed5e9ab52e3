"""`keystride check`: report mistakes in keyframe scripts, and keyframes beyond the robot's limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.errors import USER_MISTAKE, UserError, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from keystride.keyframes.feasibility import Demand
    from keystride.keyframes.resolve import Spot
    from keystride.keyframes.script import Keyframe, Script
    from keystride.policy.bundle import Metadata
    from keystride.robot.description import Robot


@dataclass(frozen=True)
class CheckScripts:
    """Check keyframe scripts: print each as a table with the speeds and turn rates it requires.

    Warns where these exceed what the robot can do. If a script has mistakes, lists all of them by file, line and field, and
    exits with code 2.
    """

    scripts: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCRIPT...", help_behavior_hint="")
    ] = ()
    """Keyframe scripts, YAML or JSON."""

    policy: str | None = None
    """Also warn where a script exceeds the training ranges of this policy: a built-in name, a bundle folder or an ONNX file."""

    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""

    waypoints: bool = False
    """Print the waypoints that fill gaps longer than the policy was trained on."""

    inbetween: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Check the script alone, without waypoints in gaps longer than the policy was trained on."""

    schema: bool = False
    """Print the JSON Schema of scripts, for use in editors, and exit."""

    def run(self) -> int:
        if self.schema:
            return _print_schema()
        if not self.scripts:
            raise UserError("no script given; usage: keystride check SCRIPT... (or --schema)")
        from keystride.robot.catalogue import load_robot

        robot = load_robot(self.robot)
        metadata = _metadata(self, robot) if self.policy is not None or self.waypoints else None
        return max([_check(path, self, robot, metadata) for path in self.scripts])


def _print_schema() -> int:
    import json

    from keystride.keyframes.files import script_schema

    print(json.dumps(script_schema(), indent=2))
    return 0


def _metadata(command: CheckScripts, robot: Robot) -> Metadata:
    """Return the metadata of the policy to check scripts against."""
    from keystride.policy import DEFAULT_POLICY
    from keystride.policy.runtime import Policy

    return Policy.load(command.policy or DEFAULT_POLICY, robot=robot).metadata


def _check(path: Path, command: CheckScripts, robot: Robot, metadata: Metadata | None) -> int:
    """Print the report on one file and return its exit code; mistakes do not keep other files from being checked."""
    import sys

    from rich.console import Console

    from keystride.keyframes.document import ScriptError
    from keystride.keyframes.files import load_script

    try:
        _report(Console(), path, load_script(path, robot), command, robot, metadata)
    except (ScriptError, OSError) as error:
        lines = error.lines() if isinstance(error, ScriptError) else [f"{path}: {error.strerror}"]
        print("\n".join(f"error: {printable(line)}" for line in lines), file=sys.stderr)
        return USER_MISTAKE
    return 0


def _report(
    console: Console, path: Path, script: Script, command: CheckScripts, robot: Robot, metadata: Metadata | None
) -> None:
    from rich.text import Text

    from keystride.keyframes.feasibility import script_warnings
    from keystride.policy.guide import outside_training, planned, waypoint_lines

    last = script.keyframes[-1]
    console.print(Text(f"{path}: {len(script.keyframes)} keyframes in {last.time:g} s"))
    console.print(_table(script, robot))
    outside = [] if metadata is None else outside_training(script, metadata, robot, inbetween=command.inbetween)
    plan = None
    if script.stage is not None and command.inbetween:  # obstacles are checked along the waypoints
        plan = planned(script, metadata or _metadata(command, robot), robot)
    for warning in (*script_warnings(script, robot, plan), *outside):
        console.print(Text(f"warning: keyframe {warning.row + 1}: {warning.message}", style="yellow"), soft_wrap=True)
    if metadata is not None and command.waypoints:
        lines = waypoint_lines(planned(script, metadata, robot))
        console.print(Text(f"{len(lines)} waypoints"))
        for line in lines:
            console.print(Text(line), soft_wrap=True)


CHECK_HEADINGS = ("#", "time\ns", "x y z\nm", "roll pitch\nyaw deg", "speed\nm/s", "turn\ndeg/s", "posture", "label")
TEXT_COLUMNS = ("posture", "label")


def _table(script: Script, robot: Robot) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from keystride.keyframes.feasibility import demands
    from keystride.keyframes.resolve import spots

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in CHECK_HEADINGS:
        text = heading in TEXT_COLUMNS
        table.add_column(heading, justify="left" if text else "right", no_wrap=not text, overflow="fold")
    for number, row in enumerate(zip(script.keyframes, spots(script), demands(script, robot), strict=True), start=1):
        table.add_row(*map(Text, (str(number), *_cells(script, *row))))
    return table


def _cells(script: Script, keyframe: Keyframe, spot: Spot, demand: Demand) -> tuple[str, ...]:
    return (
        f"{keyframe.time:g}",
        _position(keyframe, spot.x, spot.y),
        _angles(keyframe, script),
        *_rates(demand),
        _posture(keyframe),
        keyframe.label or "",
    )


def _position(keyframe: Keyframe, x: float, y: float) -> str:
    if keyframe.position is None:
        return "-"
    height = f"{keyframe.position[2]:.2f}" if len(keyframe.position) == 3 else "-"
    return f"{x:.2f} {y:.2f} {height}"


def _angles(keyframe: Keyframe, script: Script) -> str:
    from math import degrees

    from keystride.keyframes.script import angle_unit

    angles = (keyframe.roll, keyframe.pitch, keyframe.yaw)
    if angles == (None, None, None):
        return "-"
    return " ".join("-" if angle is None else f"{degrees(angle * angle_unit(script.angles)):.0f}" for angle in angles)


def _rates(demand: Demand) -> tuple[str, str]:
    from math import degrees

    speed = "-" if demand.speed is None else f"{demand.speed:.2f}"
    turn = "-" if demand.turn_rate is None else f"{degrees(demand.turn_rate):.0f}"
    return speed, turn


def _posture(keyframe: Keyframe) -> str:
    if isinstance(keyframe.posture, dict):
        return ", ".join(name.removesuffix("_joint") for name in keyframe.posture)
    if isinstance(keyframe.posture, str):
        return keyframe.posture
    return "-" if keyframe.posture is None else "12 angles"
