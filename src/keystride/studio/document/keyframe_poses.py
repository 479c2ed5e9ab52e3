"""The complete pose shown for each keyframe; open components are filled in from the path and the stance."""

from dataclasses import dataclass
from math import atan2, hypot

import numpy as np

from keystride import geometry
from keystride.keyframes.feasibility import script_warnings
from keystride.keyframes.inbetween.planner import WaypointPlan
from keystride.keyframes.postures import named_postures
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import Keyframe, Script, angle_unit, posture_angles
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints
from keystride.studio.document.draft import Draft

TRAVELLED = 0.2  # m; an open yaw follows the path once it is this long


@dataclass(frozen=True)
class Ghost:
    """A pose of the robot in the frame of the start."""

    robot: Robot
    position: Floats  # (3,) base, m
    angles: Floats  # (3,) roll, pitch, yaw, rad
    joints: Floats  # (12,) rad
    posed: bool  # whether the keyframe asks for a posture
    placed: bool  # whether the keyframe asks for a position

    @property
    def orientation(self) -> Floats:
        return geometry.from_roll_pitch_yaw(self.angles)


def ghosts(draft: Draft) -> dict[int, Ghost]:
    """Return the pose of each keyframe, by key."""
    script = draft.script()
    return dict(zip(draft.keys, poses(script, draft.robot), strict=True)) if script else {}


def ghost_warnings(draft: Draft, plan: WaypointPlan | None = None) -> dict[int, list[str]]:
    """Return warnings by key: what the robot can hardly do, and where it leaves the stage."""
    found: dict[int, list[str]] = {}
    script = draft.script()
    for warning in script_warnings(script, draft.robot, plan) if script else ():
        found.setdefault(draft.keys[warning.row], []).append(warning.message)
    return found


def poses(script: Script, robot: Robot) -> list[Ghost]:
    path = places(script)
    return [
        _pose(robot, keyframe, place, script.angles)
        for keyframe, place in zip(script.keyframes, _headings(script, path), strict=True)
    ]


def places(script: Script) -> Floats:
    """Return the place (K, 2) of each keyframe on the ground; those without a position are interpolated in time."""
    found = spots(script)
    rows = [row for row, keyframe in enumerate(script.keyframes) if keyframe.position is not None]
    times = [0.0, *(script.keyframes[row].time for row in rows)]
    known = [Spot(), *(found[row] for row in rows)]
    asked = [keyframe.time for keyframe in script.keyframes]
    return np.stack([np.interp(asked, times, [getattr(spot, axis) for spot in known]) for axis in ("x", "y")], axis=1)


def grounded(robot: Robot, joints: Floats, roll: float, pitch: float) -> float:
    """Return the base height at which the lowest foot touches the ground."""
    tilt = geometry.from_roll_pitch_yaw(np.array([roll, pitch, 0.0]))
    feet = geometry.rotate(tilt, feet_from_joints(robot, joints))
    return float(robot.foot_radius - feet[:, 2].min())


def _headings(script: Script, path: Floats) -> list[Spot]:
    """Return the places with yaw: as asked for, else along the path, else unchanged."""
    found, before = [], Spot()
    for keyframe, (x, y) in zip(script.keyframes, path.tolist(), strict=True):
        ahead = (x - before.x, y - before.y)
        yaw = atan2(ahead[1], ahead[0]) if hypot(*ahead) > TRAVELLED else before.yaw
        if keyframe.yaw is not None:
            yaw = keyframe.yaw * angle_unit(script.angles)
        before = Spot(x, y, yaw)
        found.append(before)
    return found


def _pose(robot: Robot, keyframe: Keyframe, spot: Spot, unit: str) -> Ghost:
    named = named_postures(robot)[keyframe.posture] if isinstance(keyframe.posture, str) else None
    posed = keyframe.posture is not None
    joints = posture_angles(keyframe.posture, unit, robot) if posed else robot.stance
    scale = angle_unit(unit)
    roll = keyframe.roll * scale if keyframe.roll is not None else named.roll if named else 0.0
    pitch = keyframe.pitch * scale if keyframe.pitch is not None else named.pitch if named else 0.0
    height = keyframe.position[2] if keyframe.position and len(keyframe.position) == 3 else None
    if height is None:
        height = named.height if named and named.airborne else grounded(robot, joints, roll, pitch)
    position = np.array([spot.x, spot.y, height])
    return Ghost(robot, position, np.array([roll, pitch, spot.yaw]), joints, posed, keyframe.position is not None)
