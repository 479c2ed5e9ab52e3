"""A long play with an edit every second: is the pace held, and does memory stay?"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from keystride.benchmarks.browser import find_browser, launched
from keystride.keyframes.script import Keyframe
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import Document
from keystride.studio.editor import Editor
from keystride.studio.server import Opening, Studio
from keystride.studio.session import Session

WARM_UP = 5.0  # s of play before pace and memory are first read
PAGE = {"width": 480, "height": 420}  # small: it is drawn in software, on the same processor


@dataclass(frozen=True)
class Soak:
    seconds: float
    edits: int
    steps: int
    due: float
    memory: tuple[float, float]  # MB of this process, after warming up and at the end

    def __str__(self) -> str:
        start, end = self.memory
        return (
            f"{self.seconds:.0f} s of play with {self.edits} edits: "
            f"{self.steps} control steps done of {self.due:.0f} due, ratio {self.steps / max(self.due, 1.0):.3f}; "
            f"memory {start:.0f} MB after warming up, {end:.0f} MB at the end"
        )


def soak(opening: Opening, seconds: float) -> Soak:
    """The whole studio, watched by a browser. RuntimeError where there is none."""
    browser = find_browser()
    if browser is None:
        raise RuntimeError("a soak needs Chromium and Playwright: pip install playwright, and a chromium in the path")
    studio = Studio(
        opening if opening.read().draft.keys else replace(opening, document=Document(walk())), "127.0.0.1", 0
    )
    try:
        with launched(browser) as driver:
            page = driver.new_page(viewport=PAGE)
            page.goto(studio.url)
            page.wait_for_selector("#ks-dock", timeout=120_000)
            return _play(studio.sessions[0], seconds, page.wait_for_timeout)
    finally:
        studio.stop()


def walk() -> Draft:
    """Something to play: half a metre a second."""
    draft = Draft()
    for i in range(1, 5):
        draft = drafts.add(draft, Keyframe(time=float(i), position=(0.5 * i, 0.1 * i, 0.32)))
    return draft


def _play(session: Session, seconds: float, wait: Callable[[float], None]) -> Soak:
    editor = session.editor
    session.post(lambda: _start(editor))
    wait(1000 * WARM_UP)
    began, steps, due, memory = time.perf_counter(), editor.clock.given, editor.clock.asked, resident_megabytes()
    edits = 0
    while time.perf_counter() - began < seconds:
        session.post(lambda number=edits: _edit(editor, number))
        edits += 1
        wait(1000)
    elapsed = time.perf_counter() - began
    return Soak(elapsed, edits, editor.clock.given - steps, editor.clock.asked - due, (memory, resident_megabytes()))


def _start(editor: Editor) -> None:
    editor.loop = True
    if not editor.playing:
        editor.toggle(time.perf_counter())


def _edit(editor: Editor, number: int) -> None:
    """Add, move and remove in turn; now and then take it all back."""
    now = time.perf_counter()
    actions = (
        lambda: editor.add(editor.draft.end + 0.6, now),
        lambda: editor.nudge(5, now),
        lambda: editor.undo(now),
        lambda: editor.redo(now),
        lambda: editor.delete(now),
    )
    actions[number % len(actions)]()


def resident_megabytes() -> float:
    """Of this process; Linux tells it in pages."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6
