"""Numbers on the ground, and walls around obstacles."""

import numpy as np
import pytest
import trimesh

from keystride import colours
from keystride.studio.page.ground import DIGIT_SEGMENTS, STROKES, WALL, numbers, sky, wall, written


def test_numbers_lie_flat_beside_their_metre():
    strokes = written("3", 3.0, 0.0)
    assert strokes.shape == (len(DIGIT_SEGMENTS["3"]), 2, 3)
    assert np.ptp(strokes[..., 2]) == 0.0
    assert strokes[..., 0].min() > 3.0
    assert numbers().shape[1:] == (2, 3)
    assert set("".join(DIGIT_SEGMENTS.values())) == set(STROKES)


def test_numbers_can_be_read_from_above():
    """Looking down with x upwards in the picture, -y is on its right."""
    seven = np.stack([-written("7", 0.0, 0.0)[..., 1], written("7", 0.0, 0.0)[..., 0]], axis=-1)  # right, up
    top = seven[..., 1].max()
    bar = [stroke for stroke in seven if (stroke[:, 1] == top).all()]
    foot = seven[np.unravel_index(seven[..., 1].argmin(), seven.shape[:2])]
    assert foot[0] == pytest.approx(np.max(bar, axis=(0, 1))[0])  # the seven stands on its right
    assert len(bar) == 1
    lefts = [written(text, 0.0, 0.0)[..., 1] for text in ("1", "-1")]
    assert lefts[1].min() < lefts[0].min()  # the minus comes first, so the one is farther to the right


def test_the_sky_is_a_picture():
    assert sky(colours.DARK).dtype == np.uint8
    assert sky(colours.DARK).shape[2] == 3


def test_a_wall_goes_all_around_an_obstacle():
    vertices, faces = wall(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]))
    mesh = trimesh.Trimesh(vertices, faces)
    assert mesh.area == pytest.approx(6.0 * WALL)  # around it, times the height
    np.testing.assert_allclose(mesh.bounds, [[0.0, 0.0, 0.0], [2.0, 1.0, WALL]])
    assert mesh.is_winding_consistent
