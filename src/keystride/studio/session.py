"""The session of one browser: its editor, scene and panels, and the thread in which all its work is done.

The callbacks of viser only queue actions, which the session's thread runs between two control steps. Nothing is shared
between threads, and sessions are independent of each other.
"""

import queue
import secrets
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import viser

from keystride.keyframes.document import ScriptError
from keystride.keyframes.goals import CONTROL_DT
from keystride.studio.document.keyframe_poses import ghosts
from keystride.studio.document.pose_library import PoseLibrary
from keystride.studio.editor import Editor, Gesture
from keystride.studio.live.live_run import LiveRun, Target
from keystride.studio.page.ghost_scene import Actions
from keystride.studio.page.handles import Move
from keystride.studio.page.page_channel import Choice, PageChannel
from keystride.studio.panels.files import FileCommands, FilesPanel
from keystride.studio.panels.keyframe import Edit, KeyframePanel, PoseCommands
from keystride.studio.panels.live import LiveCommands, LivePanel
from keystride.studio.panels.result import Exporter, ResultPanel
from keystride.studio.panels.stage import StageCommands, StagePanel
from keystride.studio.playback import controllers
from keystride.studio.playback.forecast import Chances, Question
from keystride.studio.playback.forecast_process import Forecaster
from keystride.studio.script_folder import ScriptFolder
from keystride.studio.unsaved_work import DraftsFolder, TabRestore, Work, dump, load_work
from keystride.studio.view import View

FRAME_SECONDS = CONTROL_DT  # s
MESSAGE_SECONDS = 6.0
SETTINGS_EVERY = 0.4  # s between two copies for the browser if only settings or the play head change
AUTOSAVE_EVERY = 2.0  # s
FOLDER_EVERY = 1.0  # s between two checks of the folder

Events = dict[str, Callable[[Any], None]]


