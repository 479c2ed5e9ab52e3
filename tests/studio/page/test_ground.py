"""Numbers on the ground, and walls around obstacles."""

import numpy as np
import pytest
import trimesh

from keystride import colours
from keystride.studio.page.ground import WALL, numbers, sky, wall


def test_numbers_say_their_axis_and_stand_at_their_metre():
    places = numbers()
    assert places["x 3 m"][:2] == (3.0, 0.0)
    assert places["y -2 m"][:2] == (0.0, -2.0)
    assert len(set(places.values())) == len(places) == 36


def test_the_sky_is_a_picture():
    assert sky(colours.DARK).dtype == np.uint8
    assert sky(colours.DARK).shape[2] == 3


def test_a_wall_goes_all_around_an_obstacle():
    vertices, faces = wall(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]))
    mesh = trimesh.Trimesh(vertices, faces)
    assert mesh.area == pytest.approx(6.0 * WALL)  # around it, times the height
    np.testing.assert_allclose(mesh.bounds, [[0.0, 0.0, 0.0], [2.0, 1.0, WALL]])
    assert mesh.is_winding_consistent
