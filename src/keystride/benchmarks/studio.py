"""`keystride benchmark studio`: measure the latency, forecasts and simulations of the studio, and its load in a long session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.keyframes.script import Script
    from keystride.robot.description import Robot
    from keystride.studio.editor import Editor
    from keystride.studio.server import Studio
    from keystride.studio.session import StudioSession

WARM_UP_SECONDS = 5.0  # s of playback before pace, memory and CPU are measured
KEY_PRESSES = 40
PAGE_SIZE = {"width": 900, "height": 600}
COARSE = 0.12  # device pixels per CSS pixel: software rendering is slow and not what is measured
START_TIMEOUT = 600.0  # s
SPACINGS = {
    "": 1.0,
    "waypoints ": 1.4,
}  # s between the keyframes; the second is more than in training, and is filled in

# Registered before the page's own listener, which stops the propagation of the keys it handles.
NOTE_KEYS = "window.addEventListener('keydown', (event) => { window.keystrideKey = event.timeStamp; }, true);"
# From the key event to the frame in which the timeline shows the result, in ms.
KEY_TO_PICTURE = """() => {
  const active = () => document.querySelector(".ks-mark.primary")?.dataset.key, before = active();
  window.keystrideMs = null;
  const observer = new MutationObserver(() => {
    if (active() === before) return;
    observer.disconnect();
    requestAnimationFrame(() => { window.keystrideMs = performance.now() - window.keystrideKey; });
  });
  observer.observe(document.getElementById("ks-view"), { subtree: true, attributes: true, childList: true });
}"""

SENTENCES = {
    "key": "key to picture: {median_ms:.0f} ms, 95th percentile {p95_ms:.0f} ms",
    "play": "{seconds:.0f} s of playing with {edits} edits: {pace:.3f} of the control steps in time; server memory "
    "{start_mb:.0f} MB after warm-up, {end_mb:.0f} MB at the end; server CPU {cpu:.2f} cores; "
    "forecast process {forecast_mb:.0f} MB, {forecast_cpu:.2f} cores",
    "simulation": "simulation of {0} keyframes{1}: {whole:.2f} s ({whole_cpu:.2f} s CPU); "
    "after editing the last one: {after_edit:.2f} s ({after_edit_cpu:.2f} s CPU)",
    "forecast": "forecast of {0} keyframes{1}: first answer after {first:.1f} s, last after {whole:.1f} s; "
    "after editing the last keyframe {first_after_edit:.1f} s and {whole_after_edit:.1f} s",
}


@dataclass(frozen=True)
class BenchmarkStudio:
    """Measure the studio in headless Chromium: key press to display, forecasts, simulation after an edit, and a long session."""

    policy: str = "go2-pose"
    """Name of a built-in policy, a bundle folder, an ONNX file or a training run."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    keyframes: tuple[int, ...] = (10, 60)
    """Numbers of keyframes of the scripts to forecast and simulate."""
    seconds: float = 600.0
    """Duration of the long session, with an edit every second. 0 skips it."""
    output: Path | None = None
    """JSON file to write each figure to as soon as it is measured. Figures that it already contains are not measured again."""
    json: bool = False
    """Print JSON instead of text."""

    def run(self) -> int:
        import json

        from keystride.files import write_atomically
        from keystride.policy.bundle import PolicyError
        from keystride.robot.catalogue import load_robot

        if not self.keyframes or min(self.keyframes) < 1:
            raise UserError("--keyframes needs at least one number, each at least 1, such as 10 60")
        robot, found = load_robot(self.robot), self._earlier()
        try:
            for name, measurement in measurements(robot, self.policy, self.keyframes, self.seconds).items():
                if name not in found:
                    found[name] = measurement()
                    if self.output is not None:
                        write_atomically(self.output, json.dumps(found, indent=2))
                if not self.json:
                    kind, *middle, last = name.split(" ") if " " in name else (name, "")
                    filled = " with waypoints between them" if middle else ""
                    print(SENTENCES[kind].format(last, filled, **found[name]), flush=True)
        except (PolicyError, RuntimeError) as error:
            raise UserError(str(error)) from error
        except KeyError as error:
            raise UserError(f"{self.output} was written by another version of this benchmark: no {error}") from error
        if self.json:
            print(json.dumps(found, indent=2))
        return 0

    def _earlier(self) -> dict[str, Any]:
        """Return the figures in the output file, which must have been measured with the same settings."""
        import json

        settings = {"policy": self.policy, "robot": self.robot, "seconds": self.seconds}
        if self.output is None or not self.output.exists():
            return settings
        try:
            found = json.loads(self.output.read_text(encoding="utf-8"))
            if {name: found.get(name) for name in settings} == settings:
                return found
        except (AttributeError, ValueError, OSError) as error:
            raise UserError(f"{self.output} does not contain figures of this benchmark: {error}") from error
        raise UserError(f"{self.output} contains figures measured with other settings; choose another file")


