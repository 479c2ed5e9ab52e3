"""Motions of other quadruped robots, as JSON: their feet are copied, and our robot's legs are solved for them.

Two formats: the 61-column files of adversarial motion priors on the Unitree A1, and the clips of Tencent's MAX robot
(Han et al. 2024), rows of base position, quaternion x y z w and joints.
"""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from keystride import geometry
from keystride.motion.importers.poses import (
    LEGS,
    ImportProblem,
    PoseTable,
    at_clip_rate,
    checked,
    from_xyzw,
    in_leg_order,
    parse_leg_order,
    require_finite,
    require_frames,
    require_rate,
)
from keystride.motion.retargeting.fitting import FitSettings, FittedClip, fit
from keystride.motion.retargeting.planting import detect_planted
from keystride.motion.retargeting.trunk import Trunk, half_length, trunk_length
from keystride.motion.signals import gaussian_smooth
from keystride.reading import JSON_BYTES, one_line, parse_json, read_text
from keystride.robot.description import Floats, Leg, Robot
from keystride.robot.kinematics import feet_from_joints

SMOOTHING = 0.012  # s, Gaussian; light, because these motions are smooth already
AMP_COLUMNS = 61
TOE_ERROR = 0.02  # m, median: more means that joints and toes belong to different legs, or to another robot
MAX_COLUMNS = 19
TRIM = 3  # frames: the first ones of jump and play clips may step by 5 cm
SIGNS = np.tile([1.0, -1.0, -1.0], 4)  # thigh and calf turn in the opposite direction


def _relative(name: str, *, hip: tuple[float, float], side: float, upper: float, lower: float, radius: float) -> Robot:
    """Return a robot of which only the lengths are used: limits and motors are those of the robot that is imported for."""
    legs = [
        Leg(
            name=leg,
            hip_in_base=(x * hip[0], y * hip[1], 0.0),
            thigh_in_hip=(0.0, y * side, 0.0),
            thigh_length=upper,
            calf_length=lower,
            lower=(-np.pi, -np.pi, -np.pi),
            upper=(np.pi, np.pi, np.pi),
            torque=(1.0, 1.0, 1.0),
            speed=(100.0, 100.0, 100.0),
            stance=(0.0, 0.8, -1.5),
        )
        for leg, x, y in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1))
    ]
    return Robot(
        name,
        Path(),
        (legs[0], legs[1], legs[2], legs[3]),
        radius,
        stiffness=0.0,
        damping=0.0,
        full_torque_speed=0.0,
        action_scale=0.0,
        trunk_half_size=(0.0, 0.0, 0.0),
    )


A1 = _relative("unitree_a1", hip=(0.183, 0.047), side=0.08505, upper=0.2, lower=0.2, radius=0.02)
MAX = _relative("tencent_max", hip=(0.195, 0.06), side=0.09, upper=0.2115, lower=0.24, radius=0.025)


def take_from_relative(
    poses: PoseTable, source: Robot, robot: Robot, settings: FitSettings | None = None
) -> FittedClip:
    """Fit our robot to the base and the soles of the other robot."""
    settings = settings or FitSettings()
    poses = at_clip_rate(_smoothed(checked(poses)))
    feet = feet_from_joints(source, poses.joints)
    soles = poses.position[:, None] + geometry.rotate(poses.orientation[:, None], feet)
    soles[..., 2] -= source.foot_radius
    level = ground_level(soles)
    soles[..., 2] -= level
    planted = detect_planted(soles, poses.position, np.zeros(4), settings.planting)
    trunk = _trunk(poses, robot).lifted(-level, -level)
    return fit(trunk, soles, planted, name=poses.name, robot=robot, settings=settings)


def ground_level(soles: Floats) -> float:
    """Return the height of the ground, on which the lowest sole mostly stands: retargeted files float or sink by a centimetre."""
    return float(np.median(soles[..., 2].min(axis=1)))


def _smoothed(poses: PoseTable) -> PoseTable:
    sigma = SMOOTHING * poses.fps
    return replace(poses, position=gaussian_smooth(poses.position, sigma), joints=gaussian_smooth(poses.joints, sigma))


