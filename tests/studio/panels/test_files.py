"""The Files panel in a browser: save, open, download, and uploads with mistakes."""

from pathlib import Path
from typing import Any

import pytest

from keystride.keyframes.files import load_script


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_a_script_is_saved_opened_and_downloaded(served: Any, open_page: Any):
    page = open_page(served.url)
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
