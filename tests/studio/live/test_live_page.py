"""From the page to the simulated robot over DDS on the loopback interface, and every way in which it is stopped.

The robot of the last step is `deploy sim` too, in a process of its own: it records what it was told after the studio
and its deployment are gone.
"""

import io
import re
import signal
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")

from keystride.benchmarks.browser import HIDE_NOTIFICATIONS
from keystride.deploy.fault_checks import DeployState
from keystride.deploy.log.flight import Flight, read_log
from keystride.deploy.selftest.faults import Disturb
from keystride.deploy.selftest.processes import ROBOT_UP, START, RobotProcess, free_port, reserved_domain
from keystride.deploy.selftest.runner import Truth
from keystride.policy.bundle import known
from keystride.studio.live.live_run import TAKES

POLICY = known()[0] if known() else "STUB-TROT"
WALK = """version: 2
stage:
  audience: [[3.0, -1.0], [3.0, 1.0]]
keyframes:
  - time: 1.0
    position: [0.4, 0.0]
  - time: 2.0
    position: [0.8, 0.0]
"""
SLOW = "version: 1\nkeyframes:\n  - {time: 60.0, position: [0.8, 0.0]}\n"
ATTEMPTS = 8  # a machine that keeps a process waiting ends a run by the watchdogs, as it should
KEPT_WAITING = 30.0  # ms
ROBOT_PIXELS = 20  # a robot that is drawn takes several times as many; its path is drawn only afterwards
DAMPING = list(DeployState).index(DeployState.DAMPING)


class Robot:
    """A simulated robot that stands for the real one."""

    def __init__(self, record: Path, domain: int) -> None:
        self._record = record
        self._process: RobotProcess | None = None
        self._domain, self._port = domain, free_port()
        self.options = ("--interface", "lo", "--domain", str(self._domain), "--pose", f"udp://127.0.0.1:{self._port}")

    def stand_up(self) -> None:
        """Put another one in its place: one that was stopped in mid stride may lie on its side."""
        self.close()
        self._process = RobotProcess((), self._domain, self._port, self._record)
        assert self._process.output.marks[ROBOT_UP].wait(START)

    def ignore_commands(self) -> None:
        assert self._process is not None
        self._process.disturb(Disturb("deaf"))

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def truth(self) -> Truth:
        """What it really did, and was told to do, until now."""
        self.close()
        return Truth.read(self._record)


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[Robot]:
    with reserved_domain() as domain:
        robot = Robot(tmp_path / "record.npz", domain)
        yield robot
        robot.close()


@pytest.fixture
def server(make_server: Any, robot: Robot, tmp_path: Path) -> Iterator[Any]:
    folder = tmp_path / "scripts"
    folder.mkdir()
    server = make_server(folder, WALK, POLICY, robot.options)
    yield server
    if server.process.poll() is None:
        server.stop()


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
        fail_unless_late(page)
    pytest.fail(page.tab.locator(".ks-live-state").inner_text())


def fail_unless_late(page: Any) -> None:
    """A run that was stopped shows something only if no process was kept waiting meanwhile."""
    text = page.tab.locator(".ks-live-state").inner_text()
    late = [float(ms) for ms in re.findall(r"([0-9.]+) ms late", text)]
    assert max(late, default=0.0) >= KEPT_WAITING, text


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


def button(name: str) -> str:
    return f"[...document.querySelectorAll('button')].find((b) => b.textContent.includes('{name}'))"


def is_enabled(name: str) -> str:
    return f"!{button(name)}.disabled"


def walks(page: Any, robot: Robot) -> None:
    """The robot, from the checklist to its first steps."""
    for _ in range(ATTEMPTS):
        page.wait_until(is_enabled("3. Robot"))
        robot.stand_up()
        step_button(page, "3. Robot").click()
        page.tab.locator("#ks-question button", has_text="All checked").click()
        live(page, "live.running")
        status = live(page, "live.state === 'ready' || !live.running")
        assert (status["step"], status["battery"]) == ("robot", 90 if status["running"] else None)
        press_start = f"{button('Start the script')}.click()"  # it may be stopped before a mouse gets there
        if live(page, f"live.state === 'running' || !live.running || {press_start}")["running"]:
            return
        fail_unless_late(page)
    pytest.fail(page.tab.locator(".ks-live-state").inner_text())


def is_stopped_by(page: Any, server: Any, robot: Robot, stop: Callable[[], None]) -> bool:
    """Whether the robot, while it walks, goes to damping at once, by a key of the operator and for no other reason."""
    walks(page, robot)
    stop()
    events = [event for _, event in finished_log(takes(server)[-1]).events]
    return "running -> damping: emergency stop (key)" in events


def is_called_unknown(page: Any, robot: Robot) -> None:
    """A robot that does not obey any more is not left before its operator says that its power is off."""
    walks(page, robot)
    robot.ignore_commands()
    live(page, "live.unknown")
    alarm = page.tab.locator("#ks-stop .ks-unknown")
    assert "do not follow the brake commands" in alarm.inner_text()
    assert "Stay clear of it and cut its power" in alarm.inner_text()
    assert "cut its power" in page.tab.locator(".ks-live-state .ks-unknown").inner_text()
    page.press("Escape")  # the emergency stop does not give up
    alarm.get_by_role("button", name="stop braking").click()
    page.tab.locator("dialog#ks-question > div:last-child button", has_text="Go on braking").click()
    page.tab.locator("dialog#ks-question").wait_for(state="hidden")
    assert live(page, "live.running")["unknown"]
    alarm.get_by_role("button", name="stop braking").click()
    page.tab.locator("dialog#ks-question > div:last-child button", has_text="The power is off").click()
    live(page, "!live.running")
    assert "Nothing brakes it any more" in alarm.inner_text()  # still shown, until the operator has seen it
    assert not page.tab.locator("#ks-stop .stop").is_visible()
    alarm.get_by_role("button", name="The power is off").click()
    page.tab.locator("#ks-stop").wait_for(state="hidden")