@dataclass(frozen=True)
class ForecastTimes:
    """Seconds from the request to the first answer, from 64 rollouts, and to the last, from 256."""

    first: float
    whole: float
    first_after_edit: float  # of the last keyframe
    whole_after_edit: float


@dataclass(frozen=True)
class SimulationTimes:
    """Seconds until the simulation reaches the end of the script, and the CPU seconds it takes on one core."""

    whole: float
    whole_cpu: float
    after_edit: float  # of the last keyframe
    after_edit_cpu: float


@dataclass(frozen=True)
class LongPlay:
    """Playing in a loop with an edit every second, with a browser connected."""

    seconds: float
    edits: int
    pace: float  # control steps done divided by control steps due
    start_mb: float  # memory of the server after warm-up
    end_mb: float
    cpu: float  # of the server, in cores
    forecast_mb: float  # memory of the forecast process at the end
    forecast_cpu: float  # cores


def measurements(
    robot: Robot, policy: str, keyframes: tuple[int, ...], seconds: float
) -> dict[str, Callable[[], dict[str, float]]]:
    """Return the measurements by name; raise RuntimeError if there is no browser."""
    from keystride.benchmarks.browser import find_browser

    browser = find_browser()
    if browser is None:
        raise RuntimeError("this benchmark needs Playwright (pip install playwright) and Chromium in the PATH")
    short = walk(min(keyframes))
    found: dict[str, Callable[[], dict[str, float]]] = {"key": lambda: time_keys(browser, robot, policy, short)}
    if seconds > 0:
        found["play"] = lambda: asdict(play_long(browser, robot, policy, short, seconds))
    for kind, measure in (("simulation", time_simulation), ("forecast", time_forecasts)):
        for filled, spacing in SPACINGS.items():
            for count in keyframes:
                script = walk(count, spacing)
                found[f"{kind} {filled}{count}"] = lambda measure=measure, script=script: asdict(
                    measure(robot, policy, script)
                )
    return found


def walk(keyframes: int, spacing: float = 1.0) -> Script:
    """Return a gentle walk on a wide circle; the spacing of the keyframes is in seconds."""
    from math import cos, degrees, sin

    from keystride.keyframes.script import Keyframe, Script

    radius, turn = 2.0, 0.15  # m, rad per keyframe
    found = []
    for number in range(1, keyframes + 1):
        angle = turn * number
        place = (round(radius * sin(angle), 3), round(radius * (1 - cos(angle)), 3))
        yaw = (degrees(angle) + 180.0) % 360.0 - 180.0
        found.append(Keyframe(time=round(spacing * number, 2), position=place, yaw=round(yaw, 1)))
    return Script(keyframes=tuple(found))


def edited(script: Script) -> Script:
    """Return the script with its last keyframe moved a little to the side."""
    *others, last = script.keyframes
    x, y = (last.position or (0.0, 0.0))[:2]
    return script.model_copy(update={"keyframes": (*others, last.model_copy(update={"position": (x, y + 0.05)}))})


def time_forecasts(robot: Robot, policy: str, script: Script) -> ForecastTimes:
    """Measure forecasts in their own process, after it has loaded the policy."""
    import queue

    from keystride.studio.editor import DEFAULT_FRICTION
    from keystride.studio.playback.forecast import BATCHES, ROUND, Chances, Question
    from keystride.studio.playback.forecast_process import Forecaster

    answers: queue.Queue[tuple[Question, Chances]] = queue.Queue()
    forecaster = Forecaster(lambda question, chances: answers.put((question, chances)))

    def ask(asked: Script) -> tuple[float, float]:
        question, began, first = Question(robot, asked, policy, DEFAULT_FRICTION), time.perf_counter(), 0.0
        forecaster.ask(question)
        while True:
            try:
                answered, chances = answers.get(timeout=START_TIMEOUT)
            except queue.Empty:
                raise RuntimeError(f"the forecast did not answer within {START_TIMEOUT:.0f} s") from None
            if answered is question:
                first = first or time.perf_counter() - began
                if chances.rollouts == ROUND * BATCHES:
                    return round(first, 3), round(time.perf_counter() - began, 3)

    try:
        ask(walk(1))
        return ForecastTimes(*ask(script), *ask(edited(script)))
    finally:
        forecaster.close()


