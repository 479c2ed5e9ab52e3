"""Closed-form kinematics of the legs. A foot's position is the centre of its sphere, in the base frame."""

import numpy as np

from keystride.robot.description import Floats, Robot


def feet_from_joints(robot: Robot, joints: Floats) -> Floats:
    """Return foot positions (..., 4, 3) in the base frame, m, for joint angles (..., 12)."""
    angles = joints.reshape(*joints.shape[:-1], 4, 3)
    hip, thigh, calf = angles[..., 0], angles[..., 1], angles[..., 2]  # (..., 4)
    upper, lower, side, root = _leg_figures(robot)
    x = -upper * np.sin(thigh) - lower * np.sin(thigh + calf)
    z = -upper * np.cos(thigh) - lower * np.cos(thigh + calf)  # in the abducted leg's plane
    c, s = np.cos(hip), np.sin(hip)
    foot = np.stack([x, c * side - s * z, s * side + c * z], axis=-1)
    return root + foot


def joints_from_feet(robot: Robot, feet: Floats) -> tuple[Floats, Floats]:
    """Return joint angles (..., 12) for foot positions (..., 4, 3) in the base frame, and how far each foot is missed (..., 4).

    For feet below their hips, with knees that point backwards as the Go2's do. A leg points at a foot out of its reach,
    as far as its limits allow; the miss is the distance that remains.
    """
    upper, lower, side, root = _leg_figures(robot)
    x, y, z = np.moveaxis(feet - root, -1, 0)  # (..., 4) each
    width = np.sqrt(np.maximum(y * y + z * z - side * side, 1e-12))  # depth of the foot below the abduction link
    hip = np.arctan2(y, -z) - np.arctan2(side, width)
    reach = np.sqrt(x * x + width * width)
    cosine = (reach**2 - upper**2 - lower**2) / (2 * upper * lower)
    # Clipped before the thigh is solved: a leg too short or too long then still points at its foot.
    calf = np.clip(-np.arccos(np.clip(cosine, -1.0, 1.0)), robot.lower[2::3], robot.upper[2::3])
    thigh = np.arctan2(-x, width) - np.arctan2(lower * np.sin(calf), upper + lower * np.cos(calf))
    hip = np.arctan2(np.sin(hip), np.cos(hip))
    joints = np.stack([hip, thigh, calf], axis=-1).reshape(*feet.shape[:-2], 12)
    joints = np.clip(joints, robot.lower, robot.upper)
    miss = np.linalg.norm(feet_from_joints(robot, joints) - feet, axis=-1)
    return joints, miss


def calf_rates(joints: Floats, joint_velocities: Floats) -> Floats:
    """Return angular velocities (..., 4, 3) of the calves against the base, in its frame, rad/s; (..., 12) each.

    A foot is a ball at the end of its calf: while it stands, the ball rolls, and its centre moves although nothing slides.
    """
    hip = joints[..., 0::3]  # (..., 4)
    pitch = joint_velocities[..., 1::3] + joint_velocities[..., 2::3]
    return np.stack([joint_velocities[..., 0::3], pitch * np.cos(hip), pitch * np.sin(hip)], axis=-1)


def standing_height(robot: Robot, joints: Floats) -> Floats:
    """Return the height of the base over flat ground when the lowest foot touches it and the trunk is level; (...,)."""
    return -feet_from_joints(robot, joints)[..., 2].min(axis=-1) + robot.foot_radius


def _leg_figures(robot: Robot) -> tuple[Floats, Floats, Floats, Floats]:
    upper = np.array([leg.thigh_length for leg in robot.legs])
    lower = np.array([leg.calf_length for leg in robot.legs])
    side = np.array([leg.thigh_in_hip[1] for leg in robot.legs])
    root = np.array([leg.hip_in_base for leg in robot.legs])
    return upper, lower, side, root
