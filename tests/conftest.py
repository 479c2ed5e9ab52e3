import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from pytest import TerminalReporter  # noqa: PT013

from keystride.commands.main import choose_graphics

# No asserted times: a busy machine is not a failure. Derandomised: a run that failed fails again.
settings.register_profile("keystride", deadline=None, derandomize=True)
settings.load_profile("keystride")

choose_graphics()

# Started in the background or by nohup, tests would ignore these signals, and so would every process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)

SYSTEM_PACKAGES = {  # what a reason for skipping says, and the command that installs what is missing
    "Chromium": "apt install chromium, or: playwright install --with-deps chromium",
    "nothing to draw with": "apt install libegl1 libgl1",
}


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say in one line how many tests were skipped for want of a system package, and how to install it."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for words, command in SYSTEM_PACKAGES.items():
        count = sum(words in reason for reason in skipped)
        if count:
            terminalreporter.write_line(f"{count} tests skipped for a missing system package: {command}", yellow=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests: Playwright's synchronous API has room for one in a process."""
    from keystride.benchmarks.browser import find_browser, headless_browser

    executable = find_browser()
    if executable is None:
        pytest.skip("needs Chromium and Playwright")
    with headless_browser(executable) as browser:
        yield browser