def other_pages(open_page: Any, server: Any) -> Iterator[Any]:
    for _ in range(ATTEMPTS):
        page = open_page(server.url)
        page.open_panel("Live")
        yield page


def test_the_stop_bar_fits_a_phone(server: Any, open_page: Any):
    page = open_page(server.url, viewport={"width": 390, "height": 844})
    page.open_panel("Live")
    step_button(page, "1. Dry run").click()
    live(page, "live.running")
    bar = page.tab.locator("#ks-stop")
    bar.wait_for()
    box = bar.bounding_box()
    assert 350 < box["width"] <= 390  # two lines of text beside the button, not six
    assert bar.locator("span").inner_text().endswith("battery -")  # a dry run has none
    page.press("Escape")
    live(page, "!live.running")


def test_the_stop_bar_follows_a_dry_run(make_server: Any, open_page: Any, tmp_path: Path):
    server = make_server(tmp_path, SLOW, POLICY)
    page = open_page(server.url)
    page.open_panel("Live")
    step_button(page, "1. Dry run").click()
    text = page.tab.locator("#ks-stop span")
    text.filter(has_text="dry run: running · link - · poses - · battery -").wait_for()
    page.tab.locator(".ks-live-state", has_text="dry run: running").wait_for()
    assert step_button(page, "Stop and lie down").is_disabled()  # there is no robot that could
    page.press("?")
    page.tab.locator("#ks-help[open]").wait_for()
    page.tab.get_by_role("button", name="STOP", exact=True).click()  # also while a dialog lies over the page
    live(page, "!live.running")
    assert "stopped: emergency stop" in page.tab.locator(".ks-live-state").inner_text()
    server.check()
    server.stop()


def teal_pixels(page: Any) -> int:
    """Count the pixels of the scene that are about as green as blue, and much less red."""
    picture = PIL.Image.open(io.BytesIO(page.tab.locator("#root canvas").last.screenshot())).convert("RGB")
    red, green, blue = np.moveaxis(np.asarray(picture, dtype=int), -1, 0)
    return int(((np.minimum(green, blue) - red > 40) & (np.abs(green - blue) < 30)).sum())


def test_the_measured_pose_is_drawn_over_the_plan(server: Any, open_page: Any):
    page = open_page(server.url, drawn=True, device_scale_factor=0.3)
    page.tab.add_style_tag(content=HIDE_NOTIFICATIONS)
    page.open_panel("Stage")
    for part in ("keyframes", "trace"):  # the robots alone
        page.tab.get_by_label(part, exact=True).uncheck()
    page.open_panel("Live")
    passes(page, "1. Dry run")
    for _ in range(2):
        page.press("Control+ArrowRight")  # the simulated robot walks away from where the deployed one begins
    page.wait_for_now("now.head === 2 && !now.simulating")
    assert teal_pixels(page) == 0
    for _ in range(ATTEMPTS):
        step_button(page, "2. Simulated robot").click()
        live(page, "live.running")
        while live(page, "true")["running"]:
            if teal_pixels(page) > ROBOT_PIXELS:
                return
    pytest.fail("no ghost was drawn")


def test_the_way_to_the_robot_and_how_it_is_stopped(server: Any, open_page: Any, robot: Robot):
    page = open_page(server.url)
    page.open_panel("Live")
    assert step_button(page, "1. Dry run").is_enabled()
    assert step_button(page, "2. Simulated robot").is_disabled()
    assert step_button(page, "3. Robot").is_disabled()

    passes(page, "1. Dry run")
    assert step_button(page, "3. Robot").is_disabled()
    page.wait_for_marks("marks.length === 2 && marks.every((mark) => mark.odds !== null)")
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

    is_called_unknown(page, robot)
    assert any(is_stopped_by(page, server, robot, lambda: page.press("Escape")) for _ in range(ATTEMPTS))
    live(page, "!live.running")
    assert "stopped: emergency stop" in page.tab.locator(".ks-live-state").inner_text()
    assert any(is_stopped_by(page, server, robot, page.tab.locator("#ks-stop .stop").click) for _ in range(ATTEMPTS))
    assert any(
        is_stopped_by(page, server, robot, page.tab.close) for page in chain([page], other_pages(open_page, server))
    )

    page = next(other_pages(open_page, server))  # what was passed holds for all tabs of this studio
    walks(page, robot)
    server.check()
    server.stop(signal.SIGKILL)
    events = [event for _, event in finished_log(takes(server)[-1]).events]
    assert any("-> damping: emergency stop" in event for event in events)
    truth = robot.truth()
    stiff = np.flatnonzero(truth.heard_stiffness > 0.0)
    assert len(stiff)
    assert stiff[-1] < len(truth.time) - 1  # brakes were the last that it heard
