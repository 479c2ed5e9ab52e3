"""The trunk during retargeting: heading, pitch, roll and the heights of its two ends; and how far it and the knees are from the ground.

A rearing dog sits on its haunches; the robot has to balance on its hind feet and knees, so its trunk is moved back."""

from dataclasses import dataclass, replace
from functools import lru_cache

import mujoco
import numpy as np

from keystride import geometry
from keystride.motion.signals import Flags, gaussian_smooth, without_short
from keystride.robot.description import Floats, Robot
from keystride.robot.model import load_model


def knees_from_joints(robot: Robot, joints: Floats) -> Floats:
    """Return knee positions (..., 4, 3) in the base frame, m, for joint angles (..., 12)."""
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
    """Return points of the trunk's collision shapes in the base frame (N, 3), and the radius around each (N,)."""
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
    """Return the height of each trunk point above the ground, (T, N) m."""
    points, radii = trunk_points(robot)
    world = position[:, None] + geometry.rotate(orientation[:, None], points[None])
    return world[..., 2] - radii


def knee_clearance(robot: Robot, position: Floats, orientation: Floats, joints: Floats) -> Floats:
    """Return the height of each knee's lowest point above the ground, (T, 4) m."""
    knees = position[:, None] + geometry.rotate(orientation[:, None], knees_from_joints(robot, joints))
    return knees[..., 2] - knee_radius(robot)


RAISED = 0.05  # m under both front feet
LEAST_REARING_FRAMES = 30  # shorter ones are the start of a jump, and balance by moving
BEHIND_FEET = 0.07  # m: where the centre of mass is held, between the feet and the knees behind them
CENTRE_OF_MASS = (0.01, 0.0, -0.02)  # m in the base frame, legs included
TRUNK_EASE_FRAMES = 8.0  # frames


@dataclass(frozen=True)
class Trunk:
    """A trunk by its middle, its heading and the heights of its ends above ground."""

    middle: Floats  # (T, 2) m, world
    front: Floats  # (T,) m, height of the front hips
    rear: Floats  # (T,) m
    yaw: Floats  # (T,) rad
    roll: Floats  # (T,) rad
    anchor: Floats  # (T,) which point keeps its place when the pitch changes: 1 front hips, 0 the middle, -1 rear hips
    half: Floats  # (T,) m, from the middle to either end along the ground, before any change of pitch

    def lifted(self, front: Floats | float = 0.0, rear: Floats | float = 0.0) -> "Trunk":
        return replace(self, front=self.front + front, rear=self.rear + rear)


def heading_of(hips: Floats) -> Floats:
    """Return (T,) yaw. The line across the body helps where the line along it points up, as in rearing."""
    along = hips[:, :2].mean(axis=1) - hips[:, 2:].mean(axis=1)
    across = hips[:, 0] - hips[:, 1] + hips[:, 2] - hips[:, 3]
    along = along / np.linalg.norm(along, axis=-1, keepdims=True)
    across = across / np.linalg.norm(across, axis=-1, keepdims=True)
    return np.unwrap(np.arctan2(along[:, 1] - across[:, 0], along[:, 0] + across[:, 1]))


def pitch_of(hips: Floats) -> Floats:
    """Return (T,) how far the line from hips to shoulders points up, rad."""
    along = hips[:, :2].mean(axis=1) - hips[:, 2:].mean(axis=1)
    return np.arctan2(along[:, 2], np.linalg.norm(along[:, :2], axis=-1))


def roll_of(hips: Floats) -> Floats:
    """Return (T,) how far the left side is up, rad."""
    across = hips[:, 0] - hips[:, 1] + hips[:, 2] - hips[:, 3]
    return np.arctan2(across[:, 2], np.linalg.norm(across[:, :2], axis=-1))


def trunk_length(robot: Robot) -> float:
    return robot.legs[0].hip_in_base[0] - robot.legs[2].hip_in_base[0]


def half_length(front: Floats, rear: Floats, robot: Robot) -> Floats:
    """Return (T,) m from the middle of the trunk to either end, along the ground."""
    rise = np.clip((front - rear) / trunk_length(robot), -0.999, 0.999)
    return 0.5 * trunk_length(robot) * np.sqrt(1 - rise**2)


def base_pose(trunk: Trunk, robot: Robot) -> tuple[Floats, Floats]:
    """Return position (T, 3) and orientation (T, 4) of the robot's base."""
    rise = np.clip((trunk.front - trunk.rear) / trunk_length(robot), -0.999, 0.999)
    shift = -trunk.anchor * (half_length(trunk.front, trunk.rear, robot) - trunk.half)  # (T,) m, ahead
    ahead = np.stack([np.cos(trunk.yaw), np.sin(trunk.yaw)], axis=-1)
    position = np.column_stack([trunk.middle + shift[:, None] * ahead, 0.5 * (trunk.front + trunk.rear)])
    angles = np.stack([trunk.roll, -np.arcsin(rise), trunk.yaw], axis=-1)  # nose up is a negative pitch
    return position, geometry.from_roll_pitch_yaw(angles)


def rearing(feet: Floats, robot: Robot) -> Flags:
    """Return (T,) whether both front feet are in the air for a while and a rear foot is on the ground; feet (T, 4, 3) world."""
    height = feet[..., 2] - robot.foot_radius
    up = (height[:, :2].min(axis=1) > RAISED) & (height[:, 2:].min(axis=1) < RAISED)
    return without_short(up, LEAST_REARING_FRAMES, gap=3)


def over_rear_feet(trunk: Trunk, feet: Floats, robot: Robot) -> Trunk:
    """Return the trunk drawn back while rearing until its centre of mass is over the hind feet."""
    position, orientation = base_pose(trunk, robot)
    mass = position + geometry.rotate(orientation, np.tile(CENTRE_OF_MASS, (len(position), 1)))
    ahead = np.stack([np.cos(trunk.yaw), np.sin(trunk.yaw)], axis=-1)  # (T, 2)
    lead = np.sum((mass[:, :2] - feet[:, 2:, :2].mean(axis=1)) * ahead, axis=-1) + BEHIND_FEET
    back = gaussian_smooth(np.where(rearing(feet, robot), np.maximum(lead, 0.0), 0.0), TRUNK_EASE_FRAMES)
    return replace(trunk, middle=trunk.middle - back[:, None] * ahead)
