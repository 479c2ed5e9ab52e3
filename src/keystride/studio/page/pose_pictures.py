"""Thumbnails of poses: the outlines of the robot's bodies as seen from its front left, as SVG that CSS colours."""

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from keystride import geometry
from keystride.keyframes.postures import Posture
from keystride.robot.description import Floats
from keystride.studio.page.meshes import Figure

PICTURE_WIDTH, PICTURE_HEIGHT = 0.96, 0.7  # m that a picture shows
GROUND = 0.62  # m from the top of the picture to the ground under the robot
TOWARDS = np.array([0.45, 1.0, 0.28]) / np.linalg.norm([0.45, 1.0, 0.28])  # the viewer, from the robot
DEEPEST = 0.25  # m behind the middle of the robot, drawn darkest
DIRECTIONS = 40  # in which an outline is looked for


def pose_buttons(poses: Mapping[str, Posture], own: Iterable[str], figure: Figure) -> str:
    """HTML: a button for every pose, and one to delete each of the user's own."""
    own = set(own)
    return f'<div class="ks-poses">{"".join(_button(name, pose, name in own, figure) for name, pose in poses.items())}</div>'


def picture(pose: Posture, figure: Figure) -> str:
    """An SVG; bodies that are farther away come first, and darker."""
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
    """(V, 3) m to (V, 2) hundredths of a metre in the picture, right and down."""
    right = np.cross([0.0, 0.0, 1.0], TOWARDS)
    right /= np.linalg.norm(right)
    up = np.cross(TOWARDS, right)
    return 100 * np.stack([PICTURE_WIDTH / 2 + points @ right, GROUND - points @ up], axis=1)


def _outline(points: Floats) -> Floats:
    """The points (V, 2) that are farthest in each direction, in order: nearly the convex hull."""
    angle = np.linspace(0.0, 2 * np.pi, DIRECTIONS, endpoint=False)
    farthest = np.argmax(points @ np.stack([np.cos(angle), np.sin(angle)]), axis=0)
    return points[farthest[farthest != np.roll(farthest, 1)]]


def _polygon(points: Floats, shade: float) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{corners}" style="--shade:{shade:.2f}"/>'
