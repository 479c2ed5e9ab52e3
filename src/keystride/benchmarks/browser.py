"""A headless browser for tests and benchmarks: Chromium with software rendering, driven by Playwright.

`python -m keystride.benchmarks.browser SCRIPT POLICY FOLDER` takes the documentation's screenshots of the studio.
"""

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
SCREENSHOT_SIZE = {"width": 1440, "height": 900}
DRAW_TIMEOUT = 300_000  # ms; software rendering is slow
HIDE_NOTIFICATIONS = ".mantine-Notifications-root { display: none !important; }"
TIMELINE_MARKS = "JSON.parse(document.getElementById('ks-script')?.textContent || '{\"marks\":[]}').marks"
NOW = "JSON.parse(document.getElementById('ks-now').textContent)"


def find_browser() -> str | None:
    """Return the path of Chromium, or None if it or Playwright is missing."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return next((path for name in EXECUTABLES if (path := shutil.which(name))), None)


@contextmanager
def headless_browser(executable: str) -> Iterator[Any]:
    """Provide Playwright's browser, to open pages in."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def take_screenshots(script: Path, policy: str, folder: Path) -> None:
    """Take one screenshot while editing, with the forecast, and one after playing, with the errors."""
    from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot
    from keystride.studio.server import Studio, opening

    browser = find_browser()
    if browser is None:
        raise RuntimeError("screenshots need Chromium and Playwright")
    studio = Studio(opening(script, load_robot(DEFAULT_ROBOT), policy), "127.0.0.1", 0)
    try:
        with headless_browser(browser) as driver:
            page = driver.new_page(viewport=SCREENSHOT_SIZE, color_scheme="dark")
            page.set_default_timeout(DRAW_TIMEOUT)
            page.goto(studio.url)
            _edit(page, folder / "studio-edit.png")
            _play(page, folder / "studio-result.png")
    finally:
        studio.stop()


def _edit(page: Any, path: Path) -> None:
    page.wait_for_function(
        f"{TIMELINE_MARKS}.length > 0 && {TIMELINE_MARKS}.every((mark) => mark.odds !== null)", timeout=DRAW_TIMEOUT
    )
    page.add_style_tag(content=HIDE_NOTIFICATIONS)
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(15_000)
    page.screenshot(path=str(path))


def _play(page: Any, path: Path) -> None:
    page.keyboard.press("Space")
    page.wait_for_function(f"{NOW}.playing", timeout=DRAW_TIMEOUT)
    page.wait_for_function(f"!{NOW}.playing", timeout=DRAW_TIMEOUT)
    page.get_by_role("tab", name="Result").click()
    page.wait_for_timeout(15_000)
    page.screenshot(path=str(path))


if __name__ == "__main__":
    take_screenshots(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
