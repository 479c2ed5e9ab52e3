"""The Stage panel in a browser: friction, shoves and colours."""

from typing import Any


def test_friction_shoves_and_colours(page: Any):
    page.wait_for_marks("marks.every((mark) => mark.odds !== null)")
    page.open_panel("Stage")
    friction = page.tab.locator("xpath=//*[text()='ground friction']/ancestor::*[.//input][1]//input").last
    friction.fill("0.3")
    friction.press("Enter")
    page.wait_for_now("now.friction === 0.3")
    page.wait_for_script("!script.stale")  # forecast again for the other floor
    page.seek(0.5)
    page.wait_for_now("Math.abs(now.head - 0.5) < 0.05")
    page.tab.get_by_role("button", name="Shove the robot", exact=True).click()
    page.wait_for_now("now.shoves.length === 1 && Math.abs(now.shoves[0] - 0.5) < 0.05")
    assert not page.script()["unsaved"]  # trials are not part of the script
    page.tab.get_by_label("light colours").check()
    page.wait_until("document.documentElement.dataset.mantineColorScheme === 'light'")
