"""Walls of obstacles."""

import numpy as np
import pytest
import trimesh

from keystride.studio.page.stage_shapes import WALL, wall


def test_a_wall_goes_all_around_an_obstacle():
    vertices, faces = wall(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]))
    mesh = trimesh.Trimesh(vertices, faces)
    assert mesh.area == pytest.approx(6.0 * WALL)  # around it, times the height
    np.testing.assert_allclose(mesh.bounds, [[0.0, 0.0, 0.0], [2.0, 1.0, WALL]])
    assert mesh.is_winding_consistent
