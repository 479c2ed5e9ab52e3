"""Robots by name, and robots described in a file."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from keystride.errors import FileError
from keystride.reading import mistake, one_line, read_yaml
from keystride.robot.description import JOINT_NAMES, Robot
from keystride.robot.go2 import GO2

ROBOTS: dict[str, Robot] = {"go2": GO2}
"""The built-in robots, by the names that `--robot` takes."""

DEFAULT_ROBOT = "go2"

MAX_NAME_LENGTH = 60  # characters
LEG_NAMES = tuple(dict.fromkeys(name.split("_")[0] for name in JOINT_NAMES))
ANGLE, LENGTH, SIZE = (-7.0, 7.0), (0.01, 5.0), (0.001, 5.0)  # rad, m, m
NUMBER_RANGES = {  # of a description's numbers; a stiffness, length or torque of zero would be divided by
    "hip_in_base": (-5.0, 5.0),
    "thigh_in_hip": (-5.0, 5.0),
    **dict.fromkeys(("lower", "upper", "stance"), ANGLE),
    **dict.fromkeys(("thigh_length", "calf_length"), LENGTH),
    **dict.fromkeys(("foot_radius", "trunk_half_size"), SIZE),
    "torque": (0.01, 10_000.0),  # N m
    "speed": (0.1, 1_000.0),  # rad/s
    "stiffness": (0.01, 100_000.0),
    "damping": (0.0, 10_000.0),
    "full_torque_speed": (0.0, 0.99),
    "action_scale": (0.001, 10.0),
}


class RobotError(FileError):
    """A robot that is not known, or a description that cannot be used; the message says why."""


def load_robot(name_or_path: str | Path) -> Robot:
    """Return a built-in robot by name, or the one that a YAML file describes.

    The file has the fields of `Robot`; `model_path` is relative to the file. `robot_text(GO2)` is an example.
    """
    if str(name_or_path) in ROBOTS:
        return ROBOTS[str(name_or_path)]
    path = Path(name_or_path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        name = one_line(repr(str(name_or_path)), 60)
        raise RobotError(f"unknown robot {name}; choose from {', '.join(ROBOTS)}, or give a .yaml file")
    from pydantic import TypeAdapter, ValidationError  # imported here to keep --help fast

    try:
        robot = TypeAdapter(Robot).validate_python(read_yaml(path))
    except FileError as error:
        raise RobotError(str(error)) from error
    except ValidationError as error:
        raise RobotError(f"{path}: {mistake(error.errors(include_url=False, include_context=False)[0])}") from error
    _check_ranges(path, robot)
    robot = replace(robot, model_path=Path(os.path.realpath(path.parent / robot.model_path)))
    if not robot.model_path.is_file():
        raise RobotError(f"{path}: model_path: there is no file {robot.model_path}")
    return robot


def robot_text(robot: Robot) -> str:
    """Return the robot's description as YAML that `load_robot` reads, with the absolute path of its model."""
    return yaml.safe_dump(_plain(asdict(robot)), sort_keys=False, default_flow_style=None)


def _check_ranges(path: Path, robot: Robot) -> None:
    """Raise RobotError for legs that scripts do not know, and for numbers that no quadruped has."""
    parts = [("", vars(robot)), *((f"legs.{row}.", vars(leg)) for row, leg in enumerate(robot.legs))]
    for place, part in parts:
        for name, (least, most) in NUMBER_RANGES.items():
            values = part.get(name, ())
            for value in values if isinstance(values, tuple) else (values,):
                if not least <= value <= most:
                    raise RobotError(
                        f"{path}: {place}{name}: {value:g} is out of range; allowed: {least:g} to {most:g}"
                    )
    if (names := robot.leg_names) != LEG_NAMES:
        raise RobotError(f"{path}: legs: {one_line(', '.join(names), 60)}; allowed: {', '.join(LEG_NAMES)}")
    for row, leg in enumerate(robot.legs):
        if not all(low <= angle <= high for low, angle, high in zip(leg.lower, leg.stance, leg.upper, strict=True)):
            raise RobotError(f"{path}: legs.{row}.stance: {leg.stance}; allowed: between lower and upper")
    if not robot.name.isprintable() or not 1 <= len(robot.name) <= MAX_NAME_LENGTH:
        raise RobotError(f"{path}: name: allowed: 1 to {MAX_NAME_LENGTH} printable characters")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value
