"""Numbers on the ground."""

import numpy as np

from keystride.studio.page import palette
from keystride.studio.page.ground_grid import DIGIT_SEGMENTS, STROKES, numbers, sky, written


def test_numbers_lie_flat_beside_their_metre():
    strokes = written("3", 3.0, 0.0)
    assert strokes.shape == (len(DIGIT_SEGMENTS["3"]), 2, 3)
    assert np.ptp(strokes[..., 2]) == 0.0
    assert strokes[..., 0].min() > 3.0
    assert numbers().shape[1:] == (2, 3)
    assert set("".join(DIGIT_SEGMENTS.values())) == set(STROKES)


def test_the_sky_is_a_picture():
    assert sky(palette.DARK).dtype == np.uint8
    assert sky(palette.DARK).shape[2] == 3
