"""The Result panel in a browser: errors and plots after a pass."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


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
    page.tab.locator("svg text", has_text="path from above").wait_for()
    page.seek(0.5)
    page.wait_for_now("Math.abs(now.head - 0.5) < 0.05")
    assert page.wait_for_marks("marks[1].state === 'active'")[0]["state"] == "met"
    with page.tab.expect_download() as download:
        page.tab.get_by_role("button", name="Replay").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")
