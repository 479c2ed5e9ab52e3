"""The studio in a real browser, from an empty page to a saved script."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keystride.keyframes.files import load_script
from keystride.robot.description import Floats
from keystride.studio.server import CAMERA, FIELD_OF_VIEW, LOOK_AT


def test_the_page_shows_the_script_and_its_odds(page: Any):
    marks = page.wait_for_marks("marks.every((mark) => mark.odds !== null)")
    assert [mark["time"] for mark in marks] == [0.4, 0.8]
    assert [mark["label"] for mark in marks] == ["here", ""]
    assert [mark["odds"] for mark in marks] == [100, 0]  # nobody moves it
    assert page.tab.locator(".ks-mark").count() == 2
    assert page.tab.title() == "Keystride Studio"


def test_three_keyframes_are_added_undone_and_redone(page: Any):
    for count, seconds in enumerate((1.2, 1.6, 2.0), start=3):
        page.seek(seconds)
        page.wait_for_now(f"Math.abs(now.head - {seconds}) < 0.05")
        page.press("k")
        page.wait_for_marks(f"marks.length === {count}")
    times = [mark["time"] for mark in page.script()["marks"]]
    assert times[2:] == pytest.approx([1.2, 1.6, 2.0], abs=0.06)
    for count in (4, 3, 2):
        page.press("Control+z")
        page.wait_for_marks(f"marks.length === {count}")
    for count in (3, 4, 5):
        page.press("Control+Shift+Z")
        page.wait_for_marks(f"marks.length === {count}")
    assert [mark["time"] for mark in page.script()["marks"]] == times


def test_keys_duplicate_delete_and_select(page: Any):
    page.press("ArrowDown")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("Delete")
    page.wait_for_marks("marks.length === 2")
    page.press("Escape")
    page.wait_until("JSON.parse(document.getElementById('ks-script').textContent).selected === null")
    page.press("?")
    assert page.tab.locator("#ks-help[open]").is_visible()
    assert "play or pause" in page.tab.locator("#ks-help").inner_text()


def test_a_mark_is_dragged_in_time(page: Any):
    mark = page.tab.locator('.ks-mark[data-key="2"] .gem')
    mark.wait_for(state="visible")
    gem = mark.bounding_box()
    assert gem is not None
    x, y = gem["x"] + gem["width"] / 2, gem["y"] + gem["height"] / 2
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + 60, y, steps=4)
    page.tab.mouse.move(x + 120, y, steps=4)
    page.tab.mouse.up()
    page.wait_for_marks("marks[1].time > 1.0")
    page.press("Control+z")
    page.wait_for_marks("marks[1].time === 0.8")


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


def test_a_posture_is_set_and_the_components_are_ticked(page: Any):
    page.tab.get_by_label("ask for posture").check()
    page.wait_for_marks("marks[0].parts[4]")
    page.tab.get_by_label("posture", exact=True).click()
    page.tab.get_by_role("option", name="sit", exact=True).click()
    page.tab.get_by_label("ask for yaw").check()
    page.wait_for_marks("marks[0].parts[3]")
    page.tab.get_by_label("ask for x, y").uncheck()
    page.wait_for_marks("!marks[0].parts[0]")
    keyframe = saved(page)[0]
    assert keyframe.posture == "sit"
    assert keyframe.yaw == 0.0
    assert keyframe.position is None


def test_a_pass_is_played_to_its_end_and_errors_appear(page: Any):
    page.press("]")
    page.press("Space")
    page.wait_for_now("now.playing")
    page.wait_for_now("!now.playing && now.head === now.end")
    assert [mark["state"] for mark in page.script()["marks"]] == ["met", "missed"]
    page.open_panel("Result")
    rows = page.tab.locator(".ks-errors tr")
    assert rows.count() == 3
    assert "missed" in rows.nth(2).inner_text()
    assert page.tab.locator("svg text", has_text="path from above").count() == 1
    page.seek(0.5)
    page.wait_for_now("Math.abs(now.head - 0.5) < 0.05")
    assert page.wait_for_marks("marks[1].state === 'active'")[0]["state"] == "met"
    with page.tab.expect_download() as download:
        page.tab.get_by_role("button", name="Replay").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_script_is_saved_opened_and_downloaded(page: Any, served: Any):
    page.press("k")
    page.wait_for_marks("marks.length === 3")
    page.open_panel("Files")
    page.tab.locator("input[value='start.yaml']").last.fill("three")
    page.tab.get_by_role("button", name="Save").click()
    page.tab.locator(".ks-message", has_text="Saved three.yaml").wait_for()
    script = load_script(served.folder / "three.yaml")
    assert len(script.keyframes) == 3
    with page.tab.expect_download() as download:
        page.tab.get_by_role("button", name="Download as JSON").click()
    copy = Path(served.folder) / "copy.json"
    download.value.save_as(copy)
    assert load_script(copy) == script
    page.tab.get_by_role("button", name="New script").click()
    page.wait_for_marks("marks.length === 0")
    page.tab.locator("input[name='file']").set_input_files(copy)
    page.wait_for_marks("marks.length === 3")


def test_a_bad_upload_is_told_in_the_page(page: Any, tmp_path: Path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nkeyframes:\n  - time: soon\n    yaw: 1000\n")
    page.open_panel("Files")
    page.tab.locator("input[name='file']").set_input_files(bad)
    message = page.tab.locator(".ks-message")
    message.wait_for()
    assert "bad.yaml:3: keyframe 1, time: 'soon' is not a number" in message.inner_text()
    assert "bad.yaml:4: keyframe 1, yaw: 1000 is beyond its limit" in message.inner_text()
    assert len(page.script()["marks"]) == 2


def test_what_is_not_possible_is_told_and_not_done(page: Any):
    page.press("ArrowDown")
    page.tab.get_by_label("ask for x, y").click()
    page.tab.get_by_text("asks for nothing").wait_for()
    assert page.script()["marks"][1]["parts"][0]
    page.tab.wait_for_timeout(500)
    assert page.tab.get_by_label("ask for x, y").is_checked()


def test_two_users_do_not_see_each_other(page: Any, open_page: Any, served: Any):
    other = open_page(served.url, viewport={"width": 500, "height": 400})
    other.press("k")
    other.wait_for_marks("marks.length === 3")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 4")
    assert len(other.script()["marks"]) == 3


def test_shortcuts_work_unless_text_is_typed(page: Any):
    """Space plays after a tick box was clicked, Ctrl Z undoes after a number was typed, Enter gives the keyboard back."""
    box = page.tab.get_by_label("ask for pitch")
    box.check()
    page.wait_for_marks("marks[0].parts[2]")
    page.press("Space")
    page.wait_for_now("now.playing")
    assert box.is_checked()
    page.press("Space")
    page.wait_for_now("!now.playing")
    page.press("Control+z")
    page.wait_for_marks("!marks[0].parts[2]")
    page.press("?")
    page.tab.locator("#ks-help[open]").wait_for()
    page.press("k")  # the list has the keyboard
    page.press("Escape")
    page.tab.locator("#ks-help[open]").wait_for(state="detached")
    assert len(page.script()["marks"]) == 2
    page.press("k")
    page.wait_for_marks("marks.length === 3")


def test_several_marks_are_selected_copied_and_deleted(page: Any):
    page.press("Control+a")
    page.wait_for_script("script.selection.length === 2")
    page.press("Control+c")
    page.seek(2.0)
    page.press("Control+v")
    page.wait_for_marks("marks.length === 4")
    assert page.script()["selection"] == [3, 4]
    page.tab.locator('.ks-mark[data-key="1"] .gem').click(modifiers=["Shift"])
    page.wait_for_script("script.selection.length === 3")
    page.press("Delete")
    page.wait_for_marks("marks.length === 1")
    page.press("Control+z")
    page.wait_for_marks("marks.length === 4")


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
