import numpy as np
import PIL.Image
import pytest

from keystride.robot.go2 import GO2
from keystride.robot.picture import draw_robot, write_png


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    try:
        return draw_robot(GO2, GO2.stance, azimuth=180.0, elevation=-5.0, size=(160, 120))
    except Exception as error:  # no EGL or OSMesa: MuJoCo raises what its backend raises
        pytest.skip(f"nothing to draw with: {error}")


def test_the_face_is_darker_than_the_shell_above_it(picture: np.ndarray):
    """Seen from the front, the middle column holds the light brow over the dark face."""
    column = picture[:, 75:85].mean(axis=(1, 2))
    assert column.min() < 60
    assert column[: int(column.argmin())].max() > 150


def test_the_robot_is_seen_symmetric_from_the_front(picture: np.ndarray):
    """The fill light comes from one side, so only dark against light counts."""
    dark = picture.mean(axis=-1) < 60
    assert dark.sum() > 200
    assert np.mean(dark == dark[:, ::-1]) > 0.95


def test_png_holds_the_picture(tmp_path, picture: np.ndarray):
    path = tmp_path / "robot.png"
    write_png(path, picture)
    assert np.array_equal(np.asarray(PIL.Image.open(path)), picture)
    assert [file.name for file in tmp_path.iterdir()] == ["robot.png"]
