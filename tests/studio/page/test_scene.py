"""The 3D scene in a browser."""

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_a_ghost_is_dragged_over_the_ground(page: Any):
    (x0, y0), (x1, y1) = (page.on_screen(np.array([x, 0.0, 0.36])) for x in (0.0, 0.5))
    page.hover(x0, y0)
    page.tab.mouse.down()
    page.tab.mouse.move(x0 + (x1 - x0) / 2, y0 + (y1 - y0) / 2, steps=5)
    page.tab.mouse.move(x1, y1, steps=5)
    page.wait_until("JSON.parse(document.getElementById('ks-script').textContent).unsaved")
    page.tab.mouse.up()
    moved = page.saved()[0]
    assert moved.position is not None
    assert moved.position[0] > 0.1
    assert abs(moved.position[1]) < 0.2
    page.press("Control+z")
    page.wait_until("!JSON.parse(document.getElementById('ks-script').textContent).unsaved")
