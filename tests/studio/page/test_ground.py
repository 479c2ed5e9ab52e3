"""Numbers on the ground, walls around obstacles, and the stage of a script in a browser."""

import io
from typing import Any

import numpy as np
import PIL.Image
import pytest
import trimesh

from keystride import colours
from keystride.benchmarks.browser import HIDE_NOTIFICATIONS
from keystride.robot.description import Floats
from keystride.studio.page.ground import STAGE_LIFT, WALL, numbers, sky, wall

PLAIN = """version: 2
keyframes:
  - {time: 1.0, position: [0.5, 0.0]}
  - {time: 3.0, position: [1.0, 0.0]}
"""
STAGE = """stage:
  floor: [[-0.7, -0.8], [1.7, -0.8], [1.7, 1.0], [-0.7, 1.0]]
  obstacles: [{label: flowers, corners: [[0.9, 0.6], [1.2, 0.6], [1.2, 0.9], [0.9, 0.9]]}]
  audience: [[2.0, -0.8], [2.0, 1.0]]
"""


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


def open_script(page: Any, served: Any, name: str, text: str) -> None:
    (served.folder / name).write_text(text)
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name=name).click()
    page.wait_for_script(f"script.name === {name!r}")


def test_the_stage_of_a_script_is_drawn(served: Any, open_page: Any):
    page = open_page(served.url, drawn=True, device_scale_factor=1.0)
    page.tab.add_style_tag(content=HIDE_NOTIFICATIONS + "#ks-tips { display: none !important; }")
    page.open_panel("Stage")
    for part in ("keyframes", "path", "trace"):
        page.tab.get_by_label(part, exact=True).uncheck()
    canvas = page.tab.locator("#root canvas").last

    def picture() -> Floats:
        """Return the scene (H, W, 3) as soon as it stays the same."""
        shot, before = canvas.screenshot(), b""
        while shot != before:
            page.tab.wait_for_timeout(500)
            before, shot = shot, canvas.screenshot()
        return np.asarray(PIL.Image.open(io.BytesIO(shot)).convert("RGB"), dtype=float)

    def colours_at(x: float, y: float, z: float) -> tuple[Floats, Floats]:
        """Return the colours (3,) without and with the stage, where they differ most within two pixels of a point."""
        box = canvas.bounding_box()
        column, row = page.on_screen(np.array([x, y, z]))
        left, top = round(column - box["x"]), round(row - box["y"])
        near = (slice(top - 2, top + 3), slice(left - 2, left + 3))
        without, shown = plain[near].reshape(-1, 3), staged[near].reshape(-1, 3)
        most = np.linalg.norm(shown - without, axis=1).argmax()
        return without[most], shown[most]

    open_script(page, served, "plain.yaml", PLAIN)
    plain = picture()
    open_script(page, served, "staged.yaml", PLAIN + STAGE)
    staged = picture()
    shapes = {
        colours.OUTLINE: [(0.5, -0.8, STAGE_LIFT), (1.7, -0.3, STAGE_LIFT), (-0.7, 0.5, STAGE_LIFT)],
        colours.OBSTACLE: [(1.05, 0.6, WALL / 2), (0.9, 0.75, WALL / 2)],
        colours.AUDIENCE: [(2.0, 0.2, STAGE_LIFT), (2.0, -0.3, STAGE_LIFT)],
    }
    for colour, points in shapes.items():
        for point in points:
            without, shown = colours_at(*point)
            towards = np.array(colour) - without
            share = (shown - without) @ towards / (towards @ towards)  # 1.0: the colour itself
            assert share > 0.4, (colour, point)
            aside = np.linalg.norm(shown - without - share * towards)  # walls are lit
            assert aside < 0.5 * share * np.linalg.norm(towards), (colour, point)
    np.testing.assert_allclose(*colours_at(0.9, -0.4, 0.0), atol=20.0)  # on the floor, away from everything

    open_script(page, served, "plain.yaml", PLAIN)
    everywhere = [point for points in shapes.values() for point in points]
    for _ in range(60):  # a busy machine may not have drawn it yet
        staged = picture()
        if all(np.allclose(*colours_at(*point), atol=20.0) for point in everywhere):
            return
    pytest.fail("the stage is still drawn")


def test_a_keyframe_off_the_stage_is_warned_of_until_it_is_moved_back(served: Any, page: Any):
    open_script(page, served, "staged.yaml", PLAIN + STAGE)
    page.open_panel("Keyframe")
    page.tab.locator('.ks-mark[data-key="2"] .gem').click()
    page.wait_for_script("script.selected === 2")
    warnings = page.tab.locator(".ks-headline .ks-doubt")
    sign = page.tab.locator('.ks-mark[data-key="2"] .warn')
    assert warnings.count() == sign.count() == 0

    def move(x: float, y: float) -> None:
        for name, value in (("x, y (m)", x), ("y of x, y (m)", y)):
            field = page.tab.get_by_label(name, exact=True)
            field.fill(str(value))
            field.press("Enter")

    for x, y, text in (
        (1.0, 2.0, "the path to it leaves the floor"),
        (1.05, 0.75, "the path to it meets the flowers"),
        (2.4, 0.0, "the path to it crosses the audience's side"),
        (1.0, 0.5, "m from the flowers; the robot needs"),
    ):
        move(x, y)
        warnings.filter(has_text=text).wait_for()
        sign.wait_for(state="attached")
        assert text in page.tab.locator('.ks-mark[data-key="2"]').get_attribute("title")
        move(1.0, 0.0)
        warnings.first.wait_for(state="detached")
        sign.wait_for(state="detached")
