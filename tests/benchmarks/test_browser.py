"""The browser that tests and benchmarks open pages in."""

from typing import Any

import pytest

from keystride.benchmarks.browser import find_browser


def test_without_a_browser_on_the_path_none_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    assert find_browser() is None


def test_pages_can_draw_in_3d(browser: Any):
    page = browser.new_page()
    page.set_content("<canvas></canvas>")
    assert page.evaluate("document.querySelector('canvas').getContext('webgl2') !== null")
    page.close()
