"""Drawings of a pass: where the base went, its height and yaw, and the joints, against what was asked for."""

import numpy as np

from keystride.evaluation.recording import Recording, ghost_poses
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT
from keystride.robot.description import LEG_JOINTS, Floats
from keystride.studio.export.drawing import Dot, PlotLine, drawing
from keystride.studio.page import palette

JOINT_LINE_COLOURS = ("#6ea8fe", "#f5a462", "#63d5a5")
ASKED = "#8a93a3"
DID = palette.css(palette.TRACE)


def charts(recording: Recording) -> list[str]:
    legs = [leg_chart(recording, leg) for leg in range(len(recording.robot.legs))]
    return [path_chart(recording), height_chart(recording), yaw_chart(recording), *legs]


def path_chart(recording: Recording) -> str:
    """Seen from above, x to the right."""
    rows = _asking(recording, "position")
    goals, place = recording.goals.position[0, rows, :2], recording.poses[:, :2]
    asked = np.concatenate([np.zeros((1, 2)), goals])
    lines = [PlotLine(asked[:, 0], asked[:, 1], ASKED, faint=True), PlotLine(place[:, 0], place[:, 1], DID)]
    dots = [Dot(x, y, _verdict(recording, k)) for k, (x, y) in zip(rows, goals.tolist(), strict=True)]
    return drawing("path from above (m)", lines, dots, square=True)


def height_chart(recording: Recording) -> str:
    rows = [k for k in _asking(recording, "position") if recording.goals.height[0, k]]
    dots = [_dot(recording, k, float(recording.goals.position[0, k, 2])) for k in rows]
    return drawing("base height (m)", [PlotLine(recording.times, recording.poses[:, 2], DID)], dots)


def yaw_chart(recording: Recording) -> str:
    yaw = np.degrees(recording.angles[:, 2])
    dots = [_dot(recording, k, _nearest_turn(recording, k, yaw)) for k in _asking(recording, "yaw")]
    return drawing("yaw (°)", [PlotLine(recording.times, yaw, DID)], dots)


def leg_chart(recording: Recording, leg: int) -> str:
    """What the joints did, faintly what they were told, dots where a keyframe asked for a posture."""
    joints = np.arange(3 * leg, 3 * leg + 3)
    told, did = np.degrees(recording.joint_targets[:, joints]), np.degrees(recording.poses[:, 7 + joints])
    lines = [PlotLine(recording.times[:-1], told[:, i], JOINT_LINE_COLOURS[i], faint=True) for i in range(3)]
    lines += [PlotLine(recording.times, did[:, i], JOINT_LINE_COLOURS[i]) for i in range(3)]
    wanted = np.degrees(ghost_poses(recording)[:, 7 + joints])
    dots = [_dot(recording, k, float(angle)) for k in _asking(recording, "posture") for angle in wanted[k]]
    return drawing(f"{recording.robot.leg_names[leg]} {', '.join(LEG_JOINTS)} (°)", lines, dots)


def _asking(recording: Recording, component: str) -> list[int]:
    return np.flatnonzero(recording.goals.presence[0, :, COMPONENTS.index(component)]).tolist()


def _verdict(recording: Recording, k: int) -> str:
    return palette.css(palette.MET if recording.met[k] else palette.MISSED)


def _dot(recording: Recording, k: int, value: float) -> Dot:
    return Dot(float(recording.steps[k]) * CONTROL_DT, value, _verdict(recording, k))


def _nearest_turn(recording: Recording, k: int, yaw: Floats) -> float:
    """The target in the turn in which the robot was: 190 degrees where it came from 180, not -170."""
    target = float(np.degrees(recording.goals.angles[0, k, 2]))
    there = float(yaw[min(int(recording.steps[k]), len(yaw) - 1)])
    return target + 360.0 * round((there - target) / 360.0)
