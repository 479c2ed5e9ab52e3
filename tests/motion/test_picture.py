import numpy as np
import pytest

from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.picture import ClipCamera, _camera, film
from keystride.robot.go2 import GO2


def test_the_camera_goes_with_the_heading() -> None:
    camera = _camera(np.array([1.0, 2.0, 0.3]), np.pi / 2, ClipCamera(azimuth=90.0))
    assert camera.azimuth == pytest.approx(180.0)
    np.testing.assert_allclose(camera.lookat, [1.0, 2.0, 0.22])


def test_one_picture_per_frame() -> None:
    name = next(iter(CATALOGUE))
    clip = as_clip(GO2, name, CATALOGUE[name](GO2))
    try:
        pictures = list(film(clip, GO2, (0, len(clip) // 2), ClipCamera(size=(64, 48))))
    except Exception as error:  # no EGL or OSMesa: MuJoCo raises what its backend raises
        pytest.skip(f"nothing to draw with: {error}")
    assert [picture.shape for picture in pictures] == [(48, 64, 3)] * 2
    assert (pictures[0] != pictures[1]).any()
