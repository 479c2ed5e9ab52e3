"""The robot's meshes have its size and follow its joints."""

import mujoco
import numpy as np

from keystride.robot.go2 import GO2
from keystride.robot.model import load_model
from keystride.studio.page.meshes import Figure, robot_bodies


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
