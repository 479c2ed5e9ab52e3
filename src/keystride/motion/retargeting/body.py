"""Which parts of the robot other than its feet could touch the ground, and how high they are."""

from functools import lru_cache

import mujoco
import numpy as np

from keystride import geometry
from keystride.robot.description import Floats, Robot
from keystride.robot.model import load_model


def knees_from_joints(robot: Robot, joints: Floats) -> Floats:
    """Joint angles (..., 12) to knee positions (..., 4, 3) in the base frame, m."""
    angles = joints.reshape(*joints.shape[:-1], 4, 3)
    hip, thigh = angles[..., 0], angles[..., 1]
    upper = np.array([leg.thigh_length for leg in robot.legs])
    side = np.array([leg.thigh_in_hip[1] for leg in robot.legs])
    root = np.array([leg.hip_in_base for leg in robot.legs])
    depth = -upper * np.cos(thigh)
    c, s = np.cos(hip), np.sin(hip)
    return root + np.stack([-upper * np.sin(thigh), c * side - s * depth, s * side + c * depth], axis=-1)


@lru_cache(maxsize=4)
def knee_radius(robot: Robot) -> float:
    """Return the largest sphere that the model puts around a knee."""
    model = load_model(robot, visual=False)
    names = (f"{leg.name}_knee" for leg in robot.legs)
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in names]
    return max((float(model.geom_size[one, 0]) for one in ids if one >= 0), default=robot.foot_radius)


@lru_cache(maxsize=4)
def trunk_points(robot: Robot) -> tuple[Floats, Floats]:
    """Points of the trunk's collision shapes in the base frame (N, 3), and the radius around each (N,)."""
    model = load_model(robot, visual=False)
    base = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, robot.base_body)
    points: list[Floats] = []
    radii: list[float] = []
    for geom in np.flatnonzero((model.geom_bodyid == base) & (model.geom_conaffinity > 0)):
        corners, radius = _corners(int(model.geom_type[geom]), model.geom_size[geom])
        placed = model.geom_pos[geom] + geometry.rotate(model.geom_quat[geom], corners)
        points.extend(placed)
        radii.extend([radius] * len(placed))
    return np.array(points).reshape(-1, 3), np.array(radii)


def _corners(kind: int, size: Floats) -> tuple[Floats, float]:
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return np.zeros((1, 3)), float(size[0])
    if kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER):
        return np.array([[0.0, 0.0, size[1]], [0.0, 0.0, -size[1]]]), float(size[0])
    signs = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3)
    return signs * size, 0.0


def trunk_clearance(robot: Robot, position: Floats, orientation: Floats) -> Floats:
    """Height of each trunk point over the ground, (T, N) m."""
    points, radii = trunk_points(robot)
    world = position[:, None] + geometry.rotate(orientation[:, None], points[None])
    return world[..., 2] - radii


def knee_clearance(robot: Robot, position: Floats, orientation: Floats, joints: Floats) -> Floats:
    """Height of each knee's lowest point over the ground, (T, 4) m."""
    knees = position[:, None] + geometry.rotate(orientation[:, None], knees_from_joints(robot, joints))
    return knees[..., 2] - knee_radius(robot)
