"""The studio as its users have it: the command in a process of its own, and pages of a real browser."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keystride.studio.browser import find_browser, launched

WINDOW = {"width": 900, "height": 600}
PATIENCE = 120_000  # ms: it draws in software, maybe on a busy machine

SCRIPT = """version: 1
keyframes:
  - time: 0.4
    position: [0.0, 0.0, 0.333]
    label: here
  - time: 0.8
    position: [0.8, 0.3]
"""


@dataclass(frozen=True)
class Served:
    url: str
    folder: Path
    log: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Whatever the tests of a module do, the server's log holds no traceback."""
    if find_browser() is None:
        pytest.skip("needs Chromium and Playwright")
    folder = tmp_path_factory.mktemp("scripts")
    script, log = folder / "start.yaml", folder / "server.log"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "keystride", "studio", str(script), "--headless", "--port", "0"]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "--policy", "stand still (no policy)"],
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    assert process.stdout is not None
    greeting = process.stdout.readline().decode()
    address = re.search(r"http://\S+", greeting)
    try:
        assert address, greeting + log.read_text()
        yield Served(address.group(), folder, log)
        assert process.poll() is None, "the server ended by itself"
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Any]:
    with launched(find_browser() or "") as browser:
        yield browser


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator["Page"]:
    context = browser.new_context(viewport=WINDOW, accept_downloads=True)
    opened = Page(context, served.url)
    yield opened
    assert opened.faults == []
    context.close()


class Page:
    """What an animator does, in a tab."""

    def __init__(self, context: Any, url: str) -> None:
        self.faults: list[str] = []
        self.tab = context.new_page()
        self.tab.set_default_timeout(PATIENCE)
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.goto(url)
        self.wait_until("document.querySelector('#ks-dock')")
        self.wait_until("document.querySelector('#ks-now')")

    def wait_until(self, condition: str) -> None:
        self.tab.wait_for_function(condition, timeout=PATIENCE)

    def script(self) -> dict[str, Any]:
        """What the session last said of the script."""
        return self.tab.evaluate("JSON.parse(document.getElementById('ks-script').textContent)")

    def wait_for_marks(self, condition: str) -> list[dict[str, Any]]:
        """Until a JavaScript expression over `marks` holds."""
        self.wait_until(f"((marks) => {condition})(JSON.parse(document.getElementById('ks-script').textContent).marks)")
        return self.script()["marks"]

    def wait_for_now(self, condition: str) -> None:
        """Until a JavaScript expression over `now` holds."""
        self.wait_until(f"((now) => {condition})(JSON.parse(document.getElementById('ks-now').textContent))")

    def press(self, key: str) -> None:
        self.tab.keyboard.press(key)

    def open_panel(self, name: str) -> None:
        self.tab.get_by_role("tab", name=name).click()

    def seek(self, seconds: float) -> None:
        """A click on the ruler; the page knows where a time is."""
        left, width = self.tab.evaluate(
            """() => { const rule = document.getElementById('ks-view').getBoundingClientRect();
                       return [rule.left, rule.width]; }"""
        )
        times = self.tab.evaluate(
            """() => [...document.querySelectorAll('.ks-tick.major')].map(
                 (tick) => [parseFloat(tick.textContent), parseFloat(tick.style.left)])"""
        )
        (t0, x0), (t1, x1) = times[0], times[-1]
        x = x0 + (seconds - t0) / (t1 - t0) * (x1 - x0)
        assert 0 < x < width
        top = self.tab.evaluate("document.getElementById('ks-ruler').getBoundingClientRect().top")
        self.tab.mouse.click(left + x, top + 8)