class StudioSession:
    def __init__(
        self,
        client: viser.ClientHandle,
        editor: Editor,
        folder: ScriptFolder,
        policy: str,
        tabs: TabRestore | None = None,
        target: Target | None = None,
    ) -> None:
        self.editor = editor
        self._client = client
        self._tabs, self._tab, self._leave = tabs or TabRestore(), "", self.leave
        self._actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._greeted = False
        self._choice: Choice | None = None
        self._done_at: dict[str, float] = {}
        self._stored: tuple[Any, ...] = (None, 0, None)  # document, its revision, settings
        self._changed_on_disk = False
        self._events: Events = {}
        self._live_run = LiveRun(target or Target(), folder.folder)
        self._urgent = {"emergency": self._live_run.emergency, "page_alive": self._live_run.page_seen}
        self._channel = PageChannel(client, secrets.token_hex(8), self._on_event)
        self._view = View(client, editor.robot, self._channel, Actions(self._on_click, self._on_move))
        self._drafts = DraftsFolder(folder.folder, editor.robot)
        self._launched = [str(folder.folder), editor.name]  # what the server was started with
        self._add_panels(folder, policy)
        self._forecaster = Forecaster(self._on_forecast)
        self._events = self._event_table()
        self._view.greet()
        self._thread = threading.Thread(target=self._run, name=f"session {client.client_id}", daemon=True)
        self._thread.start()

    @property
    def forecast_process(self) -> int | None:
        """Identifier of the process that computes the forecast; None before the first forecast."""
        return self._forecaster.process

    def close(self) -> None:
        """End the session and keep its work in case the tab returns."""
        self._tabs.exit(self._tab, self._leave, self.leave())

    def leave(self) -> Work:
        """End the session and return its work. A running deployment is stopped, because nobody is watching it."""
        self._live_run.close()
        self._closed.set()
        self._forecaster.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._autosave()
        return Work(self.editor.document, self._settings() | {"head": self.editor.head})

    def _settings(self) -> dict[str, Any]:
        return self._stage.settings() | {"launched": self._launched}

    def post(self, action: Callable[[], None]) -> None:
        """Queue an action for the session's thread."""
        self._actions.put(action)

    def _add_panels(self, folder: ScriptFolder, policy: str) -> None:
        gui, editor, view = self._client.gui, self.editor, self._view
        tabs = gui.add_tab_group()
        with tabs.add_tab("Keyframe", viser.Icon.DIAMOND):
            self._keyframe = KeyframePanel(
                gui, editor.robot, self._on_edit, lambda name: self._on_event("save_pose", name)
            )
        with tabs.add_tab("Result", viser.Icon.CHART_LINE):
            self._results = ResultPanel(gui, lambda kind: self.post(lambda: self._export(kind)))
        with tabs.add_tab("Stage", viser.Icon.ADJUSTMENTS):
            stage = StagePanel(gui, controllers.choices(), self._on_event)
        with tabs.add_tab("Files", viser.Icon.FOLDER):
            files = FilesPanel(gui, self._on_event)
        with tabs.add_tab("Live", viser.Icon.ROBOT):
            live = LivePanel(gui, self._on_event, self._live_run.emergency)
        self._exporter = Exporter(self._client, self._results.set_busy)
        self._stage = StageCommands(gui, editor, view, stage, policy)
        self._files = FileCommands(editor, folder, self._drafts, files, self._ask)
        poses = PoseLibrary(folder.folder, editor.robot)
        self._poses = PoseCommands(editor, poses, view.figure, self._keyframe, self._ask)
        self._live = LiveCommands(self._live_run, editor, live, view.live_ghost, self._channel, self._ask)

    # The thread.

    def _run(self) -> None:
        due = time.perf_counter()
        try:
            while not self._closed.is_set():
                self._run_actions(due)
                due = max(due + FRAME_SECONDS, time.perf_counter())
                self._frame()
        except Exception:
            if not self._closed.is_set():  # viser's handles fail once their browser has left
                traceback.print_exc()

    def _frame(self) -> None:
        if not self._greeted:  # the page has not said yet which tab it is in, and its work may have to be restored
            return
        if self.editor.tick(time.perf_counter()):
            self._results.show(self.editor.recording)
        question = self.editor.question(time.perf_counter())
        if question is not None:
            self._forecaster.ask(question)
        if self._is_due("folder", FOLDER_EVERY):
            self._files.refresh(self._tabs.open_tabs)
            self._poses.refresh()
            self._changed_on_disk = self._files.changed_on_disk()
        self._store()
        self._live.frame()
        if self._keyframe.late():
            self._view.refresh()
        self._view.show(
            self.editor, self._keyframe.show, changed_on_disk=self._changed_on_disk, queued=self._forecaster.queued
        )

    def _store(self) -> None:
        """Send the browser a copy of the document, and autosave unsaved work.

        A new step of the history is sent before the page shows it, so that nothing that was visible can be lost. Changes
        within a step, such as during a drag, are stored with the message that shows them.
        """
        document, settings = self.editor.document, self._settings()
        step = (document, document.revision)
        if step != self._stored[:2] or (settings != self._stored[2] and self._is_due("settings", SETTINGS_EVERY)):
            self._stored = (*step, settings)
            self._channel.show("draft", {"draft": dump(document, settings)})
        if self._is_due("autosave", AUTOSAVE_EVERY):
            self._autosave()

    def _autosave(self) -> None:
        try:
            self._drafts.autosave(self._tab, self.editor.document)
        except OSError as error:  # the folder is not writable; the browser still has its copy
            self._files.report_autosave(error)

    def _is_due(self, name: str, every: float) -> bool:
        now = time.perf_counter()
        if now - self._done_at.get(name, -every) < every:
            return False
        self._done_at[name] = now
        return True

    def _run_actions(self, deadline: float) -> None:
        """Run queued actions until the next frame is due; only those already queued if the simulation has to catch up."""
        while True:
            wait = 0.0 if self.editor.player.waiting else deadline - time.perf_counter()
            try:
                action = self._actions.get(timeout=max(wait, 0.001))
            except queue.Empty:
                return
            self._do(action)
            if time.perf_counter() > deadline + FRAME_SECONDS:  # a flood of actions must not stop playback
                return

    def _do(self, action: Callable[[], None]) -> None:
        """Run an action; show mistakes of the user as a notification."""
        try:
            action()
        except ScriptError as error:
            self._keyframe.forget_touches()
            self._refuse([str(problem) for problem in error.problems])
        except (ValueError, OSError, ModuleNotFoundError) as error:
            self._refuse([str(error)])
        except Exception:  # a bug in the studio: log it and keep the session alive
            traceback.print_exc()

    def _refuse(self, lines: list[str]) -> None:
        self._view.refresh()
        text = "\n".join(lines)
        self._client.add_notification("Not possible", text, auto_close_seconds=MESSAGE_SECONDS, color="orange")

    def _hello(self, greeting: dict[str, Any]) -> None:
        """Restore the work of the tab that the page is in, from an earlier session or from what its browser stored."""
        if self._greeted:  # a page that lost its connection while loading may say hello twice
            return
        self._tab = str(greeting.get("tab", ""))[:64]
        work = self._tabs.enter(self._tab, self._leave)
        if work is None:
            work = self._stored_work(str(greeting.get("draft", "")), str(greeting.get("latest", "")))
        self._stage.set_light(bool(greeting.get("light")))  # the browser's preference, until the user chooses
        if work is not None:
            self.editor.restore(self._files.up_to_date(work.document), time.perf_counter())
            self._stage.apply(work.settings)
        if greeting.get("software"):
            self._stage.draw_less()
        if greeting.get("narrow"):
            self._view.scene.look_above_sheet()
        self._greeted = True

    def _stored_work(self, draft: str, latest: str) -> Work | None:
        """Return what the browser stored in this tab, if it continues what this server was started with.

        Unsaved work on anything else is put with the drafts: a server at the same address may have been started for
        another script.
        """
        work = load_work(draft, latest, self.editor.robot)
        if work is None:
            return None
        document = work.document
        launched = work.settings.get("launched")
        if launched == self._launched and (document.unsaved or document.name == self._launched[1]):
            return work
        if document.unsaved:
            self._drafts.write(f"{self._tab[:40]}-{secrets.token_hex(4)}", dump(document))
            text = f"The Files tab offers the unsaved work on {document.name} that this browser tab had."
            self._client.add_notification("Another script", text, color="blue")
        return None

    # What the page asks for.

    def _on_event(self, name: str, value: Any) -> None:
        urgent = self._urgent.get(name)  # bypasses the queue, because the session's thread may be busy
        if urgent is not None:
            urgent()
            return
        action = self._events.get(name)
        if action is not None:
            self.post(lambda: action(value))

    def _on_click(self, key: int) -> None:
        self.post(lambda: self._events["select"]([key]))

    def _on_edit(self, edit: Edit, gesture: str) -> None:
        self.post(lambda: self._edit(edit, gesture))

    def _on_move(self, move: Move | None) -> None:
        self.post(lambda: self._move(move))

    def _on_forecast(self, question: Question, chances: Chances) -> None:
        self.post(lambda: self.editor.answer(question, chances))

    def _ask(self, choice: Choice) -> None:
        self._choice = choice
        self._channel.show("question", {"text": choice.question, "buttons": list(choice.buttons)})

    def _answer(self, button: str) -> None:
        choice, self._choice = self._choice, None
        self._channel.show("question", {})
        if choice is not None and button in choice.buttons:
            choice.buttons[button]()
            self._done_at.pop("folder", None)  # show changes of files at once

    def _edit(self, edit: Edit, gesture: str) -> None:
        key = self.editor.selected
        if key is not None:
            whole = Gesture((gesture, key)) if gesture else None
            self.editor.edit(lambda draft: edit(draft, key), time.perf_counter(), whole)

    def _move(self, move: Move | None) -> None:
        """Drag a ghost or one of its handles; None ends the drag."""
        if move is None:
            self.editor.document.end_gesture()
            self._view.refresh()
        elif move.key in self.editor.draft.keys:
            edit = self._keyframe.moved(move)
            gesture = Gesture(("handle", move.key), held=True)
            self.editor.edit(lambda draft: edit(draft, move.key), time.perf_counter(), gesture)

    def _frame_ghost(self) -> None:
        """Move the camera to the ghost that was double-clicked."""
        key = self._view.clicked
        found = None if key is None else ghosts(self.editor.draft).get(key)
        if key is not None and found is not None:
            self.editor.select([key])
            self._stage.follow(False)
            self._view.scene.look_at(found.position)

    def _export(self, kind: str) -> None:
        if self.editor.recording is not None:
            self._exporter.start(kind, self.editor.recording)

    def _download(self, kind: Any) -> None:
        self._client.send_file_download(*self._files.download(str(kind)), save_immediately=True)

    def _event_table(self) -> Events:
        files = {
            name: self._then_refresh(action) for name, action in (self._files.events() | self._poses.events()).items()
        }
        own: Events = {
            "hello": self._hello,
            "answer": lambda button: self._answer(str(button)),
            "download": self._download,
            "frame": lambda _: self._frame_ghost(),
        }
        edits = {name: self._by_other_means(action) for name, action in _editor_events(self.editor).items()}
        return {**self._live.events(), **self._stage.events(), **files, **edits, **own}

    def _by_other_means(self, action: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the action; the panel, whose control the user may just have left, then shows its outcome at once."""

        def act(value: Any) -> None:
            self._keyframe.forget_touches()
            action(value)

        return act

    def _then_refresh(self, action: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the action followed by an immediate check of the folder."""

        def act(value: Any) -> None:
            action(value)
            self._done_at.pop("folder", None)

        return act


def _editor_events(editor: Editor) -> Events:
    clock = time.perf_counter
    return {
        "toggle": lambda _: editor.toggle(clock()),
        "restart": lambda _: editor.restart(),
        "loop": lambda _: setattr(editor, "loop", not editor.loop),
        "faster": lambda notches: editor.faster(int(notches)),
        "seek": lambda seconds: editor.seek(float(seconds)),
        "step": lambda steps: editor.step(int(steps)),
        "jump": lambda keyframes: editor.jump(int(keyframes)),
        "add": lambda seconds: editor.add(editor.head if seconds is None else float(seconds), clock()),
        "duplicate": lambda _: editor.duplicate(clock()),
        "copy": lambda _: editor.copy(),
        "cut": lambda _: editor.cut(clock()),
        "paste": lambda _: editor.paste(clock()),
        "delete": lambda _: editor.delete(clock()),
        "ripple": lambda _: editor.delete(clock(), ripple=True),
        "retime": lambda move: editor.retime(int(move[0]), float(move[1]), clock(), held=True),
        "scale": lambda scale: editor.scale_times(float(scale[0]), float(scale[1]), clock(), _times(scale[2])),
        "done": lambda _: editor.document.end_gesture(),
        "nudge": lambda steps: editor.nudge(int(steps), clock()),
        "select": lambda keys: editor.select(_keys(keys)),
        "toggle_selected": lambda key: editor.toggle_selected(int(key)),
        "select_all": lambda _: editor.select(editor.draft.keys),
        "next": lambda rows: editor.select_next(int(rows)),
        "extend": lambda rows: editor.select_next(int(rows), extend=True),
        "follow_tip": lambda tip: editor.follow_tip(int(tip[0]), str(tip[1]), clock()),
        "undo": lambda _: editor.undo(clock()),
        "redo": lambda _: editor.redo(clock()),
    }


def _keys(keys: Any) -> list[int]:
    return [int(key) for key in (keys if isinstance(keys, list) else [] if keys is None else [keys])]


def _times(times: Any) -> dict[int, float]:
    return {int(key): float(time) for key, time in dict(times).items()}
