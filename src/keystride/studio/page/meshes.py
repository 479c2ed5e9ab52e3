"""The robot's looks as meshes: the visual primitives of its model, body by body, coarse enough for any browser."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np
import trimesh
from numpy.typing import NDArray

from keystride.robot.description import Floats, Robot
from keystride.robot.model import load_model

LOOKS = 2  # geom group of the visual primitives
GHOST_DETAIL = 0.03  # m: smaller parts than this do not show in a ghost
ROUND_SIDES = 14

GEOM = mujoco.mjtGeom


@dataclass(frozen=True)
class Surface:
    """Triangles in the frame of a body."""

    vertices: Floats  # (V, 3) m
    faces: NDArray[np.int64]  # (F, 3)
    colours: NDArray[np.uint8]  # (V, 4)

    def mesh(self) -> trimesh.Trimesh:
        return trimesh.Trimesh(self.vertices, self.faces, vertex_colors=self.colours, process=False)


@dataclass(frozen=True)
class Body:
    name: str
    whole: Surface
    outline: Surface  # without small parts, for ghosts
    is_leg: bool


class Figure:
    """The robot's bodies, and where they are in a pose. Not for two threads at once."""

    def __init__(self, robot: Robot) -> None:
        self._model = load_model(robot)
        self._data = mujoco.MjData(self._model)
        self.bodies = robot_bodies(robot)

    def place(self, position: Floats, orientation: Floats, joints: Floats) -> tuple[Floats, Floats]:
        """(B, 3) positions and (B, 4) orientations of the bodies in the world."""
        self._data.qpos[:] = np.concatenate([position, orientation, joints])
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.xpos[1:].copy(), self._data.xquat[1:].copy()


@cache
def robot_bodies(robot: Robot) -> tuple[Body, ...]:
    return tuple(_bodies(load_model(robot), robot.base_body))


def _bodies(model: mujoco.MjModel, base: str) -> Iterator[Body]:
    for body in range(1, model.nbody):
        seen = (model.geom_bodyid == body) & (model.geom_group == LOOKS)
        large = seen & (model.geom_rbound > GHOST_DETAIL)
        name, whole, outline = model.body(body).name, _merged(model, seen), _merged(model, large)
        yield Body(name, whole, outline, is_leg=name != base)


def _merged(model: mujoco.MjModel, geoms: NDArray[np.bool_]) -> Surface:
    parts = [_part(model, int(geom)) for geom in np.flatnonzero(geoms)]
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    return Surface(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.colours for part in parts]),
    )


def _part(model: mujoco.MjModel, geom: int) -> Surface:
    mesh = _primitive(int(model.geom_type[geom]), tuple(model.geom_size[geom].tolist()))
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
    vertices = mesh.vertices @ turn.reshape(3, 3).T + model.geom_pos[geom]
    material = model.geom_matid[geom]
    rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
    return Surface(vertices, mesh.faces, np.tile((rgba * 255).astype(np.uint8), (len(vertices), 1)))


@cache
def _primitive(kind: int, size: tuple[float, ...]) -> trimesh.Trimesh:
    """In the geom's own frame; MuJoCo's sizes are halves."""
    radius = size[0]
    if kind == GEOM.mjGEOM_BOX:
        return trimesh.creation.box([2 * half for half in size])
    if kind == GEOM.mjGEOM_CYLINDER:
        return trimesh.creation.cylinder(radius, 2 * size[1], sections=ROUND_SIDES)
    if kind == GEOM.mjGEOM_CAPSULE:
        capsule = trimesh.creation.capsule(2 * size[1], radius, count=(ROUND_SIDES // 2, ROUND_SIDES))
        return capsule.apply_translation(-capsule.bounds.mean(axis=0))
    ball = trimesh.creation.uv_sphere(1.0, count=(ROUND_SIDES // 2, ROUND_SIDES))
    return ball.apply_scale(size if kind == GEOM.mjGEOM_ELLIPSOID else radius)
