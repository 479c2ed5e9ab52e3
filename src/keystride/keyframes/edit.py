"""Scripts from scripts: shifted in time, mirrored, one after the other, in another unit.

Joint angles are checked against the limits of `robot`; without one, against those of the default robot.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keystride import geometry
from keystride.keyframes.files import validate_script
from keystride.keyframes.limits import angle_unit
from keystride.keyframes.postures import Posture, mirror_name, named_postures
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import STAGE_VERSION, Keyframe, Script, Unit
from keystride.keyframes.stage import Obstacle, Stage
from keystride.robot.description import JOINT_NAMES, MIRROR_ORDER, MIRROR_SIGN, Robot

EDIT_DIGITS = 9  # of seconds, metres and angles that an edit computes: nobody wants 0.30000000000000004 in a file


def shift(script: Script, seconds: float, robot: Robot | None = None) -> Script:
    """Return the script with all times shifted, earlier if negative; no keyframe may come before the start."""
    times = [round(keyframe.time + seconds, EDIT_DIGITS) for keyframe in script.keyframes]
    return _changed(script, [{"time": time} for time in times], robot)


def mirror(script: Script, robot: Robot | None = None) -> Script:
    """Return the script as seen in a mirror, with its stage: left becomes right."""
    changes = [_mirrored(keyframe) for keyframe in script.keyframes]
    return _changed(script, changes, robot, stage=script.stage and _mirrored_stage(script.stage))


def concatenate(first: Script, second: Script, gap: float = 0.0, robot: Robot | None = None) -> Script:
    """Append the second script where the first one ends: at its last position, yaw and time.

    The stage is the first one's.
    """
    end, start = spots(first)[-1], first.keyframes[-1].time + gap
    onward = shift(_moved(in_unit(second, first.angles, robot), end, robot), start, robot)
    return _built(first, [dict(keyframe.__dict__) for keyframe in first.keyframes + onward.keyframes], robot)


def with_stage(script: Script, stage: Stage | None, robot: Robot | None = None) -> Script:
    """Return the script on another stage. Version 1 becomes version 2, and never the reverse."""
    version = script.version if stage is None else max(script.version, STAGE_VERSION)
    return _changed(script, [{}] * len(script.keyframes), robot, version=version, stage=stage)


def in_unit(script: Script, unit: Unit, robot: Robot | None = None) -> Script:
    """Return the same script with its angles in degrees or in radians."""
    if script.angles == unit:
        return script
    scale = angle_unit(script.angles) / angle_unit(unit)
    return _changed(script, [_scaled(keyframe, scale) for keyframe in script.keyframes], robot, angles=unit)


def complete(script: Script, robot: Robot) -> Script:
    """Give named postures the tilt and height at which they stand, wherever the script leaves these open."""
    scale = angle_unit(script.angles)
    changes = [_completed(keyframe, named_postures(robot), scale) for keyframe in script.keyframes]
    return _changed(script, changes, robot)


def _changed(script: Script, changes: Sequence[dict[str, Any]], robot: Robot | None, **header: Any) -> Script:
    """Change fields of each keyframe, and of the header."""
    fields = [{**keyframe.__dict__, **change} for keyframe, change in zip(script.keyframes, changes, strict=True)]
    return _built(script, fields, robot, **header)


def _built(script: Script, keyframes: Sequence[dict[str, Any]], robot: Robot | None, **header: Any) -> Script:
    """Return the script with these keyframes instead; ScriptError if the result is not valid."""
    kept = {"version": script.version, "angles": script.angles, "stage": script.stage}
    return validate_script({**kept, **header, "keyframes": keyframes}, robot)


def _mirrored(keyframe: Keyframe) -> dict[str, Any]:
    x, y, *z = keyframe.position or (0.0, 0.0)
    return {
        "position": keyframe.position and (x, _negative(y), *z),
        "roll": _negative(keyframe.roll),
        "yaw": _negative(keyframe.yaw),
        "posture": _mirrored_posture(keyframe.posture),
    }


def _mirrored_posture(posture: Any) -> Any:
    if isinstance(posture, str):
        return mirror_name(posture)
    if isinstance(posture, dict):
        signs = dict(zip(JOINT_NAMES, MIRROR_SIGN, strict=True))
        images = {name: JOINT_NAMES[image] for name, image in zip(JOINT_NAMES, MIRROR_ORDER, strict=True)}
        return {images[name]: angle * signs[name] + 0.0 for name, angle in posture.items()}
    return posture and tuple(posture[image] * sign + 0.0 for image, sign in zip(MIRROR_ORDER, MIRROR_SIGN, strict=True))


def _mirrored_stage(stage: Stage) -> Stage:
    def across(point: tuple[float, ...]) -> tuple[float, ...]:
        return point[0], 0.0 - point[1]

    def all_across(points: tuple[tuple[float, ...], ...] | None) -> tuple[tuple[float, ...], ...] | None:
        return points and tuple(map(across, points))

    obstacles = tuple(
        Obstacle(label=each.label, center=each.center and across(each.center), radius=each.radius)
        if each.corners is None
        else Obstacle(label=each.label, corners=all_across(each.corners))
        for each in stage.obstacles
    )
    return Stage(floor=all_across(stage.floor), obstacles=obstacles, audience=all_across(stage.audience))


def _negative(value: float | None) -> float | None:
    return None if value is None else 0.0 - value  # never -0.0, which looks odd in a file


def _moved(script: Script, start: Spot, robot: Robot | None) -> Script:
    """Return what the script asks for when the robot starts elsewhere; relative positions need no change."""
    scale = angle_unit(script.angles)
    return _changed(script, [_moved_keyframe(keyframe, start, scale) for keyframe in script.keyframes], robot)


def _moved_keyframe(keyframe: Keyframe, start: Spot, scale: float) -> dict[str, Any]:
    change: dict[str, Any] = {}
    if keyframe.position is not None and not keyframe.relative:
        x, y = start.ahead(*keyframe.position[:2])
        change["position"] = (round(x, EDIT_DIGITS), round(y, EDIT_DIGITS), *keyframe.position[2:])
    if keyframe.yaw is not None:
        change["yaw"] = round(float(geometry.wrap(np.array(keyframe.yaw * scale + start.yaw))) / scale, EDIT_DIGITS)
    return change


def _scaled(keyframe: Keyframe, scale: float) -> dict[str, Any]:
    angles = {name: getattr(keyframe, name) for name in ("roll", "pitch", "yaw")}
    change = {name: None if angle is None else angle * scale for name, angle in angles.items()}
    posture = keyframe.posture
    if isinstance(posture, dict):
        return {**change, "posture": {name: angle * scale for name, angle in posture.items()}}
    if isinstance(posture, tuple):
        return {**change, "posture": tuple(angle * scale for angle in posture)}
    return change


def _completed(keyframe: Keyframe, postures: dict[str, Posture], scale: float) -> dict[str, Any]:
    if not isinstance(keyframe.posture, str):
        return {}
    named, position = postures[keyframe.posture], keyframe.position
    change: dict[str, Any] = {}
    if keyframe.roll is None:
        change["roll"] = round(named.roll / scale, EDIT_DIGITS)
    if keyframe.pitch is None:
        change["pitch"] = round(named.pitch / scale, EDIT_DIGITS)
    if position is not None and len(position) == 2:
        change["position"] = (*position, round(named.height, EDIT_DIGITS))
    return change