def time_simulation(robot: Robot, policy: str, script: Script) -> SimulationTimes:
    """Measure the simulation of a script, and again after an edit of its last keyframe."""
    from keystride.studio.document.draft import from_script
    from keystride.studio.document.history import Document
    from keystride.studio.editor import Editor
    from keystride.studio.playback import controllers

    editor = Editor(Document(from_script(script, robot)))
    editor.set_controller(controllers.load_controller(policy, robot), policy)

    def catch_up() -> tuple[float, float]:
        began, cpu = time.perf_counter(), time.process_time()
        editor.seek(script.keyframes[-1].time)
        while editor.simulating:
            editor.tick(time.perf_counter())
            if not editor.player.waiting:
                time.sleep(0.01)  # the edit has not settled yet
        return round(time.perf_counter() - began, 3), round(time.process_time() - cpu, 3)

    whole = catch_up()
    changed = from_script(edited(script), robot)
    editor.edit(lambda _: changed, time.perf_counter())
    return SimulationTimes(*whole, *catch_up())


@contextmanager
def studio_page(browser: str, robot: Robot, policy: str, script: Script) -> Iterator[tuple[Studio, Any]]:
    """Provide a studio server in this process and a page in a browser that is connected to it."""
    from keystride.benchmarks.browser import headless_browser
    from keystride.studio.document.draft import from_script
    from keystride.studio.document.history import UNTITLED, Document
    from keystride.studio.server import Opening, Studio

    with TemporaryDirectory() as folder:
        document = Document(from_script(script, robot))
        studio = Studio(Opening(UNTITLED, Path(folder), robot, policy, document=document), "127.0.0.1", 0)
        try:
            with headless_browser(browser) as driver:
                page = driver.new_page(viewport=PAGE_SIZE, device_scale_factor=COARSE)
                page.set_default_timeout(1000 * START_TIMEOUT)
                page.add_init_script(NOTE_KEYS)
                page.goto(studio.url)
                page.wait_for_function("document.querySelectorAll('.ks-mark').length > 0")
                yield studio, page
        finally:
            studio.stop()


def time_keys(browser: str, robot: Robot, policy: str, script: Script) -> dict[str, float]:
    """Measure the time from a key press to its effect on the screen."""
    import numpy as np

    with studio_page(browser, robot, policy, script) as (_, page):
        delays = [key_to_picture(page, "ArrowUp" if press % 2 else "ArrowDown") for press in range(KEY_PRESSES)]
    middle, slow = np.percentile(delays, [50, 95]).round(1).tolist()
    return {"median_ms": middle, "p95_ms": slow}


def play_long(browser: str, robot: Robot, policy: str, script: Script, seconds: float) -> LongPlay:
    with studio_page(browser, robot, policy, script) as (studio, page):
        return long_play(studio.sessions[0], seconds, page.wait_for_timeout)


def key_to_picture(page: Any, key: str) -> float:
    """Press a key that selects another keyframe, and return the milliseconds until it is displayed."""
    page.evaluate(KEY_TO_PICTURE)
    page.keyboard.press(key)
    page.wait_for_function("window.keystrideMs !== null", polling=20)
    return float(page.evaluate("window.keystrideMs"))


def long_play(session: StudioSession, seconds: float, wait: Callable[[float], None]) -> LongPlay:
    """Play in a loop with an edit every second; `wait` takes milliseconds."""
    editor = session.editor
    session.post(lambda: _start(editor))
    wait(1000 * WARM_UP_SECONDS)
    forecast = session.forecast_process
    began, steps, due = time.perf_counter(), editor.clock.given, editor.clock.asked
    cpu, forecast_cpu = time.process_time(), cpu_seconds(forecast)
    memory, edits = resident_megabytes(), 0
    while time.perf_counter() - began < seconds:
        session.post(lambda number=edits: _edit(editor, number))
        edits += 1
        wait(1000)
    elapsed = time.perf_counter() - began
    return LongPlay(
        round(elapsed, 1),
        edits,
        round((editor.clock.given - steps) / max(editor.clock.asked - due, 1.0), 3),
        memory,
        resident_megabytes(),
        round((time.process_time() - cpu) / elapsed, 2),
        resident_megabytes(forecast),
        round((cpu_seconds(forecast) - forecast_cpu) / elapsed, 2),
    )


def resident_megabytes(process: int | str | None = "self") -> float:
    """Return the resident memory of a process (Linux only); 0 if there is none."""
    if process is None:
        return 0.0
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def cpu_seconds(process: int | None) -> float:
    """Return the CPU time that a process has used (Linux only); 0 if there is none."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _start(editor: Editor) -> None:
    editor.loop = True
    if not editor.playing:
        editor.toggle(time.perf_counter())


def _edit(editor: Editor, number: int) -> None:
    """Add, move, undo, redo and delete in turn."""
    now = time.perf_counter()
    actions = (
        lambda: editor.add(editor.draft.end + 0.6, now),
        lambda: editor.nudge(5, now),
        lambda: editor.undo(now),
        lambda: editor.redo(now),
        lambda: editor.delete(now),
    )
    actions[number % len(actions)]()