def _trunk(poses: PoseTable, robot: Robot) -> Trunk:
    roll, pitch, yaw = np.moveaxis(geometry.roll_pitch_yaw(poses.orientation), -1, 0)
    rise = -0.5 * trunk_length(robot) * np.sin(pitch)  # nose up is a negative pitch
    front, rear = poses.position[:, 2] + rise, poses.position[:, 2] - rise
    half = half_length(front, rear, robot)
    return Trunk(poses.position[:, :2], front, rear, np.unwrap(yaw), roll, np.zeros(len(poses)), half)


def read_motion(path: Path) -> dict[str, Any]:
    """Return a JSON object with a list of frames and a frame duration that is a plausible number."""
    content = parse_json(read_text(path, JSON_BYTES), finite=False)
    if not isinstance(content, dict) or not {"Frames", "FrameDuration"} <= set(content):
        raise ImportProblem("not a motion: no Frames and FrameDuration in it")
    duration, frames = content["FrameDuration"], content["Frames"]
    if isinstance(duration, bool) or not isinstance(duration, float | int) or not 0 < duration < 1e9:
        raise ImportProblem(f"the frame duration is {one_line(repr(duration), 40)}; allowed: seconds, a number above 0")
    if not isinstance(frames, list):
        raise ImportProblem("Frames is not a list of rows of numbers")
    require_frames(len(frames))
    require_rate(1.0 / duration, len(frames))
    return content


def frame_table(content: dict[str, Any], columns: int) -> Floats:
    """Return the frames as (T, columns)."""
    rows = content["Frames"]
    for number, row in enumerate(rows):
        if not isinstance(row, list):
            raise ImportProblem(f"frame {number} is not a list of {columns} numbers")
        if len(row) != columns:
            raise ImportProblem(f"wrong layout: {len(row)} values in frame {number}, {columns} expected")
        if not all(type(value) in (float, int) for value in row):
            raise ImportProblem(f"a value in frame {number} is not a number")
    try:
        table = np.array(rows, dtype=np.float64)
    except OverflowError as error:
        raise ImportProblem("an integer in the frames is too large") from error
    require_finite(table, "values")
    return table


def read_amp(
    path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS, source: Robot = A1
) -> list[FittedClip]:
    """Read a clip of the A1. Velocity columns are ignored: some have spikes where a quaternion changes sign."""
    content = read_motion(path)
    table = frame_table(content, AMP_COLUMNS)
    require_toes(table, order, source)
    joints = in_leg_order(table[:, 7:19], order)
    poses = PoseTable(name, 1.0 / float(content["FrameDuration"]), table[:, :3], from_xyzw(table[:, 3:7]), joints)
    return [take_from_relative(poses, source, robot)]


def require_toes(table: Floats, order: tuple[str, ...], source: Robot) -> None:
    """Raise ImportProblem unless the toe columns are where forward kinematics puts the feet."""
    error = toe_error(table, order, source)
    if error < TOE_ERROR:
        return
    best = min(permutations(LEGS), key=lambda other: toe_error(table, other, source))
    least = toe_error(table, best, source)
    advice = f"; joint order {' '.join(best)} fits to {least:.3f} m" if least < TOE_ERROR else ""
    raise ImportProblem(
        f"the toe columns are {error:.3f} m from forward kinematics with joint order {' '.join(order)}{advice}"
    )


def toe_error(table: Floats, order: tuple[str, ...], source: Robot) -> float:
    """Return the median distance between the toe columns and the feet of the joint columns, m."""
    feet = feet_from_joints(source, in_leg_order(table[:, 7:19], order))
    toes = in_leg_order(table[:, 19:31], order).reshape(-1, 4, 3)
    return float(np.median(np.linalg.norm(feet - toes, axis=-1)))


def read_lifelike(path: Path, name: str, robot: Robot) -> list[FittedClip]:
    content = read_motion(path)
    table = frame_table(content, MAX_COLUMNS)
    require_frames(len(table), least=TRIM + 2)
    table = table[TRIM:]
    order = parse_leg_order(content.get("LegOrder", ["FR", "FL", "HR", "HL"]))
    joints = in_leg_order(table[:, 7:], order) * SIGNS
    poses = PoseTable(name, 1.0 / float(content["FrameDuration"]), table[:, :3], from_xyzw(table[:, 3:7]), joints)
    return [take_from_relative(poses, MAX, robot)]
