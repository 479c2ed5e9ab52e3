"""From the page to the simulated robot over DDS on the loopback interface, and every way in which it is stopped.

The robot of the last step is `deploy sim` too, in a process of its own: it records what it was told after the studio
and its deployment are gone.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")

from keystride.deploy.log.flight import Flight, read_log
from keystride.deploy.selftest.processes import ROBOT_UP, START, RobotProcess, free_port
from keystride.deploy.selftest.runner import Truth
from keystride.deploy.states import State
from keystride.policy.bundle import known
from keystride.studio.live.live_run import TAKES

POLICY = known()[0] if known() else "STUB-TROT"
WALK = """version: 2
stage:
  audience: [[3.0, -1.0], [3.0, 1.0]]
keyframes:
  - time: 1.0
    position: [0.4, 0.0]
  - time: 1.8
    position: [0.8, 0.0]
"""
ATTEMPTS = 3  # a machine that keeps a process waiting ends a run by the watchdogs, as it should
DAMPING = list(State).index(State.DAMPING)


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[Any]:
    """A simulated robot that stands for the real one, its DDS domain and the port of its poses."""
    domain, port = 20 + (os.getpid() * 31 + 57) % 200, free_port()
    process = RobotProcess((), domain, port, tmp_path / "record.npz")
    assert process.output.marks[ROBOT_UP].wait(START)
    process.options = ("--interface", "lo", "--domain", str(domain), "--pose", f"udp://127.0.0.1:{port}")
    yield process
    process.close()


def live(page: Any, condition: str) -> dict[str, Any]:
    """Wait until a JavaScript expression over `live` holds."""
    page.wait_until(f"((live) => {condition})(JSON.parse(document.getElementById('ks-live')?.textContent || '{{}}'))")
    return page.tab.evaluate("JSON.parse(document.getElementById('ks-live').textContent)")


def step_button(page: Any, name: str) -> Any:
    return page.tab.get_by_role("button", name=name)


def passes(page: Any, name: str) -> None:
    """Run a step until it has played the script to its end."""
    for _ in range(ATTEMPTS):
        step_button(page, name).click()
        live(page, "live.running")
        live(page, "!live.running")
        if "played to its end" in page.tab.locator(".ks-live-state").inner_text():
            return
    pytest.fail(page.tab.locator(".ks-live-state").inner_text())


def takes(server: Any) -> list[Path]:
    return sorted((server.folder / TAKES).glob("*/log"))


def finished_log(folder: Path) -> Flight:
    """The flight log, once its deployment has closed it: the parts are written every two seconds and at the end."""
    until = time.monotonic() + START
    while time.monotonic() < until:
        flight = read_log(folder) if any(folder.glob("part-*.npz")) else None
        if flight is not None and flight.rows["state"][-1] == DAMPING:
            return flight
        time.sleep(0.2)
    raise AssertionError(f"{folder} does not end in damping")


def is_enabled(name: str) -> str:
    return f"![...document.querySelectorAll('button')].find((b) => b.textContent.includes('{name}'))?.disabled"


def walks(page: Any) -> None:
    """The robot, from the checklist to its first steps."""
    for _ in range(ATTEMPTS):
        page.wait_until(is_enabled("3. Robot"))
        step_button(page, "3. Robot").click()
        page.tab.locator("#ks-question button", has_text="All checked").click()
        live(page, "live.running")
        status = live(page, "live.state === 'ready' || !live.running")
        if status["running"]:
            assert (status["step"], status["link"], status["battery"]) == ("robot", True, 90)
            page.wait_until(is_enabled("Start the script"))
            step_button(page, "Start the script").click()
            if live(page, "live.state === 'running' || !live.running")["running"]:
                return
    pytest.fail(page.tab.locator(".ks-live-state").inner_text())


def is_stopped_by(page: Any, server: Any, stop: Callable[[], None], cause: str) -> bool:
    """Whether the robot, while it walks, goes to damping at once, and for this cause."""
    walks(page)
    stop()
    return f"running -> damping: emergency stop ({cause})" in " ".join(
        event for _, event in finished_log(takes(server)[-1]).events
    )


def test_the_way_to_the_robot_and_how_it_is_stopped(make_server: Any, open_page: Any, robot: Any, tmp_path: Path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    server = make_server(folder, WALK, POLICY, robot.options)
    page = open_page(server.url)
    page.wait_for_marks("marks.length === 2 && marks.every((mark) => mark.odds !== null)")
    page.open_panel("Live")
    assert step_button(page, "1. Dry run").is_enabled()
    assert step_button(page, "2. Simulated robot").is_disabled()
    assert step_button(page, "3. Robot").is_disabled()

    passes(page, "1. Dry run")
    assert step_button(page, "3. Robot").is_disabled()
    passes(page, "2. Simulated robot")
    rows = page.tab.locator(".ks-take tr")
    assert rows.count() == 3  # headings and two keyframes, each with the error of the take and of the forecast
    assert rows.nth(1).inner_text().count("(") == 1
    assert page.tab.locator("#ks-stop.on").count() == 0

    page.open_panel("Keyframe")
    page.press("k")  # another script: the robot has not been shown to play this one
    page.wait_for_marks("marks.length === 3")
    page.open_panel("Live")
    page.wait_until(f"!({is_enabled('3. Robot')})")
    page.press("Control+z")
    page.wait_for_marks("marks.length === 2")

    assert any(is_stopped_by(page, server, lambda: page.press("Escape"), "key") for _ in range(ATTEMPTS))
    live(page, "!live.running")
    assert "stopped: emergency stop" in page.tab.locator(".ks-live-state").inner_text()
    stop = page.tab.locator("#ks-stop button")
    assert any(is_stopped_by(page, server, stop.click, "key") for _ in range(ATTEMPTS))

    walks(page)
    page.tab.close()
    assert any("-> damping: emergency stop (key)" in event for _, event in finished_log(takes(server)[-1]).events)

    page = open_page(server.url)  # what was passed holds for all tabs of this studio
    page.open_panel("Live")
    walks(page)
    server.check()
    server.stop(signal.SIGKILL)
    assert any("-> damping: emergency stop" in event for _, event in finished_log(takes(server)[-1]).events)
    robot.close()
    truth = Truth.read(tmp_path / "record.npz")
    stiff = np.flatnonzero(truth.heard_stiffness > 0.0)
    assert len(stiff)
    assert stiff[-1] < len(truth.time) - 1  # brakes were the last that it heard
