"""The 3D scene in a browser."""

from typing import Any

import numpy as np
import pytest

from keystride.keyframes.files import load_script
from keystride.robot.description import Floats
from keystride.studio.server import CAMERA, FIELD_OF_VIEW, LOOK_AT


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_a_ghost_is_dragged_over_the_ground(page: Any):
    (x0, y0), (x1, y1) = (on_screen(page, np.array([x, 0.0, 0.36])) for x in (0.0, 0.5))
    hover(page, x0, y0)
    page.tab.mouse.down()
    page.tab.mouse.move(x0 + (x1 - x0) / 2, y0 + (y1 - y0) / 2, steps=5)
    page.tab.mouse.move(x1, y1, steps=5)
    page.wait_until("JSON.parse(document.getElementById('ks-script').textContent).unsaved")
    page.tab.mouse.up()
    moved = saved(page)[0]
    assert moved.position is not None
    assert moved.position[0] > 0.1
    assert abs(moved.position[1]) < 0.2
    page.press("Control+z")
    page.wait_until("!JSON.parse(document.getElementById('ks-script').textContent).unsaved")


def hover(page: Any, x: float, y: float) -> None:
    """Put the pointer on something of the scene that can be grabbed, as soon as it is drawn."""
    for attempt in range(300):
        page.tab.mouse.move(x + attempt % 2, y)
        if page.tab.evaluate("[...document.querySelectorAll('canvas')].some((e) => e.style.cursor === 'pointer')"):
            return
        page.tab.wait_for_timeout(200)
    raise AssertionError("nothing to grab there")


def saved(page: Any) -> tuple[Any, ...]:
    """The keyframes as a download has them."""
    page.open_panel("Files")
    with page.tab.expect_download() as download:
        page.tab.get_by_role("button", name="Download as YAML").click()
    return load_script(download.value.path()).keyframes


def on_screen(page: Any, point: Floats) -> tuple[float, float]:
    """Where a point of the stage is drawn while nobody has turned the camera."""
    eye, target = np.array(CAMERA), np.array(LOOK_AT)
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    along = np.array([(point - eye) @ axis for axis in (right, np.cross(right, ahead), ahead)])
    canvas = page.tab.locator("#root canvas").last.bounding_box()
    scale = canvas["height"] / 2 / np.tan(FIELD_OF_VIEW / 2)
    x = canvas["x"] + canvas["width"] / 2 + scale * along[0] / along[2]
    return float(x), float(canvas["y"] + canvas["height"] / 2 - scale * along[1] / along[2])
