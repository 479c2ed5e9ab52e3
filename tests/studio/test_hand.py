"""Posing by hand with a real mouse: feet, views, framing, and what the forecast suggests with a policy that walks."""

from typing import Any

import numpy as np
import pytest

from keystride.policy.bundle import known
from keystride.robot.description import Floats
from keystride.studio.document.draft import Draft
from keystride.studio.document.keyframe_poses import Ghost, ghosts
from keystride.studio.document.posing import ghost_feet
from keystride.studio.page.handles import ARROW_FROM, ARROW_TO, FEET, RING_RADIUS, Ray
from keystride.studio.page.scene import FRAME_DISTANCE, VIEWS

FRONT_LEFT, FRONT_RIGHT, REAR_RIGHT = (FEET.index(f"{leg} foot") for leg in ("front left", "front right", "rear right"))
LATE = """version: 1
keyframes:
  - {time: 0.8, position: [1.6, 0.0]}
  - {time: 4.0, position: [1.6, 0.0]}
"""

CAMERA = "[...__viserMutable.camera.matrixWorld.elements]"
PLACE = """(point) => {
  const { camera, canvas, nodeRefFromName } = __viserMutable, box = canvas.getBoundingClientRect();
  const drawn = camera.position.clone().set(...point).applyMatrix4(nodeRefFromName["/stage"].matrixWorld).project(camera);
  const [x, y] = [box.x + (1 + drawn.x) / 2 * box.width, box.y + (1 - drawn.y) / 2 * box.height];
  return [x, y, document.elementFromPoint(x, y) === canvas]; }"""
TURN = 0.4  # rad


def feet_of(draft: Draft) -> Floats:
    return ghost_feet(ghosts(draft)[1])


def at(point: Floats, place: Floats) -> bool:
    return bool(np.linalg.norm(place - point) < 0.015)  # two pixels


def grab(page: Any, point: Floats, camera: Any) -> tuple[float, float]:
    """Take hold of what is drawn at a point."""
    found = page.on_screen(point, camera)
    page.hover(*found)
    page.tab.mouse.down()
    return found


def seen(page: Any, point: Floats) -> tuple[float, float]:
    """Where the page's camera shows a point of the stage, covered by no panel."""
    x, y, uncovered = page.tab.evaluate(PLACE, point.tolist())
    assert uncovered
    return x, y


def pulls(ghost: Ghost, camera: Any) -> dict[str, tuple[str, Floats, Floats]]:
    """Return by handle what dragging it changes, where it is grabbed, and where it is dragged to."""
    right, up, _ = camera.axes
    lift = np.array([0.0, 0.0, 0.1])
    feet = ghost_feet(ghost)
    hidden = Ray.through(camera.eye, feet[FRONT_LEFT]).at_height(float(ghost.position[2]))

    def rim(angle: float) -> Floats:
        return ghost.position + RING_RADIUS * np.array([np.cos(angle), np.sin(angle), 0.0])

    found = {"body": ("ground", ghost.position, ghost.position + np.array([0.15, 0.1, 0.0]))}
    for degrees in (15, 90, 150, 210, 270, 330):  # the first place is inside the other keyframe's ghost
        angle = np.radians(degrees)
        found[f"ring at {degrees}°"] = ("yaw", rim(angle), rim(angle + TURN))
    before_foot = float(np.arctan2(hidden[1] - ghost.position[1], hidden[0] - ghost.position[0]))
    found["ring in front of a foot"] = ("yaw", hidden, rim(before_foot + TURN))
    for height in (ARROW_FROM + 0.03, 0.5 * (ARROW_FROM + ARROW_TO), ARROW_TO + 0.06):  # shaft and tip
        start = ghost.position + np.array([0.0, 0.0, height])
        found[f"arrow at {height:.2f} m"] = ("height", start, start + lift)
    start = ghost.position + np.array([0.0, 0.0, ARROW_FROM + 0.01]) + 0.015 * right
    found["arrow in front of the ring"] = ("height", start, start + lift)
    for name, foot in zip(FEET, feet, strict=True):
        start = foot + 0.045 * up  # the ring hides the centre of one of them
        found[name] = (name, start, start + 0.03 * right + 0.05 * up)
    return found


