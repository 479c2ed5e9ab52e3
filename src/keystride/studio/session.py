"""One browser's session: its desk, its scene and panels, and the thread in which everything of it happens.

Callbacks of viser only leave a note; the thread reads the notes between two control steps. So nothing here is shared
between threads, and two browsers never meet.
"""

import queue
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import viser

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.problems import ScriptError
from keystride.studio import controllers, posing
from keystride.studio.desk import SPEEDS, Desk, Grip
from keystride.studio.draft import Draft
from keystride.studio.exporter import Exporter
from keystride.studio.files_panel import FilesPanel
from keystride.studio.filing import Filing
from keystride.studio.forecast import Chances, Question
from keystride.studio.forecaster import Forecaster
from keystride.studio.ghost_scene import Pull
from keystride.studio.keyframe_panel import Edit, KeyframePanel
from keystride.studio.reloads import Reloads, Work
from keystride.studio.result_panel import ResultPanel
from keystride.studio.shelf import Shelf
from keystride.studio.stage_panel import StagePanel
from keystride.studio.view import PARTS, View

FRAME = CONTROL_DT  # s
NEWS_SECONDS = 6.0


class Session:
    def __init__(
        self, client: viser.ClientHandle, desk: Desk, shelf: Shelf, policy: str, reloads: Reloads | None = None
    ) -> None:
        self.desk = desk
        self._reloads, self._tab = reloads or Reloads(), ""
        self._client = client
        self._notes: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._view = View(client, self._on_event, self._on_click, self._on_drag)
        self._add_panels(client.gui)
        self._shelf = shelf
        self._filing = Filing(desk, shelf, self._files)
        self._exporter = Exporter(client, self._results.set_busy)
        self._forecaster = Forecaster(self._on_forecast)
        self._events = self._event_table()
        self._files.show(shelf.names(), desk.name)
        self._load_policy(policy)
        self._thread = threading.Thread(target=self._run, name=f"session {client.client_id}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._forecaster.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._reloads.keep(self._tab, Work(self.desk.document, self.desk.name))

    def post(self, note: Callable[[], None]) -> None:
        """To be done in the session's thread, soon."""
        self._notes.put(note)

    def _add_panels(self, gui: viser.GuiApi) -> None:
        tabs = gui.add_tab_group()
        with tabs.add_tab("Keyframe", viser.Icon.DIAMOND):
            self._keyframe = KeyframePanel(gui, self._on_edit)
        with tabs.add_tab("Result", viser.Icon.CHART_LINE):
            self._results = ResultPanel(gui, lambda kind: self.post(lambda: self._export(kind)))
        with tabs.add_tab("Stage", viser.Icon.ADJUSTMENTS):
            self._stage = StagePanel(gui, controllers.choices(), self._on_event)
        with tabs.add_tab("Files", viser.Icon.FOLDER):
            self._files = FilesPanel(gui, self._on_event)

    # The thread.

    def _run(self) -> None:
        due = time.perf_counter()
        try:
            while not self._closed.is_set():
                self._read_notes(due)
                due = max(due + FRAME, time.perf_counter())
                self._frame()
        except Exception:
            if not self._closed.is_set():  # a browser that left takes its handles with it
                traceback.print_exc()

    def _frame(self) -> None:
        if self.desk.tick(time.perf_counter()):
            self._results.show(self.desk.recording)
        question = self.desk.question(time.perf_counter())
        if question is not None:
            self._forecaster.ask(question)
        self._view.show(self.desk, self._keyframe)

    def _read_notes(self, deadline: float) -> None:
        """Until the next frame is due, or at once while there is something to catch up with."""
        while True:
            wait = 0.0 if self.desk.player.waiting else deadline - time.perf_counter()
            try:
                note = self._notes.get(timeout=max(wait, 0.001))
            except queue.Empty:
                return
            self._do(note)
            if time.perf_counter() > deadline + FRAME:  # however much is asked, the robot goes on
                return

    def _do(self, note: Callable[[], None]) -> None:
        """A mistake of the user's becomes a message in the page."""
        try:
            note()
        except ScriptError as error:
            self._keyframe.forget_touches()
            self._tell("Not possible", [str(problem) for problem in error.problems])
        except (ValueError, OSError, ModuleNotFoundError) as error:
            self._tell("Not possible", [str(error)])
        except Exception:  # a fault of ours: it is logged, and the session lives on
            traceback.print_exc()

    def _tell(self, title: str, lines: list[str]) -> None:
        self._view.refresh()
        self._client.add_notification(title, "\n".join(lines), auto_close_seconds=NEWS_SECONDS, color="orange")

    # What the page asks for.

    def _on_event(self, name: str, value: Any) -> None:
        action = self._events.get(name)
        if action is not None:
            self.post(lambda: action(value))

    def _on_click(self, key: int) -> None:
        self.post(lambda: self.desk.document.select(key))

    def _on_edit(self, edit: Edit, gesture: str) -> None:
        self.post(lambda: self._edit(edit, gesture))

    def _on_drag(self, pull: Pull, phase: str) -> None:
        self.post(lambda: self._drag(pull, phase))

    def _on_forecast(self, question: Question, chances: Chances) -> None:
        self.post(lambda: self.desk.answer(question, chances))

    def _edit(self, edit: Edit, gesture: str, *, held: bool = False) -> None:
        key = self.desk.selected
        if key is not None:
            grip = Grip((gesture, key), held) if gesture else None
            self.desk.edit(lambda draft: edit(draft, key), time.perf_counter(), grip)

    def _drag(self, pull: Pull, phase: str) -> None:
        def edit(draft: Draft, key: int) -> Draft:
            if pull.ground is not None and pull.yaw is not None:
                draft = posing.drag(draft, key, pull.ground, pull.yaw)
            return draft if pull.height is None else posing.set_height(draft, key, pull.height)

        if phase == "update":
            self._edit(edit, "gizmo", held=True)
        else:
            self.desk.document.end_gesture()
            self._view.refresh()

    def _event_table(self) -> dict[str, Callable[[Any], None]]:
        desk, clock = self.desk, time.perf_counter
        return {
            "hello": lambda tab: self._hello(str(tab)),
            "toggle": lambda _: desk.toggle(clock()),
            "restart": lambda _: desk.restart(),
            "loop": lambda _: setattr(desk, "loop", not desk.loop),
            "speed": lambda speed: setattr(desk.pace, "speed", min(max(float(speed), SPEEDS[0]), SPEEDS[-1])),
            "faster": lambda notches: desk.faster(int(notches)),
            "seek": lambda seconds: desk.seek(float(seconds)),
            "step": lambda steps: desk.step(int(steps)),
            "add": lambda seconds: desk.add(desk.head if seconds is None else float(seconds), clock()),
            "duplicate": lambda _: desk.duplicate(clock()),
            "delete": lambda _: desk.delete(clock()),
            "retime": lambda move: desk.retime(int(move[0]), float(move[1]), clock(), held=True),
            "done": lambda _: desk.document.end_gesture(),
            "nudge": lambda steps: desk.nudge(int(steps), clock()),
            "select": lambda key: desk.document.select(None if key is None else int(key)),
            "next": lambda rows: desk.select_next(int(rows)),
            "undo": lambda _: desk.undo(clock()),
            "redo": lambda _: desk.redo(clock()),
            "shove": lambda _: self._shove(),
            "policy": lambda name: self._load_policy(str(name)),
            "friction": lambda friction: desk.set_friction(float(friction)),
            "follow": self._follow,
            "shadows": lambda on: self._view.scene.set_shadows(bool(on)),
            "software": lambda _: self._draw_less(),
            **{part: lambda on, part=part: self._view.set_visible(part, bool(on)) for part in PARTS},
            **self._filing_events(),
        }

    def _filing_events(self) -> dict[str, Callable[[Any], None]]:
        filing, clock = self._filing, time.perf_counter
        return {
            "open": lambda name: filing.open(str(name), clock()),
            "save": lambda name: filing.save(name or self._files.name),
            "upload": lambda file: filing.upload(file.name, file.content, clock()),
            "download": lambda kind: self._client.send_file_download(
                *filing.download(str(kind)), save_immediately=True
            ),
            "new": lambda _: filing.new(clock()),
        }

    def _send(self, name: str, content: bytes) -> None:
        self._client.send_file_download(name, content, save_immediately=True)

    def _hello(self, tab: str) -> None:
        """The page tells which tab of the browser it is in: after a reload it goes on where it was."""
        self._tab = tab
        work = self._reloads.take(tab)
        if work is not None:
            self.desk.document, self.desk.name = work.document, work.name
            self._files.show(self._shelf.names(), work.name)

    def _shove(self) -> None:
        pose = self.desk.player.pose()
        self.desk.shove(self._stage.shove(float(geometry.yaw_of(pose.orientation))))

    def _load_policy(self, name: str) -> None:
        try:
            controller = controllers.load(name.strip())
        except controllers.PolicyError as error:
            self._stage.show_policy(self.desk.policy, f"{name}: {error}")
            raise
        self.desk.set_controller(controller, name.strip())
        self._stage.show_policy(name.strip(), controllers.about(controller))

    def _follow(self, on: Any) -> None:
        self._view.scene.set_following(not self._view.scene.following if on is None else bool(on))
        self._stage.show_view(follow=self._view.scene.following)

    def _draw_less(self) -> None:
        """A browser without a graphics card."""
        self._view.scene.set_shadows(False)
        self._stage.show_view(shadows=False)

    def _export(self, kind: str) -> None:
        if self.desk.recording is not None:
            self._exporter.start(kind, self.desk.recording)
