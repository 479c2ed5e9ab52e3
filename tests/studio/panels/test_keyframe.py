"""The Keyframe panel in a browser: values, switches for components, and the library of poses."""

from typing import Any

import pytest


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_a_posture_is_set_and_the_components_are_ticked(page: Any):
    page.tab.get_by_label("ask for posture").check()
    page.wait_for_marks("marks[0].parts[4]")
    page.tab.get_by_label("posture", exact=True).click()
    page.tab.get_by_role("option", name="sit", exact=True).click()
    page.tab.get_by_label("ask for yaw").check()
    page.wait_for_marks("marks[0].parts[3]")
    page.tab.get_by_label("ask for x, y").uncheck()
    page.wait_for_marks("!marks[0].parts[0]")
    keyframe = page.saved()[0]
    assert keyframe.posture == "sit"
    assert keyframe.yaw == 0.0
    assert keyframe.position is None


def test_what_is_not_possible_is_told_and_not_done(page: Any):
    page.press("ArrowDown")
    page.tab.get_by_label("ask for x, y").click()
    page.tab.get_by_text("asks for nothing").wait_for()
    assert page.script()["marks"][1]["parts"][0]
    page.tab.wait_for_timeout(500)
    assert page.tab.get_by_label("ask for x, y").is_checked()


def test_a_pose_is_taken_from_the_library_and_an_own_one_is_added(page: Any, served: Any):
    page.tab.get_by_role("button", name="Pose sit", exact=True).click()
    page.wait_for_marks("marks[0].parts[4]")
    page.tab.locator("xpath=//*[text()='pose name']/ancestor::*[.//input][1]//input").last.fill("resting")
    page.tab.get_by_role("button", name="Save this pose").click()
    own = page.tab.get_by_role("button", name="Pose resting", exact=True)
    own.wait_for()
    page.tab.get_by_role("button", name="Save this pose").click()  # the same name again
    question = page.tab.get_by_role("dialog").filter(has_text="There is already a pose called resting")
    question.get_by_role("button", name="Cancel").click()
    page.press("ArrowDown")
    page.wait_for_script("script.selected === 2")
    own.click()
    page.wait_for_marks("marks[1].parts[4]")
    first, second = page.saved()
    assert first.posture == "sit"
    assert isinstance(second.posture, tuple)  # scripts have no name for it
    assert second.pitch is not None
    page.open_panel("Keyframe")
    page.tab.get_by_role("button", name="Delete the pose resting").click()
    page.tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
    own.wait_for(state="detached")


def number_field(page: Any, label: str) -> Any:
    return page.tab.locator(f"xpath=//*[text()='{label}']/ancestor::*[.//input][1]//input").last


def leave(page: Any, field: Any, key: str) -> None:
    """Press a key that takes the focus from a field."""
    page.press(key)
    field.evaluate(
        "async (field) => { while (document.activeElement === field) await new Promise(requestAnimationFrame); }"
    )


def test_undo_right_after_typing_also_shows_in_the_field(page: Any):
    field = number_field(page, "time (s)")
    field.fill("0.6")
    page.wait_for_marks("marks[0].time === 0.6")
    page.press("Control+z")
    page.wait_for_marks("marks[0].time === 0.4")
    page.tab.wait_for_timeout(300)
    assert field.input_value() == "0.4"
    field.fill("0.7")
    page.wait_for_marks("marks[0].time === 0.7")
    page.tab.locator('.ks-mark[data-key="2"]').click(position={"x": 0, "y": 44}, force=True)
    page.wait_for_script("script.selected === 2")
    page.tab.wait_for_timeout(300)
    assert field.input_value() == "0.8"


@pytest.mark.parametrize("label", ["time (s)", "x, y (m)", "z (m)", "yaw (°)"])
def test_a_number_field_that_is_left_empty_shows_its_value_again(page: Any, label: str):
    field = number_field(page, label)
    shown = field.input_value()
    for key in ("Enter", "Escape", "Tab"):
        field.fill("")
        assert field.input_value() == ""
        leave(page, field, key)
        page.tab.wait_for_timeout(100)
        assert field.input_value() == shown, key
    assert not page.script()["undo"]


def test_a_number_field_that_was_emptied_takes_what_is_typed(page: Any):
    field = number_field(page, "time (s)")
    field.fill("")
    page.tab.keyboard.insert_text("0.6")  # in one go: what is typed slowly is undone in several steps
    page.wait_for_marks("marks[0].time === 0.6")
    leave(page, field, "Enter")
    assert field.input_value() == "0.6"
    field.fill("")
    page.press("Control+z")  # while it is empty
    page.wait_for_marks("marks[0].time === 0.4")
    page.wait_until("document.activeElement.value === '0.4'")
    leave(page, field, "Enter")
    assert field.input_value() == "0.4"


def test_sliders_have_names_and_take_the_arrows_after_a_click(page: Any):
    page.wait_until("[...document.querySelectorAll('#root [role=slider]')].every((slider) => slider.ariaLabel)")
    page.tab.get_by_label("ask for yaw").check()
    page.wait_for_marks("marks[0].parts[3]")
    slider = page.tab.get_by_role("slider", name="yaw (°)")
    track = page.tab.locator(".mantine-Slider-root").filter(has=slider).bounding_box()
    page.tab.mouse.click(track["x"] + 0.75 * track["width"], track["y"] + track["height"] / 2)
    page.wait_until("document.activeElement.getAttribute('role') === 'slider'")
    page.tab.wait_for_timeout(300)
    before, head = float(slider.get_attribute("aria-valuenow")), page.now()["head"]
    page.press("ArrowRight")
    page.wait_until(f"Number(document.activeElement.getAttribute('aria-valuenow')) === {before + 0.5}")
    assert page.now()["head"] == head
    assert page.tab.get_by_label("time (s)", exact=True).count() == 1
    assert page.tab.get_by_label("y of x, y (m)", exact=True).count() == 1
    page.tab.locator("#ks-ruler").click(position={"x": 30, "y": 8})  # gives the keyboard back
    page.open_panel("Files")
    page.wait_until("document.querySelector('#root [aria-label=\"save as\"]')")
    assert page.tab.get_by_label("open", exact=True).count() == 1  # and not that of the upload as well
