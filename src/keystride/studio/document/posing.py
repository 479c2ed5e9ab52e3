"""Edits of the pose of one keyframe, in metres and radians of the world in which its ghost is shown."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from keystride import geometry
from keystride.keyframes.postures import Posture, mirror_name, named_postures, stand
from keystride.keyframes.resolve import Spot
from keystride.keyframes.script import Keyframe, angle_unit
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet
from keystride.studio.document.draft import Draft, change, previous_spot, relative_to_spot
from keystride.studio.document.keyframe_poses import Ghost, ghosts, grounded, poses

AMBLE = 0.5  # m/s; a new keyframe is placed ahead of the last one at this speed
MOVED = 5e-4  # m
TURNED = 2e-3  # rad
NEAR_LIMIT = 2e-3  # rad
ANGLES = ("roll", "pitch", "yaw")


def new_keyframe(draft: Draft, time: float) -> Keyframe:
    """Return a standing keyframe on the path at a time, or ahead of the end of the path."""
    x, y = _on_the_way(draft, time)
    return Keyframe(time=max(time, 0.02), position=(_metres(x), _metres(y), _metres(stand(draft.robot).height)))


def set_component(draft: Draft, key: int, component: str, on: bool) -> Draft:
    """Ask for a component as the ghost shows it, or leave it open. `height` is the third number of the position."""
    if on == asks_for(draft.keyframe(key), component):
        return draft
    if not on:
        return _without(draft, key, component)
    ghost, scale = ghosts(draft)[key], angle_unit(draft.angles)
    if component in ("position", "height"):
        return place_keyframe(
            draft, key, ghost.position[:2], float(ghost.position[2]) if component == "height" else None
        )
    if component == "posture":
        return set_joints(draft, key, ghost.joints)
    return change(draft, key, **{component: _round(float(ghost.angles[ANGLES.index(component)]) / scale, draft)})


def place_keyframe(draft: Draft, key: int, ground: Floats, height: float | None = None) -> Draft:
    """Move a keyframe to a point on the ground. A relative keyframe stays relative; without a height it is kept."""
    keyframe = draft.keyframe(key)
    x, y = float(ground[0]), float(ground[1])
    if keyframe.relative:
        x, y = relative_to_spot(previous_spot(draft, key), x, y)
    old = keyframe.position or ()
    up = (height,) if height is not None else old[2:]
    return change(draft, key, position=tuple(map(_metres, (x, y, *up))))


def set_offset(draft: Draft, key: int, offset: tuple[float, float]) -> Draft:
    """Set x and y as in the file: measured from the start, or from the previous keyframe if it is relative."""
    old = draft.keyframe(key).position or ()
    return change(draft, key, position=tuple(map(_metres, (*offset, *old[2:]))))


def set_height(draft: Draft, key: int, height: float) -> Draft:
    return place_keyframe(draft, key, ghosts(draft)[key].position[:2], height)


def set_angle(draft: Draft, key: int, name: str, angle: float) -> Draft:
    return change(draft, key, **{name: _round(angle / angle_unit(draft.angles), draft)})


def set_joints(draft: Draft, key: int, joints: Floats) -> Draft:
    """Set the joint angles (12,) in rad, clipped to the limits. The tilt that a named posture implies is kept."""
    angles = np.clip(joints, draft.robot.lower, draft.robot.upper) / angle_unit(draft.angles)
    tilt = _implied_tilt(draft, key)
    return change(draft, key, posture=tuple(_round(angle, draft) for angle in angles.tolist()), **tilt)


def set_joint(draft: Draft, key: int, joint: int, angle: float, *, mirrored: bool = False) -> Draft:
    """Set one joint angle; if `mirrored`, also that of the opposite leg."""
    joints = ghosts(draft)[key].joints.copy()
    joints[joint] = angle
    return set_joints(draft, key, mirror_leg(draft.robot, joints, joint // 3) if mirrored else joints)


def set_posture(draft: Draft, key: int, name: str) -> Draft:
    """Set a named posture, with its tilt and height if the keyframe asks for them."""
    return _pose(draft, key, name, named_postures(draft.robot)[name])


def set_pose(draft: Draft, key: int, pose: Posture) -> Draft:
    """Set a pose without a name in scripts: its joint angles, and its tilt unless it is level."""
    unit = angle_unit(draft.angles)
    angles = tuple(_round(float(angle) / unit, draft) for angle in pose.joints)
    return _pose(draft, key, angles, pose, spelled_out=True)


def pose_of(ghost: Ghost) -> Posture:
    """Return the pose that a ghost shows, for the library."""
    roll, pitch, _ = ghost.angles.tolist()
    standing = grounded(ghost.robot, ghost.joints, roll, pitch)
    height = float(ghost.position[2])
    return Posture(ghost.joints, height, roll, pitch, airborne=height > standing + MOVED)


def _pose(
    draft: Draft, key: int, posture: str | tuple[float, ...], pose: Posture, *, spelled_out: bool = False
) -> Draft:
    keyframe, scale = draft.keyframe(key), angle_unit(draft.angles)
    fields: dict[str, Any] = {"posture": posture}
    for name in ("roll", "pitch"):
        angle = float(getattr(pose, name))
        if getattr(keyframe, name) is not None or (spelled_out and abs(angle) > TURNED):
            fields[name] = _round(angle / scale, draft)
    if keyframe.position and len(keyframe.position) == 3:
        fields["position"] = (*keyframe.position[:2], _metres(pose.height))
    return change(draft, key, **fields)


def mirror_posture(draft: Draft, key: int) -> Draft:
    """Swap the left and right legs, and the sign of the roll."""
    keyframe = draft.keyframe(key)
    if keyframe.roll is not None:
        draft = change(draft, key, roll=_round(-keyframe.roll, draft))
    if isinstance(keyframe.posture, str):
        return change(draft, key, posture=mirror_name(keyframe.posture))
    return set_joints(draft, key, draft.robot.mirror_joints(ghosts(draft)[key].joints))


def set_relative(draft: Draft, key: int, relative: bool) -> Draft:
    """Measure the position from the previous keyframe, or from the start; the place stays the same."""
    keyframe, spot = draft.keyframe(key), previous_spot(draft, key)
    if keyframe.position is None or keyframe.relative == relative:
        return draft
    x, y = keyframe.position[:2]
    x, y = relative_to_spot(spot, x, y) if relative else spot.ahead(x, y)
    return change(draft, key, relative=relative, position=(_metres(x), _metres(y), *keyframe.position[2:]))


def stand_on_ground(draft: Draft, key: int) -> Draft:
    """Set the height at which the lowest foot touches the ground."""
    ghost = ghosts(draft)[key]
    height = grounded(ghost.robot, ghost.joints, float(ghost.angles[0]), float(ghost.angles[1]))
    return place_keyframe(draft, key, ghost.position[:2], height)


def ghost_feet(ghost: Ghost) -> Floats:
    """Return the centres (4, 3) of the feet, m."""
    return ghost.position + geometry.rotate(ghost.orientation, feet_from_joints(ghost.robot, ghost.joints))


def set_foot(draft: Draft, key: int, leg: int, foot: Floats, *, mirrored: bool = False) -> Draft:
    """Bend one leg so that its foot is at a point (3,) of the world, or as near as it can reach; the body stays.

    If `mirrored`, the opposite leg does the same.
    """
    ghost = ghosts(draft)[key]
    feet = feet_from_joints(ghost.robot, ghost.joints)
    feet[leg] = geometry.rotate_inverse(ghost.orientation, foot - ghost.position)
    joints = ghost.joints.copy()
    bent, _ = joints_from_feet(draft.robot, feet)
    joints[3 * leg : 3 * leg + 3] = bent[3 * leg : 3 * leg + 3]
    if mirrored:
        joints = mirror_leg(draft.robot, joints, leg)
    return set_joints(_hold_height(draft, key, ghost), key, joints)


def mirror_leg(robot: Robot, joints: Floats, leg: int) -> Floats:
    """Return joint angles (12,) in which the opposite leg mirrors this one."""
    image = robot.mirror_joints(joints)
    other = int(robot.mirror_order[3 * leg]) // 3
    joints = joints.copy()
    joints[3 * other : 3 * other + 3] = image[3 * other : 3 * other + 3]
    return joints


def with_planted_feet(draft: Draft, key: int, edit: Callable[[Draft], Draft]) -> Draft:
    """Apply an edit that moves the body and bend the legs so that the feet stay in place, as far as they can reach."""
    before = ghosts(draft)[key]
    changed = edit(_hold_height(draft, key, before))
    after = ghosts(changed)[key]
    feet = geometry.rotate_inverse(after.orientation, ghost_feet(before) - after.position)
    joints, _ = joints_from_feet(draft.robot, feet)
    return set_joints(changed, key, joints)


def legs_at_limits(ghost: Ghost) -> tuple[bool, ...]:
    """Return for each leg whether one of its joints is at a limit."""
    lower, upper = ghost.robot.lower + NEAR_LIMIT, ghost.robot.upper - NEAR_LIMIT
    near = (ghost.joints <= lower) | (ghost.joints >= upper)
    return tuple(bool(leg.any()) for leg in near.reshape(4, 3))


def drag(draft: Draft, key: int, ground: Floats, yaw: float) -> Draft:
    """Move the ghost to a point (2,) on the ground and turn it; ask for the components that this changes."""
    ghost = ghosts(draft)[key]
    if np.abs(ground - ghost.position[:2]).max() > MOVED:
        draft = place_keyframe(draft, key, ground)
    if abs(geometry.wrap(np.array(yaw - ghost.angles[2]))) > TURNED:
        draft = set_angle(draft, key, "yaw", yaw)
    return draft


def asks_for(keyframe: Keyframe, component: str) -> bool:
    if component == "height":
        return keyframe.position is not None and len(keyframe.position) == 3
    return getattr(keyframe, component) is not None


def _hold_height(draft: Draft, key: int, ghost: Ghost) -> Draft:
    """Ask for the height of the ghost; otherwise it would follow the feet."""
    if asks_for(draft.keyframe(key), "height"):
        return draft
    return place_keyframe(draft, key, ghost.position[:2], float(ghost.position[2]))


def _implied_tilt(draft: Draft, key: int) -> dict[str, float]:
    """Return the roll and pitch that a named posture implies and the keyframe does not give, in the unit of the file."""
    keyframe, scale = draft.keyframe(key), angle_unit(draft.angles)
    if not isinstance(keyframe.posture, str):
        return {}
    tilt = {name: getattr(named_postures(draft.robot)[keyframe.posture], name) for name in ("roll", "pitch")}
    return {
        name: _round(angle / scale, draft) for name, angle in tilt.items() if angle and getattr(keyframe, name) is None
    }


def _without(draft: Draft, key: int, component: str) -> Draft:
    keyframe = draft.keyframe(key)
    if component == "height":
        return change(draft, key, position=keyframe.position and keyframe.position[:2])
    if component == "position":
        return change(draft, key, position=None, relative=False)
    return change(draft, key, **{component: None})


def _on_the_way(draft: Draft, time: float) -> tuple[float, float]:
    script = draft.script()
    shown = poses(script, draft.robot) if script else []
    if not shown or time > draft.end:
        return _end_of(shown).ahead(AMBLE * (time - draft.end), 0.0)
    times = [0.0, *(mark.keyframe.time for mark in draft.marks)]
    path = np.array([[0.0, 0.0], *(pose.position[:2] for pose in shown)])
    x, y = (float(np.interp(time, times, path[:, axis])) for axis in range(2))
    return x, y


def _end_of(shown: list[Ghost]) -> Spot:
    if not shown:
        return Spot()
    x, y, _ = shown[-1].position.tolist()
    return Spot(x, y, float(shown[-1].angles[2]))


def _metres(value: float) -> float:
    return round(value, 3) + 0.0


def _round(angle: float, draft: Draft) -> float:
    """Round an angle to a tenth of a degree, in either unit of the file."""
    if draft.angles == "degrees":
        return round(angle, 1) + 0.0
    return round(round(angle * 180 / pi, 1) * pi / 180, 5) + 0.0
