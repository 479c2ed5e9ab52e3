"""`keystride benchmark studio`: how fast the studio answers, forecasts and simulates again, and what a long session costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.keyframes.script import Script
    from keystride.studio.editor import Editor
    from keystride.studio.session import Session

WARM_UP = 5.0  # s of play before pace, memory and CPU are first read
KEY_PRESSES = 40
PAGE = {"width": 900, "height": 600}
COARSE = 0.12  # pixels per pixel of the layout: the scene is drawn in software, which is not what is measured
PATIENCE = 600.0  # s
SPACING = 1.0  # s between the keyframes of the scripts that are measured

# Before the page's own listener, which lets nobody else see the keys that it takes.
NOTE_KEYS = "window.addEventListener('keydown', (event) => { window.keystrideKey = event.timeStamp; }, true);"
# From the event of the key to the frame in which the timeline shows the answer of the session, in ms.
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
    "play": "{seconds:.0f} s of play with {edits} edits: {pace:.3f} of the control steps in time; memory of the server "
    "{start_mb:.0f} MB after warming up, {end_mb:.0f} MB at the end; CPU of the server {cpu:.2f} cores",
    "simulation": "simulation of {0} keyframes: {whole:.2f} s ({whole_cpu:.2f} s of CPU); "
    "again after an edit of the last one: {after_edit:.2f} s ({after_edit_cpu:.2f} s of CPU)",
    "forecast": "forecast of {0} keyframes: {first:.1f} s to the first answer, {whole:.1f} s to the last; "
    "after an edit of the last keyframe {first_after_edit:.1f} s and {whole_after_edit:.1f} s",
}


@dataclass(frozen=True)
class BenchmarkStudio:
    """Measure the studio in a headless Chromium: key to picture, forecasts, simulating again after an edit, a long play."""

    policy: str = "go2-pose"
    """Name of a shipped policy, an ONNX file, a bundle folder or a run."""
    keyframes: tuple[int, ...] = (10, 60)
    """Lengths of the scripts that are forecast and simulated again."""
    seconds: float = 600.0
    """Duration of the long play, with an edit every second; 0 leaves it out."""
    json: bool = False
    """Print JSON instead of sentences."""

    def run(self) -> int:
        from keystride.policy.metadata import PolicyError

        found: dict[str, Any] = {"policy": self.policy}
        try:
            for name, figures in measure(self.policy, self.keyframes, self.seconds):
                found[name] = figures
                if not self.json:
                    print(SENTENCES[name.split(" ")[0]].format(name.split(" ")[-1], **figures), flush=True)
        except (PolicyError, RuntimeError) as error:
            raise UserError(str(error)) from error
        if self.json:
            import json

            print(json.dumps(found, indent=2))
        return 0


@dataclass(frozen=True)
class ForecastTimes:
    """Seconds from the question to the first answer, of 64 roll-outs, and to the last one, of 256."""

    first: float
    whole: float
    first_after_edit: float  # of the last keyframe
    whole_after_edit: float


@dataclass(frozen=True)
class SimulationTimes:
    """Seconds until the play head, at the end of the script, shows what the script leads to; and of CPU, on one core."""

    whole: float
    whole_cpu: float
    after_edit: float  # of the last keyframe
    after_edit_cpu: float


@dataclass(frozen=True)
class LongPlay:
    """Looped play with an edit every second, watched by a browser."""

    seconds: float
    edits: int
    pace: float  # control steps done to control steps due
    start_mb: float  # memory of the server after warming up
    end_mb: float
    cpu: float  # of the server, in cores


def measure(policy: str, keyframes: tuple[int, ...], seconds: float) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield figures as they are measured. RuntimeError where there is no browser."""
    from keystride.benchmarks.browser import find_browser

    browser = find_browser()
    if browser is None:
        raise RuntimeError(
            "this benchmark needs Chromium and Playwright: pip install playwright, and chromium in the PATH"
        )
    yield from in_browser(browser, policy, walk(min(keyframes)), seconds)
    for count in keyframes:
        yield f"simulation {count}", asdict(time_simulation(policy, walk(count)))
    for count in keyframes:
        yield f"forecast {count}", asdict(time_forecasts(policy, walk(count)))


def walk(keyframes: int) -> Script:
    """A gentle walk on a wide circle, with a keyframe every second."""
    from math import cos, degrees, sin

    from keystride.keyframes.script import Keyframe, Script

    radius, turn = 2.0, 0.15  # m, rad per keyframe
    found = []
    for number in range(1, keyframes + 1):
        angle = turn * number
        place = (round(radius * sin(angle), 3), round(radius * (1 - cos(angle)), 3))
        yaw = (degrees(angle) + 180.0) % 360.0 - 180.0
        found.append(Keyframe(time=SPACING * number, position=place, yaw=round(yaw, 1)))
    return Script(keyframes=tuple(found))


