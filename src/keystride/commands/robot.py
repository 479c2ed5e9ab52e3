"""`keystride robot`: print the parameters of a robot, or draw it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.robot.description import Robot


@dataclass(frozen=True)
class ShowRobot:
    """Print the robot's joints, limits, stance and mass."""

    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    json: bool = False
    """Print JSON instead of a table."""
    yaml: bool = False
    """Print the complete description as YAML, as a template for your own robot."""
    picture: Path | None = None
    """Also write a picture of the robot in its stance (.png)."""

    def run(self) -> int:
        from keystride.robot.catalogue import load_robot, robot_text

        robot = load_robot(self.robot)
        if self.yaml:
            print(robot_text(robot), end="")
            return 0
        figures = _figures(robot)
        if self.json:
            _print_json(figures)
        else:
            _print_table(figures)
        if self.picture is not None:
            _draw(robot, self.picture)
        return 0


def _figures(robot: Robot) -> dict[str, Any]:
    from keystride.robot.kinematics import standing_height
    from keystride.robot.model import load_model

    columns = {
        "lower": robot.lower,
        "upper": robot.upper,
        "stance": robot.stance,
        "torque": robot.torque_limit,
        "speed": robot.speed_limit,
    }
    joints = [
        {"name": name, **{key: float(values[i]) for key, values in columns.items()}}
        for i, name in enumerate(robot.joint_names)
    ]
    return {
        "name": robot.name,
        "mass": float(load_model(robot, visual=False).body_mass.sum()),
        "standing_height": float(standing_height(robot, robot.stance)),
        "stiffness": robot.stiffness,
        "damping": robot.damping,
        "joints": joints,
    }


def _print_json(figures: dict[str, Any]) -> None:
    import json

    print(json.dumps(figures, indent=2))


def _print_table(figures: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=figures["name"], title_justify="left")
    table.add_column("joint", no_wrap=True)
    for heading in ("lower rad", "upper rad", "stance rad", "torque N m", "speed rad/s"):
        table.add_column(heading, justify="right")
    for joint in figures["joints"]:
        name, *values = joint.values()
        table.add_row(name, *(f"{value:.4g}" for value in values))
    console = Console()
    console.print(table)
    console.print(f"mass {figures['mass']:.3f} kg, stands {figures['standing_height']:.3f} m high")
    console.print(f"kp {figures['stiffness']:g} N m/rad, kd {figures['damping']:g} N m s/rad")


def _draw(robot: Robot, path: Path) -> None:
    import sys

    from keystride.robot.model import write_png

    picture = _picture(robot)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_png(path, picture)
    print(f"wrote {path}", file=sys.stderr)


def _picture(robot: Robot) -> Any:
    from keystride.robot.model import draw_robot

    try:
        return draw_robot(robot, robot.stance)
    except Exception as error:  # every rendering backend of MuJoCo has its own errors
        raise UserError(
            f"cannot render: {error} (set MUJOCO_GL to egl or osmesa, and check that it is installed)"
        ) from error