def test_every_handle_is_grabbed_where_it_is_seen_and_the_camera_stays(shared_page: Any, opening: Any):
    page = shared_page
    before = ghosts(page.draft())[1]
    camera = page.tab.evaluate(CAMERA)

    def changes(ghost: Ghost) -> set[str]:
        assert page.tab.evaluate(CAMERA) == camera, f"{handle}: the camera moved"
        feet = np.linalg.norm(ghost_feet(ghost) - ghost_feet(before) - (ghost.position - before.position), axis=1)
        return {
            *(["ground"] if np.linalg.norm(ghost.position[:2] - before.position[:2]) > 0.05 else []),
            *(["height"] if abs(ghost.position[2] - before.position[2]) > 0.05 else []),
            *(["yaw"] if abs(ghost.angles[2] - before.angles[2]) > TURN / 2 else []),
            *(FEET[leg] for leg in np.flatnonzero(feet > 0.03) if ghost.posed),
        }

    for handle, (part, start, end) in pulls(before, opening).items():
        page.hover(*seen(page, start))
        page.tab.mouse.down()
        page.tab.mouse.move(*seen(page, (start + end) / 2), steps=3)
        page.tab.mouse.move(*seen(page, end), steps=3)
        page.tab.mouse.up()
        draft = page.wait_for_draft(lambda draft: changes(ghosts(draft)[1]) != set())
        assert changes(ghosts(draft)[1]) == {part}, handle
        page.press("Control+z")
        page.wait_for_script("!script.undo")


def test_of_two_feet_in_line_the_near_one_is_grabbed(served: Any, open_page: Any, opening: Any):
    page = open_page(served.url)
    before = feet_of(page.draft())
    start = before[FRONT_RIGHT] + np.array([0.03, 0.0, 0.03])  # seen from the side, the left foot's centre is as near
    side = type(opening)(opening.target + VIEWS["side"], opening.target)
    page.press("1")
    x, y = page.on_screen(start, side)
    page.wait_until(f"(([px, py]) => Math.hypot(px - {x}, py - {y}) < 1)(({PLACE})({start.tolist()}))")
    page.hover(*seen(page, start))
    page.tab.mouse.down()
    page.tab.mouse.move(*seen(page, start + np.array([0.05, 0.0, 0.05])), steps=6)
    draft = page.wait_for_draft(lambda draft: ghosts(draft)[1].posed)
    page.tab.mouse.up()
    moved = np.linalg.norm(feet_of(draft) - before, axis=1)
    assert moved.argmax() == FRONT_RIGHT


def test_a_dragged_foot_bends_its_leg_and_the_opposite_one_if_mirrored(shared_page: Any, opening: Any):
    page = shared_page
    before = feet_of(page.draft())
    shift = np.array([0.03, 0.07, 0.0]) @ opening.axes  # to the right and up, in the plane that faces the camera

    def drag_foot() -> None:
        grab(page, before[FRONT_RIGHT], opening)
        page.tab.mouse.move(*page.on_screen(before[FRONT_RIGHT] + shift / 2, opening), steps=4)
        page.tab.mouse.move(*page.on_screen(before[FRONT_RIGHT] + shift, opening), steps=4)

    drag_foot()
    draft = page.wait_for_draft(lambda draft: at(before[FRONT_RIGHT] + shift, feet_of(draft)[FRONT_RIGHT]))
    page.tab.mouse.up()
    others = [leg for leg in range(4) if leg != FRONT_RIGHT]
    np.testing.assert_allclose(feet_of(draft)[others], before[others], atol=5e-3)
    page.wait_for_marks("marks[0].parts[4]")  # it asks for the posture now
    page.press("Control+z")
    page.wait_for_marks("!marks[0].parts[4]")  # the whole drag is one step
    page.tab.get_by_label("mirror live").check()
    drag_foot()
    mirrored = (before[FRONT_RIGHT] + shift) * [1.0, -1.0, 1.0]  # the keyframe is at the origin and looks along x
    page.wait_for_draft(lambda draft: at(mirrored, feet_of(draft)[FRONT_LEFT]))
    page.tab.mouse.up()
    page.tab.get_by_label("mirror live").uncheck()


def test_the_feet_stay_planted_while_the_body_is_moved(shared_page: Any, opening: Any):
    page = shared_page
    before, body = feet_of(page.draft()), ghosts(page.draft())[1].position
    page.tab.get_by_label("keep feet planted").check()
    grab(page, body, opening)
    page.tab.mouse.move(*page.on_screen(body + np.array([0.06, 0.0, 0.0]), opening), steps=4)
    draft = page.wait_for_draft(lambda draft: ghosts(draft)[1].position[0] > 0.04)
    page.tab.mouse.up()
    np.testing.assert_allclose(feet_of(draft), before, atol=5e-3)
    page.tab.get_by_label("keep feet planted").uncheck()