def edited(script: Script) -> Script:
    """The last keyframe a little to the side."""
    *others, last = script.keyframes
    x, y = (last.position or (0.0, 0.0))[:2]
    return script.model_copy(update={"keyframes": (*others, last.model_copy(update={"position": (x, y + 0.05)}))})


def time_forecasts(policy: str, script: Script) -> ForecastTimes:
    """In the forecast's own process, which has loaded the policy already."""
    import queue

    from keystride.studio.editor import FRICTION
    from keystride.studio.playback.forecast import ROUND, ROUNDS, Chances, Question
    from keystride.studio.playback.forecast_process import Forecaster

    answers: queue.Queue[tuple[Question, Chances]] = queue.Queue()
    forecaster = Forecaster(lambda question, chances: answers.put((question, chances)))

    def ask(asked: Script) -> tuple[float, float]:
        question, began, first = Question(asked, policy, FRICTION), time.perf_counter(), 0.0
        forecaster.ask(question)
        while True:
            answered, chances = answers.get(timeout=PATIENCE)
            if answered is question:
                first = first or time.perf_counter() - began
                if chances.rollouts == ROUND * ROUNDS:
                    return round(first, 3), round(time.perf_counter() - began, 3)

    try:
        ask(walk(1))
        return ForecastTimes(*ask(script), *ask(edited(script)))
    finally:
        forecaster.close()


def time_simulation(policy: str, script: Script) -> SimulationTimes:
    from keystride.studio.document.draft import from_script
    from keystride.studio.document.history import Document
    from keystride.studio.editor import Editor
    from keystride.studio.playback import controllers

    editor = Editor(Document(from_script(script)))
    editor.set_controller(controllers.load(policy), policy)

    def catch_up() -> tuple[float, float]:
        began, cpu = time.perf_counter(), time.process_time()
        editor.seek(script.keyframes[-1].time)
        while editor.simulating:
            editor.tick(time.perf_counter())
            if not editor.player.waiting:
                time.sleep(0.01)  # the edit has not settled yet
        return round(time.perf_counter() - began, 3), round(time.process_time() - cpu, 3)

    whole = catch_up()
    changed = from_script(edited(script))
    editor.edit(lambda _: changed, time.perf_counter())
    return SimulationTimes(*whole, *catch_up())


def in_browser(browser: str, policy: str, script: Script, seconds: float) -> Iterator[tuple[str, dict[str, float]]]:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import numpy as np

    from keystride.benchmarks.browser import launched
    from keystride.studio.document.draft import from_script
    from keystride.studio.document.history import UNTITLED, Document
    from keystride.studio.server import Opening, Studio

    folder = TemporaryDirectory()
    opening = Opening(UNTITLED, Path(folder.name), policy, document=Document(from_script(script)))
    studio = Studio(opening, "127.0.0.1", 0)
    try:
        with folder, launched(browser) as driver:
            page = driver.new_page(viewport=PAGE, device_scale_factor=COARSE)
            page.set_default_timeout(1000 * PATIENCE)
            page.add_init_script(NOTE_KEYS)
            page.goto(studio.url)
            page.wait_for_function("document.querySelectorAll('.ks-mark').length > 1")
            delays = [key_to_picture(page, "ArrowUp" if press % 2 else "ArrowDown") for press in range(KEY_PRESSES)]
            middle, slow = np.percentile(delays, [50, 95]).round(1).tolist()
            yield "key", {"median_ms": middle, "p95_ms": slow}
            if seconds > 0:
                yield "play", asdict(long_play(studio.sessions[0], seconds, page.wait_for_timeout))
    finally:
        studio.stop()


def key_to_picture(page: Any, key: str) -> float:
    """Milliseconds. The key selects another keyframe."""
    page.evaluate(KEY_TO_PICTURE)
    page.keyboard.press(key)
    page.wait_for_function("window.keystrideMs !== null", polling=20)
    return float(page.evaluate("window.keystrideMs"))


def long_play(session: Session, seconds: float, wait: Callable[[float], None]) -> LongPlay:
    editor = session.editor
    session.post(lambda: _start(editor))
    wait(1000 * WARM_UP)
    began, steps, due, cpu = time.perf_counter(), editor.clock.given, editor.clock.asked, time.process_time()
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
    )


def resident_megabytes() -> float:
    """Of this process; Linux tells it in pages."""
    from pathlib import Path

    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)


def _start(editor: Editor) -> None:
    editor.loop = True
    if not editor.playing:
        editor.toggle(time.perf_counter())


def _edit(editor: Editor, number: int) -> None:
    """Add, move, take back, do again and delete in turn."""
    now = time.perf_counter()
    actions = (
        lambda: editor.add(editor.draft.end + 0.6, now),
        lambda: editor.nudge(5, now),
        lambda: editor.undo(now),
        lambda: editor.redo(now),
        lambda: editor.delete(now),
    )
    actions[number % len(actions)]()
