"""Convert scripts to the arrays that a policy reads: absolute, in metres and radians, for any number of environments."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import cos, sin

import numpy as np

from keystride import geometry
from keystride.keyframes.goals import COMPONENTS, Goals, empty_goals, visible, with_components
from keystride.keyframes.script import Keyframe, Script, angle_unit, check_joint_limits, posture_angles
from keystride.robot.description import Floats, Robot


@dataclass(frozen=True)
class Spot:
    """The position and yaw that a script requested last, relative to the start."""

    x: float = 0.0  # m
    y: float = 0.0
    yaw: float = 0.0  # rad

    def ahead(self, x: float, y: float) -> tuple[float, float]:
        """Return the point x ahead and y to the left of here."""
        c, s = cos(self.yaw), sin(self.yaw)
        return self.x + c * x - s * y, self.y + s * x + c * y


def script_goals(
    script: Script | Sequence[Script],
    position: Floats | None = None,
    yaw: Floats | None = None,
    *,
    robot: Robot,
) -> Goals:
    """Return goals (E, K) in the world of robots that start at position (E, 2 or more; z is left alone) and yaw (E,).

    A single script is used for every environment; several scripts are one for each. Without a position, robots start at the origin.
    """
    starts = 1 if position is None else len(position)
    scripts = [script] * starts if isinstance(script, Script) else script
    goals = stack([resolve(one, robot) for one in scripts])
    if position is not None or yaw is not None:
        environments = len(goals.step)
        position = np.zeros((environments, 2)) if position is None else position
        goals = place_goals(goals, position, np.zeros(environments) if yaw is None else yaw)
    return goals


def resolve(script: Script, robot: Robot) -> Goals:
    """Return goals (1, K) in the frame of the start, with relative positions accumulated and named postures resolved.

    Raise ScriptError if a posture is beyond the robot's joint limits.
    """
    check_joint_limits(script, robot)
    goals = empty_goals(1, len(script.keyframes))
    for row, (keyframe, spot) in enumerate(zip(script.keyframes, spots(script), strict=True)):
        _enter(goals, row, keyframe, spot, script.angles, robot)
    return goals


def spots(script: Script) -> list[Spot]:
    """Return where the robot is at each keyframe: the last position and the last yaw requested so far."""
    found, spot = [], Spot()
    for keyframe in script.keyframes:
        spot = _after(keyframe, spot, angle_unit(script.angles))
        found.append(spot)
    return found


def place_goals(goals: Goals, position: Floats, yaw: Floats) -> Goals:
    """Move goals relative to the start into the world of robots that start at position (E, 2 or more) and yaw (E,)."""
    yaw = np.broadcast_to(yaw[:, None], goals.step.shape)  # (E, K)
    moved = geometry.rotate_yaw(yaw, goals.position)  # (E, K, 3)
    moved[..., :2] += position[:, None, :2]
    angles = goals.angles.copy()
    angles[..., 2] = geometry.wrap(angles[..., 2] + yaw)
    return with_components(replace(goals, position=moved, angles=angles), goals.presence)


def stack(rows: Sequence[Goals]) -> Goals:
    """Stack goals of different lengths into one batch, padded at the end with rows that are never visible."""
    most = max(goals.step.shape[1] for goals in rows)
    return Goals(
        *(np.concatenate([_pad(getattr(goals, field.name), most) for goals in rows]) for field in fields(Goals))
    )


def window(goals: Goals, now: np.ndarray, keyframes: int) -> Goals:
    """Return (E, keyframes) the earliest goals that have not expired at control step now (E,): what a policy can hold at once.

    As keyframes pass out of sight, one second after their time, those that come later take their places.
    """
    shown = visible(goals, now)  # (E, N)
    order = np.argsort(np.where(shown, goals.step, np.iinfo(np.int64).max), axis=1, kind="stable")[:, :keyframes]
    rows = np.arange(len(order))[:, None]
    return Goals(
        *(
            _pad(_where(shown[rows, order], getattr(goals, field.name)[rows, order]), keyframes)
            for field in fields(Goals)
        )
    )


def finished(goals: Goals, now: np.ndarray) -> np.ndarray:
    """Return (E,) whether every keyframe has passed out of sight."""
    return ~visible(goals, now).any(axis=1)


def _after(keyframe: Keyframe, before: Spot, unit: float) -> Spot:
    x, y = keyframe.position[:2] if keyframe.position else (before.x, before.y)
    if keyframe.relative:
        x, y = before.ahead(x, y)
    return Spot(x, y, before.yaw if keyframe.yaw is None else keyframe.yaw * unit)


def _enter(goals: Goals, row: int, keyframe: Keyframe, spot: Spot, unit: str, robot: Robot) -> None:
    goals.step[0, row] = keyframe.step
    goals.presence[0, row] = [getattr(keyframe, component) is not None for component in COMPONENTS]
    if keyframe.position is not None:
        goals.position[0, row, :2] = spot.x, spot.y
        if len(keyframe.position) == 3:
            goals.height[0, row], goals.position[0, row, 2] = True, keyframe.position[2]
    goals.angles[0, row] = [
        (angle or 0.0) * angle_unit(unit) for angle in (keyframe.roll, keyframe.pitch, keyframe.yaw)
    ]
    if keyframe.posture is not None:
        goals.posture[0, row] = posture_angles(keyframe.posture, unit, robot)


def _where(shown: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values (E, K, ...) with zeros where not shown (E, K)."""
    return values * shown.reshape(shown.shape + (1,) * (values.ndim - 2)).astype(values.dtype)


def _pad(values: np.ndarray, keyframes: int) -> np.ndarray:
    return np.pad(values, [(0, 0), (0, keyframes - values.shape[1])] + [(0, 0)] * (values.ndim - 2))
