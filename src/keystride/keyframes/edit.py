"""Edit scripts: shift in time, mirror, concatenate, convert units, complete named postures.

Each function returns a new script, or raises ScriptError if the result is not valid. No edit depends on joint limits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keystride import geometry
from keystride.keyframes.files import validate_script
from keystride.keyframes.postures import Posture, mirror_name, named_postures
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import STAGE_VERSION, Keyframe, Script, Unit, angle_unit
from keystride.keyframes.stage import Obstacle, Stage
from keystride.robot.description import JOINT_NAMES, MIRROR_ORDER, MIRROR_SIGN, Robot

EDIT_DIGITS = 9  # computed seconds, metres and angles are rounded: nobody wants 0.30000000000000004 in a file


def shift(script: Script, seconds: float) -> Script:
    """Return the script with all times shifted, earlier if negative; no keyframe may come before the start."""
    times = [round(keyframe.time + seconds, EDIT_DIGITS) for keyframe in script.keyframes]
    return _changed(script, [{"time": time} for time in times])


def mirror(script: Script) -> Script:
    """Return the script and its stage with left and right swapped."""
    changes = [_mirrored(keyframe) for keyframe in script.keyframes]
    return _changed(script, changes, stage=script.stage and _mirrored_stage(script.stage))


def concatenate(first: Script, second: Script, gap: float = 0.0) -> Script:
    """Append the second script at the last position, yaw and time of the first; keep the stage of the first."""
    end, start = spots(first)[-1], first.keyframes[-1].time + gap
    onward = shift(_moved(in_unit(second, first.angles), end), start)
    return _built(first, [dict(keyframe.__dict__) for keyframe in first.keyframes + onward.keyframes])


def with_stage(script: Script, stage: Stage | None) -> Script:
    """Return the script with another stage. With a stage, version 1 becomes version 2."""
    version = script.version if stage is None else max(script.version, STAGE_VERSION)
    return _changed(script, [{}] * len(script.keyframes), version=version, stage=stage)


def in_unit(script: Script, unit: Unit) -> Script:
    """Return the same script with its angles in degrees or in radians."""
    if script.angles == unit:
        return script
    scale = angle_unit(script.angles) / angle_unit(unit)
    return _changed(script, [_scaled(keyframe, scale) for keyframe in script.keyframes], angles=unit)


def complete(script: Script, robot: Robot) -> Script:
    """Add to named postures the tilt and height at which they stand, where the script does not give them."""
    scale = angle_unit(script.angles)
    changes = [_completed(keyframe, named_postures(robot), scale) for keyframe in script.keyframes]
    return _changed(script, changes)


def _changed(script: Script, changes: Sequence[dict[str, Any]], **header: Any) -> Script:
    """Change fields of each keyframe, and of the header."""
    fields = [{**keyframe.__dict__, **change} for keyframe, change in zip(script.keyframes, changes, strict=True)]
    return _built(script, fields, **header)


def _built(script: Script, keyframes: Sequence[dict[str, Any]], **header: Any) -> Script:
    """Return the script with other keyframes."""
    kept = {"version": script.version, "angles": script.angles, "stage": script.stage}
    return validate_script({**kept, **header, "keyframes": keyframes})


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


def _moved(script: Script, start: Spot) -> Script:
    """Return the script for a robot that starts elsewhere; relative positions stay the same."""
    scale = angle_unit(script.angles)
    return _changed(script, [_moved_keyframe(keyframe, start, scale) for keyframe in script.keyframes])


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
