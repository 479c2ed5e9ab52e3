"""The robot's looks as plain data: a tree of bodies and the primitive shapes that hang on them."""

from typing import Any

import mujoco
import numpy as np

from keystride.robot.description import Robot
from keystride.robot.model import load_model
from keystride.robot.picture import SEEN_GROUPS

KINDS = {
    mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellipsoid",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    mujoco.mjtGeom.mjGEOM_BOX: "box",
}
WORLD = 0  # MuJoCo's first body


def robot_looks(robot: Robot) -> dict[str, Any]:
    """Bodies in the order of the tree, the base first; its joints in the robot's order. Metres; quaternions w x y z."""
    model = load_model(robot)
    base = model.body(robot.base_body).id
    bodies = [_body(model, robot, body, base) for body in range(base, model.nbody)]
    shapes = [_shape(model, geom, base) for geom in range(model.ngeom) if _seen(model, geom)]
    return {"bodies": bodies, "shapes": shapes}


def _body(model: Any, robot: Robot, body: int, base: int) -> dict[str, Any]:
    if body == base:
        return {"parent": -1, "position": [0, 0, 0], "rotation": [1, 0, 0, 0], "joint": -1, "axis": [0, 0, 1]}
    joint = model.joint(int(model.body_jntadr[body]))
    return {
        "parent": int(model.body_parentid[body]) - base,
        "position": _rounded(model.body_pos[body]),
        "rotation": _rounded(model.body_quat[body]),
        "joint": robot.joint_names.index(joint.name),
        "axis": _rounded(joint.axis),
    }


def _shape(model: Any, geom: int, base: int) -> dict[str, Any]:
    material = int(model.geom_matid[geom])
    colour = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
    return {
        "body": int(model.geom_bodyid[geom]) - base,
        "kind": KINDS[mujoco.mjtGeom(int(model.geom_type[geom]))],
        "size": _rounded(model.geom_size[geom]),
        "position": _rounded(model.geom_pos[geom]),
        "rotation": _rounded(model.geom_quat[geom]),
        "colour": _rounded(colour[:3]),
        "glow": float(model.mat_emission[material]) if material >= 0 else 0.0,
    }


def _seen(model: Any, geom: int) -> bool:
    return int(model.geom_bodyid[geom]) != WORLD and int(model.geom_group[geom]) in SEEN_GROUPS


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 6) for value in np.asarray(values)]
