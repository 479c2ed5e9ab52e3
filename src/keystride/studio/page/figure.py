"""The shape of the robot: meshes of its bodies from the visual geoms of its model, and thumbnails of poses as SVG."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape

import mujoco
import numpy as np
import trimesh
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.postures import Posture
from keystride.robot.description import Floats, Robot
from keystride.robot.model import VisualShape, load_model, visual_shapes

GHOST_DETAIL = 0.03  # m; smaller parts are left out of ghosts
ROUND_SIDES = 14

PICTURE_WIDTH, PICTURE_HEIGHT = 0.96, 0.7  # m, size of the area that a thumbnail shows
GROUND = 0.62  # m from the top of the thumbnail to the ground
TOWARDS = np.array([0.45, 1.0, 0.28]) / np.linalg.norm([0.45, 1.0, 0.28])  # from the robot to the viewer
DEEPEST = 0.25  # m behind the centre of the robot, drawn darkest
DIRECTIONS = 40  # for the convex outline


@dataclass(frozen=True)
class Surface:
    """A triangle mesh in the frame of a body."""

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
    """The bodies of the robot, and where they are in a pose. Not thread-safe."""

    def __init__(self, robot: Robot) -> None:
        self._model = load_model(robot)
        self._data = mujoco.MjData(self._model)
        self.bodies = robot_bodies(robot)

    def place(self, position: Floats, orientation: Floats, joints: Floats) -> tuple[Floats, Floats]:
        """Return the positions (B, 3) and orientations (B, 4) of the bodies in the world."""
        self._data.qpos[:] = np.concatenate([position, orientation, joints])
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.xpos[1:].copy(), self._data.xquat[1:].copy()


@cache
def robot_bodies(robot: Robot) -> tuple[Body, ...]:
    return tuple(_bodies(load_model(robot), robot.base_body))


def _bodies(model: mujoco.MjModel, base: str) -> Iterator[Body]:
    shapes = visual_shapes(model)
    for body in range(1, model.nbody):
        parts = [shape for shape in shapes if shape.body == body]
        large = [shape for shape in parts if shape.radius > GHOST_DETAIL]
        name = model.body(body).name
        yield Body(name, _merged(parts), _merged(large), is_leg=name != base)


def _merged(shapes: Iterable[VisualShape]) -> Surface:
    parts = [_part(shape) for shape in shapes]
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    return Surface(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=True)]),
        np.concatenate([part.colours for part in parts]),
    )


def _part(shape: VisualShape) -> Surface:
    mesh = _primitive(shape.kind, tuple(shape.size.tolist()))
    vertices = geometry.rotate(shape.rotation, mesh.vertices) + shape.position
    return Surface(vertices, mesh.faces, np.tile((shape.colour * 255).astype(np.uint8), (len(vertices), 1)))


@cache
def _primitive(kind: str, size: tuple[float, ...]) -> trimesh.Trimesh:
    """Return a mesh in the frame of the geom; MuJoCo's sizes are half sizes."""
    radius = size[0]
    if kind == "box":
        return trimesh.creation.box([2 * half for half in size])
    if kind == "cylinder":
        return trimesh.creation.cylinder(radius, 2 * size[1], sections=ROUND_SIDES)
    if kind == "capsule":
        capsule = trimesh.creation.capsule(2 * size[1], radius, count=(ROUND_SIDES // 2, ROUND_SIDES))
        return capsule.apply_translation(-capsule.bounds.mean(axis=0))
    ball = trimesh.creation.uv_sphere(1.0, count=(ROUND_SIDES // 2, ROUND_SIDES))
    return ball.apply_scale(size if kind == "ellipsoid" else radius)


def pose_buttons(poses: Mapping[str, Posture], own: Iterable[str], figure: Figure) -> str:
    """Return HTML with a button for every pose, and one to delete each of the user's own."""
    own = set(own)
    return f'<div class="ks-poses">{"".join(_button(name, pose, name in own, figure) for name, pose in poses.items())}</div>'


def picture(pose: Posture, figure: Figure) -> str:
    """Return a thumbnail as SVG; more distant bodies are drawn first and darker."""
    orientation = geometry.from_roll_pitch_yaw(np.array([pose.roll, pose.pitch, 0.0]))
    placed = figure.place(np.array([0.0, 0.0, pose.height]), orientation, pose.joints)
    seen = []
    for body, position, turn in zip(figure.bodies, *placed, strict=True):
        points = position + geometry.rotate(turn, body.outline.vertices)  # (V, 3)
        depth = float(points.mean(axis=0) @ TOWARDS)
        seen.append(
            (depth, _polygon(_outline(_project(points)), 0.55 + 0.45 * min(max(0.5 + depth / DEEPEST, 0.0), 1.0)))
        )
    shapes = "".join(shape for _, shape in sorted(seen))
    ground = f'<path class="ground" d="M0 {100 * GROUND:g}H{100 * PICTURE_WIDTH:g}"/>'
    return (
        f'<svg viewBox="0 0 {100 * PICTURE_WIDTH:g} {100 * PICTURE_HEIGHT:g}" aria-hidden="true">{ground}{shapes}</svg>'
    )


def _button(name: str, pose: Posture, own: bool, figure: Figure) -> str:
    title = escape(name, quote=True)
    delete = (
        f'<button class="ks-forget" data-forget="{title}" aria-label="Delete the pose {title}">&times;</button>'
        if own
        else ""
    )
    return (
        f'<div class="ks-pose"><button data-pose="{title}" aria-label="Pose {title}">{picture(pose, figure)}'
        f"<span>{escape(name.replace('_', ' '))}</span></button>{delete}</div>"
    )


def _project(points: Floats) -> Floats:
    """Project points (V, 3) in m to the thumbnail (V, 2) in cm, right and down."""
    right = np.cross([0.0, 0.0, 1.0], TOWARDS)
    right /= np.linalg.norm(right)
    up = np.cross(TOWARDS, right)
    return 100 * np.stack([PICTURE_WIDTH / 2 + points @ right, GROUND - points @ up], axis=1)


def _outline(points: Floats) -> Floats:
    """Return the points (V, 2) farthest in each direction, in order: approximately the convex hull."""
    angle = np.linspace(0.0, 2 * np.pi, DIRECTIONS, endpoint=False)
    farthest = np.argmax(points @ np.stack([np.cos(angle), np.sin(angle)]), axis=0)
    return points[farthest[farthest != np.roll(farthest, 1)]]


def _polygon(points: Floats, shade: float) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{corners}" style="--shade:{shade:.2f}"/>'
