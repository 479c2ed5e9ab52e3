"""Robots by name, and robots described in a file."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from keystride.errors import FileError
from keystride.reading import mistake, one_line, read_yaml
from keystride.robot.description import Robot
from keystride.robot.go2 import GO2

ROBOTS: dict[str, Robot] = {"go2": GO2}
"""The built-in robots, by the names that `--robot` takes."""

DEFAULT_ROBOT = "go2"


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
    if not all(isfinite(number) for number in _numbers(asdict(robot))):
        raise RobotError(f"{path}: nan or infinity; allowed: finite numbers")
    robot = replace(robot, model_path=(path.parent / robot.model_path).resolve())
    if not robot.model_path.is_file():
        raise RobotError(f"{path}: model_path: there is no file {robot.model_path}")
    return robot


def robot_text(robot: Robot) -> str:
    """Return the robot's description as YAML that `load_robot` reads, with the absolute path of its model."""
    return yaml.safe_dump(_plain(asdict(robot)), sort_keys=False, default_flow_style=None)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value
