"""Meshes have the robot's size and follow its joints; thumbnails show the pose, and names are text, never HTML."""

import re

import mujoco
import numpy as np
import pytest

from keystride.keyframes.postures import named_postures
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model
from keystride.studio.page.figure import (
    GROUND,
    PICTURE_HEIGHT,
    PICTURE_WIDTH,
    Figure,
    picture,
    pose_buttons,
    robot_bodies,
)


def test_the_robot_has_its_size():
    """Half a metre of trunk and head; feet of their radius below the calf."""
    bodies = {body.name: body for body in robot_bodies(GO2)}
    assert 0.5 < np.ptp(bodies["base"].whole.vertices[:, 0]) < 0.6
    lowest = bodies["FL_calf"].whole.vertices[:, 2].min()
    np.testing.assert_allclose(lowest, -0.213 - GO2.foot_radius, atol=1e-3)


def test_faces_point_at_vertices_and_ghosts_are_lighter():
    for body in robot_bodies(GO2):
        for surface in (body.whole, body.outline):
            assert surface.faces.max() < len(surface.vertices) == len(surface.colours)
        assert len(body.outline.vertices) <= len(body.whole.vertices)


def test_bodies_are_where_physics_has_them():
    model = load_model(GO2)
    data = mujoco.MjData(model)
    data.qpos[:3], data.qpos[7:] = (1.0, 2.0, 0.3), GO2.stance
    mujoco.mj_forward(model, data)
    positions, orientations = Figure(GO2).place(data.qpos[:3], data.qpos[3:7], data.qpos[7:])
    np.testing.assert_allclose(positions, data.xpos[1:])
    np.testing.assert_allclose(orientations, data.xquat[1:])


POSTURES = named_postures(GO2)


@pytest.mark.parametrize("name", POSTURES)
def test_the_robot_stands_inside_its_picture(name: str):
    corners = np.array(re.findall(r"(-?[\d.]+),(-?[\d.]+)", picture(POSTURES[name], Figure(GO2))), dtype=float) / 100
    assert corners[:, 0].min() > 0
    assert corners[:, 0].max() < PICTURE_WIDTH
    assert corners[:, 1].min() > 0
    assert corners[:, 1].max() < PICTURE_HEIGHT


def test_a_posture_that_is_lower_is_drawn_lower():
    def top(name: str) -> float:
        found = re.findall(r",(-?[\d.]+)", picture(POSTURES[name], Figure(GO2)))
        return GROUND - min(map(float, found)) / 100

    assert top("lie") < top("crouch") < top("stand") < top("tall")


def test_only_own_poses_can_be_deleted_and_names_are_escaped():
    html = pose_buttons({"sit": POSTURES["sit"], '"><b>': POSTURES["bow"]}, ['"><b>'], Figure(GO2))
    assert html.count("data-pose=") == 2
    assert html.count("data-forget=") == 1
    assert "<b>" not in html
    assert 'data-forget="&quot;&gt;&lt;b&gt;"' in html
