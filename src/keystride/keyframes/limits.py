"""Limits that need the whole script: angles in the header's unit, and times in order.

They look at the values as written, sound or not, so that every mistake is found at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import degrees, floor, pi, radians
from typing import Any

from keystride.keyframes.document import HUGE, FieldPath, Problem, shorten
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.description import JOINT_NAMES, Robot

TILT_LIMITS = {"roll": pi, "pitch": pi / 2, "yaw": 2 * pi}  # rad, either way
ANGLE_TOLERANCE = 1e-3  # rad: people round, and -156 degrees is meant as the calf's limit

Raw = Mapping[str, Any]  # a keyframe by its fields


def control_step(seconds: float) -> int:
    """Return the control step nearest to a time."""
    return floor(round(seconds / CONTROL_DT, 6) + 0.5)


def angle_unit(unit: str) -> float:
    """Radians in one unit of a script's angles."""
    return radians(1.0) if unit == "degrees" else 1.0


def beyond_limits(keyframes: Sequence[Raw], unit: str, robot: Robot) -> Iterator[Problem]:
    for row, keyframe in enumerate(keyframes):
        for place, angle, (lower, upper) in _angles(keyframe, robot):
            if not lower - ANGLE_TOLERANCE <= angle * angle_unit(unit) <= upper + ANGLE_TOLERANCE:
                reason = f"{shorten(angle)} is beyond its limit; allowed: {span(lower, upper, unit)}"
                yield Problem((row, *place), reason)


def out_of_order(keyframes: Sequence[Raw]) -> Iterator[Problem]:
    timed = [(row, keyframe["time"]) for row, keyframe in enumerate(keyframes) if _number(keyframe.get("time"))]
    for (_, before), (row, after) in pairwise(timed):
        if after <= before:
            reason = f"{shorten(after)} is not later than the keyframe before; allowed: more than {shorten(before)} s"
            yield Problem((row, "time"), reason)
        elif control_step(after) == control_step(before):
            reason = f"{shorten(after)} falls on the same control step as the keyframe before ({shorten(before)} s)"
            yield Problem((row, "time"), f"{reason}; allowed: {CONTROL_DT:g} s apart or more")


def span(lower: float, upper: float, unit: str) -> str:
    if unit == "degrees":
        return f"{degrees(lower):.1f} to {degrees(upper):.1f} degrees"
    return f"{lower:.4f} to {upper:.4f} radians"


def _angles(keyframe: Raw, robot: Robot) -> Iterator[tuple[FieldPath, float, tuple[float, float]]]:
    """Each angle that is written in a keyframe: its place, its value, its limits in rad."""
    for name, limit in TILT_LIMITS.items():
        if _number(keyframe.get(name)):
            yield (name,), keyframe[name], (-limit, limit)
    for key, joint, angle in _joints(keyframe.get("posture")):
        if _number(angle):
            yield ("posture", key), angle, (float(robot.lower[joint]), float(robot.upper[joint]))


def _joints(posture: Any) -> Iterator[tuple[str | int, int, Any]]:
    """Where it is written, which joint it is, the angle."""
    if isinstance(posture, Mapping):
        for joint, name in enumerate(JOINT_NAMES):
            yield name, joint, posture.get(name)
    elif isinstance(posture, list | tuple) and len(posture) == len(JOINT_NAMES):
        for joint, angle in enumerate(posture):
            yield joint, joint, angle


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -HUGE < value < HUGE