def test_a_leg_at_its_limit_is_named(shared_page: Any, opening: Any):
    page = shared_page
    foot = feet_of(page.draft())[REAR_RIGHT]
    x, y = grab(page, foot, opening)
    page.tab.mouse.move(x - 60, y - 60, steps=4)
    page.tab.locator(".ks-headline", has_text="rear right leg: a joint is at its limit").wait_for()
    page.tab.mouse.move(x, y - 5, steps=4)
    page.tab.locator(".ks-headline", has_text="is at its limit").wait_for(state="detached")
    page.tab.mouse.up()


def test_views_and_framing_show_the_scene_from_where_they_say(served: Any, open_page: Any, opening: Any):
    """A ghost that is dragged from one place of the picture to another one goes where this view shows that place."""
    page = open_page(served.url)
    camera_at = type(opening)
    place = ghosts(page.draft())[2].position

    def synchronise() -> None:
        """What the session sent before it said this has arrived as well."""
        page.press("Escape")
        page.wait_for_script("script.selected === null")
        page.press("ArrowDown")
        page.wait_for_script("script.selected !== null")

    def moves(camera: Any, shift: Floats) -> None:
        goal = place + shift
        grab(page, place, camera)
        page.tab.mouse.move(*page.on_screen(place + shift / 2, camera), steps=4)
        page.tab.mouse.move(*page.on_screen(goal, camera), steps=4)
        # It is held at its surface, up to 0.1 m nearer than its centre.
        page.wait_for_draft(lambda draft: bool(np.linalg.norm(ghosts(draft)[2].position - goal) < 0.06))
        page.tab.mouse.up()
        page.press("Control+z")
        page.wait_for_script("!script.unsaved")

    for key, view in (("2", "top"), ("1", "side"), ("3", "free")):
        page.press(key)
        synchronise()
        camera = camera_at(opening.target + VIEWS[view], opening.target)
        moves(camera, np.array([0.4, 0.0 if view == "side" else 0.2, 0.0]))
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.wait_for_script("script.selected === 2")
    foot = ghost_feet(ghosts(page.draft())[2])[REAR_RIGHT]  # a handle of the ghost counts as the ghost
    page.hover(*page.on_screen(foot, camera))
    page.tab.mouse.dblclick(*page.on_screen(foot, camera))
    synchronise()
    away = camera.eye - camera.target
    framed = camera_at(place + away * FRAME_DISTANCE / np.linalg.norm(away), place)
    page.press("Escape")  # without its handles
    page.wait_for_script("script.selected === null")
    moves(framed, np.array([0.2, 0.1, 0.0]))


@pytest.mark.skipif(not known(), reason="needs a policy that walks")
def test_one_click_retimes_and_the_camera_follows_the_robot(served: Any, open_page: Any, opening: Any):
    (served.folder / "late.yaml").write_text(LATE)
    page = open_page(served.url)
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name="late.yaml").click()
    page.wait_for_script("script.name === 'late.yaml'")
    page.open_panel("Stage")
    page.tab.get_by_label("policy", exact=True).click()
    page.tab.get_by_role("option", name="go2-position").click()
    page.wait_for_script("script.tips && script.note.startsWith('go2-position')")
    tips = page.tab.locator("#ks-tips")
    assert "reachable from" in tips.inner_text()
    tips.get_by_role("button", name="Retime").click()
    page.wait_for_marks("marks[0].time > 0.8 && Math.abs(marks[1].time - marks[0].time - 3.2) < 0.01")
    page.wait_for_marks("marks[0].odds >= 50")

    page.tab.locator('.ks-mark[data-key="2"] .gem').click()
    for _ in range(2):
        page.press("Control+ArrowRight")  # to the second keyframe, where the robot stands
    page.wait_for_now("!now.simulating && now.head > 4")
    page.press("Escape")
    page.wait_for_script("script.selected === null")
    ghost = ghosts(page.draft())[2].position * [0.0, 0.0, 1.0]  # followed, it is where the start was

    def selects() -> None:
        page.hover(*page.on_screen(ghost, opening))
        page.tab.mouse.click(*page.on_screen(ghost, opening))
        page.wait_for_script("script.selected !== null")
        page.press("Escape")
        page.wait_for_script("script.selected === null")

    selects()
    page.press("f")
    page.press("Home")
    page.wait_for_now("now.head === 0")
    selects()  # the robot has gone back, and the picture stays
