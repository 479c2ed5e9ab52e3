"""One browser's session: its editor, its scene and panels, and the thread in which everything of it happens.

Callbacks of viser only queue an action; the thread runs the actions between two control steps. So nothing here is
shared between threads, and two browsers never meet.
"""

import queue
import secrets
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import viser

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.problems import ScriptError
from keystride.studio.document import storage
from keystride.studio.document.draft import from_script
from keystride.studio.document.history import Document
from keystride.studio.document.keyframe_poses import ghosts
from keystride.studio.document.pose_library import PoseLibrary
from keystride.studio.editor import SPEEDS, Editor, Gesture
from keystride.studio.export.exporter import Exporter
from keystride.studio.file_commands import Choice, FileCommands, PoseCommands
from keystride.studio.live.live_run import LiveRun, Target
from keystride.studio.live_commands import LiveCommands
from keystride.studio.page import palette
from keystride.studio.page.ghost_scene import Actions
from keystride.studio.page.handles import Move
from keystride.studio.page.page_channel import PageChannel
from keystride.studio.panels.files import FilesPanel
from keystride.studio.panels.keyframe import Edit, KeyframePanel
from keystride.studio.panels.live import LivePanel
from keystride.studio.panels.result import ResultPanel
from keystride.studio.panels.stage import StagePanel
from keystride.studio.playback import controllers
from keystride.studio.playback.forecast import Chances, Question
from keystride.studio.playback.forecast_process import Forecaster
from keystride.studio.script_folder import ScriptFolder
from keystride.studio.unsaved_work import DraftsFolder, TabRestore, Work
from keystride.studio.view import SCENE_PARTS, View

FRAME_SECONDS = CONTROL_DT  # s
MESSAGE_SECONDS = 6.0
SETTINGS_EVERY = 0.4  # s between two copies for the browser while only settings or the play head change
AUTOSAVE_EVERY = 2.0  # s
FOLDER_EVERY = 1.0  # s between two looks at the folder


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
        self._client, self._folder = client, folder
        self._tabs, self._tab, self._leave = tabs or TabRestore(), "", self.leave
        self._actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._greeted = False
        self._choice: Choice | None = None
        self._done_at: dict[str, float] = {}
        self._stored: tuple[Any, ...] = (None, 0, None)  # document, its revision, settings
        self._autosaved: Any = None
        self._changed_on_disk = self._light = False
        self._events: dict[str, Callable[[Any], None]] = {}
        self._live_run = LiveRun(target or Target(), folder.folder)
        self._urgent = {"emergency": self._live_run.emergency, "page_alive": self._live_run.page_seen}
        self._channel = PageChannel(client, secrets.token_hex(8), self._on_event)
        self._view = View(client, editor.robot, self._channel, Actions(self._on_click, self._on_frame, self._on_move))
        self._add_panels(client.gui)
        self._drafts = DraftsFolder(folder.folder, editor.robot)
        self._commands = FileCommands(editor, folder, self._drafts, self._files, self._ask)
        poses = PoseLibrary(folder.folder, editor.robot)
        self._poses = PoseCommands(editor, poses, self._view.figure, self._keyframe, self._ask)
        self._live = LiveCommands(
            self._live_run, editor, self._live_panel, self._view.live_ghost, self._channel, self._ask
        )
        self._exporter = Exporter(client, self._results.set_busy)
        self._forecaster = Forecaster(self._on_forecast)
        self._events = self._event_table()
        self._launch_policy = policy
        self._load_policy(policy)
        self._view.greet()
        self._thread = threading.Thread(target=self._run, name=f"session {client.client_id}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the session and keep its work for the tab, should it come back."""
        self._tabs.exit(self._tab, self._leave, self.leave())

    def leave(self) -> Work:
        """End the session and return its work. A robot that it drives is stopped: nobody watches it any more."""
        self._live_run.close()
        self._closed.set()
        self._forecaster.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._autosave()
        return Work(self.editor.document, self._settings())

    def post(self, action: Callable[[], None]) -> None:
        """Run an action in the session's thread, soon."""
        self._actions.put(action)

    def _add_panels(self, gui: viser.GuiApi) -> None:
        tabs = gui.add_tab_group()
        with tabs.add_tab("Keyframe", viser.Icon.DIAMOND):
            self._keyframe = KeyframePanel(
                gui, self.editor.robot, self._on_edit, lambda name: self._on_event("save_pose", name)
            )
        with tabs.add_tab("Result", viser.Icon.CHART_LINE):
            self._results = ResultPanel(gui, lambda kind: self.post(lambda: self._export(kind)))
        with tabs.add_tab("Stage", viser.Icon.ADJUSTMENTS):
            self._stage = StagePanel(gui, controllers.choices(), self._on_event)
        with tabs.add_tab("Files", viser.Icon.FOLDER):
            self._files = FilesPanel(gui, self._on_event)
        with tabs.add_tab("Live", viser.Icon.ROBOT):
            self._live_panel = LivePanel(gui, self._on_event, self._live_run.emergency)

    # The thread.

    def _run(self) -> None:
        due = time.perf_counter()
        try:
            while not self._closed.is_set():
                self._run_actions(due)
                due = max(due + FRAME_SECONDS, time.perf_counter())
                self._frame()
        except Exception:
            if not self._closed.is_set():  # a browser that left takes its handles with it
                traceback.print_exc()

    def _frame(self) -> None:
        if not self._greeted:  # the page has not said yet which tab it is in: its work may be restored
            return
        if self.editor.tick(time.perf_counter()):
            self._results.show(self.editor.recording)
        question = self.editor.question(time.perf_counter())
        if question is not None:
            self._forecaster.ask(question)
        if self._is_due("folder", FOLDER_EVERY):
            self._commands.refresh(self._tabs.open_tabs)
            self._poses.refresh()
            self._changed_on_disk = self._commands.changed_on_disk()
        self._store()
        self._live.frame()
        self._view.show(self.editor, self._keyframe, changed_on_disk=self._changed_on_disk)

    def _store(self) -> None:
        """Give the browser a copy of the document, and the disk one of unsaved work.

        A new step of the history goes out before the page shows it, so that what is seen is never lost. What changes
        within a step, such as during a drag, is stored with the message that shows it.
        """
        document, settings = self.editor.document, self._settings()
        step = (document, document.revision)
        if step != self._stored[:2] or (settings != self._stored[2] and self._is_due("settings", SETTINGS_EVERY)):
            self._stored = (*step, settings)
            self._channel.show("draft", {"draft": storage.dump(document, settings)})
        if self._is_due("autosave", AUTOSAVE_EVERY):
            self._autosave()

    def _autosave(self) -> None:
        document = self.editor.document
        state = (document.draft, document.name, document.unsaved)
        if state == self._autosaved:
            return
        self._autosaved = state
        try:
            if document.unsaved:
                self._drafts.write(self._tab, storage.dump(document))
            else:
                self._drafts.delete(self._tab)
        except OSError as error:  # a folder that cannot be written to; the browser still has its copy
            self._files.tell([f"Autosave: {error}"], bad=True)

    def _is_due(self, name: str, every: float) -> bool:
        now = time.perf_counter()
        if now - self._done_at.get(name, -every) < every:
            return False
        self._done_at[name] = now
        return True

    def _run_actions(self, deadline: float) -> None:
        """Until the next frame is due, or at once while there is something to catch up with."""
        while True:
            wait = 0.0 if self.editor.player.waiting else deadline - time.perf_counter()
            try:
                action = self._actions.get(timeout=max(wait, 0.001))
            except queue.Empty:
                return
            self._do(action)
            if time.perf_counter() > deadline + FRAME_SECONDS:  # however much is asked, the robot goes on
                return

    def _do(self, action: Callable[[], None]) -> None:
        """A mistake of the user's becomes a message in the page."""
        try:
            action()
        except ScriptError as error:
            self._keyframe.forget_touches()
            self._tell("Not possible", [str(problem) for problem in error.problems])
        except (ValueError, OSError, ModuleNotFoundError) as error:
            self._tell("Not possible", [str(error)])
        except Exception:  # a fault of ours: it is logged, and the session lives on
            traceback.print_exc()

    def _tell(self, title: str, lines: list[str]) -> None:
        self._view.refresh()
        self._client.add_notification(title, "\n".join(lines), auto_close_seconds=MESSAGE_SECONDS, color="orange")

    # Restoring.

    def _hello(self, greeting: dict[str, Any]) -> None:
        """The page says which tab it is in, and what its browser kept of an earlier session."""
        if self._greeted:  # a page that lost its connection while it was loading may say it twice
            return
        self._tab = str(greeting.get("tab", ""))[:64]
        work = self._tabs.enter(self._tab, self._leave)
        if work is None:
            work = self._from_browser(str(greeting.get("draft", "")), str(greeting.get("latest", "")))
        self._set_light(bool(greeting.get("light")))  # as the browser prefers it, until somebody chooses
        if work is not None:
            self.editor.restore(self._refreshed(work.document), time.perf_counter())
            self._apply_settings(work.settings)
        if greeting.get("software"):
            self._draw_less()
        if greeting.get("narrow"):
            self._view.scene.look_above_sheet()
        self._greeted = True

    def _from_browser(self, draft: str, latest: str) -> Work | None:
        try:
            return Work(*storage.load_latest(draft, latest, self.editor.robot))
        except storage.StorageError:
            return None

    def _refreshed(self, document: Document) -> Document:
        """A document without unsaved edits follows its file."""
        saved = document.files.get(document.name)
        if document.unsaved or saved is None or saved.digest is None:
            return document
        try:
            loaded = self._folder.load(document.name)
        except (ScriptError, OSError, ValueError):
            return document
        if loaded.digest != saved.digest:
            document.open(from_script(loaded.script, self.editor.robot), document.name, loaded.digest)
        return document

    def _settings(self) -> dict[str, Any]:
        editor = self.editor
        return {
            "policy": editor.policy,
            "friction": editor.player.friction,
            "speed": editor.clock.speed,
            "loop": editor.loop,
            "range": editor.range,
            "head": 0.0 if editor.playing else round(editor.head, 2),
            "follow": self._view.scene.following,
            "light": self._light,
            "visible": dict(self._view.visible),
        }

    def _apply_settings(self, settings: dict[str, Any]) -> None:
        """Each of them if it makes sense; they may come from a browser."""
        visible = settings.get("visible", {})
        changes: list[Callable[[], object]] = [
            lambda: settings["policy"] == self.editor.policy or self._load_policy(str(settings["policy"])),
            lambda: self._set_friction(float(settings["friction"])),
            lambda: self._set_speed(float(settings["speed"])),
            lambda: setattr(self.editor, "loop", bool(settings["loop"])),
            lambda: self._set_range(settings["range"]),
            lambda: self._follow(bool(settings["follow"])),
            lambda: self._set_light(bool(settings["light"])),
            *(lambda part=part: self._set_visible(part, bool(visible[part])) for part in SCENE_PARTS),
            lambda: self.editor.seek(float(settings["head"])),
        ]
        for change in changes:
            try:
                change()
            except (KeyError, TypeError, ValueError, OSError):
                continue

    # What the page asks for.

    def _on_event(self, name: str, value: Any) -> None:
        urgent = self._urgent.get(name)  # straight to the deployment, whatever this session's thread is doing
        if urgent is not None:
            urgent()
            return
        action = self._events.get(name)
        if action is not None:
            self.post(lambda: action(value))

    def _on_click(self, key: int) -> None:
        self.post(lambda: self.editor.select([key]))

    def _on_edit(self, edit: Edit, gesture: str) -> None:
        self.post(lambda: self._edit(edit, gesture))

    def _on_frame(self, key: int) -> None:
        self.post(lambda: self._frame_ghost(key))

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
            self._done_at.pop("folder", None)  # what it did to a file is to be seen at once

    def _edit(self, edit: Edit, gesture: str, *, held: bool = False) -> None:
        key = self.editor.selected
        if key is not None:
            whole = Gesture((gesture, key), held) if gesture else None
            self.editor.edit(lambda draft: edit(draft, key), time.perf_counter(), whole)

    def _move(self, move: Move | None) -> None:
        """A ghost, or one of its handles, is dragged; None when it is let go."""
        if move is None:
            self.editor.document.end_gesture()
            self._view.refresh()
        elif move.key in self.editor.draft.keys:
            edit = self._keyframe.moved(move)
            gesture = Gesture(("handle", move.key), held=True)
            self.editor.edit(lambda draft: edit(draft, move.key), time.perf_counter(), gesture)

    def _frame_ghost(self, key: int) -> None:
        found = ghosts(self.editor.draft).get(key)
        if found is not None:
            self.editor.select([key])
            self._view.scene.set_following(False)
            self._stage.show_view(follow=False)
            self._view.scene.look_at(found.position)

    def _event_table(self) -> dict[str, Callable[[Any], None]]:
        editor, clock = self.editor, time.perf_counter
        return {
            **self._live.events(),
            "hello": self._hello,
            "answer": lambda button: self._answer(str(button)),
            "toggle": lambda _: editor.toggle(clock()),
            "restart": lambda _: editor.restart(),
            "loop": lambda _: setattr(editor, "loop", not editor.loop),
            "range": self._set_range,
            "speed": lambda speed: self._set_speed(float(speed)),
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
            "shove": lambda _: self._shove(),
            "policy": lambda name: self._load_policy(str(name)),
            "friction": lambda friction: editor.set_friction(float(friction)),
            "follow": self._follow,
            "look": lambda view: self._view.scene.look_from(str(view)),
            "light": lambda on: self._set_light(bool(on)),
            "shadows": lambda on: self._view.scene.set_shadows(bool(on)),
            "software": lambda _: self._draw_less(),
            **{part: lambda on, part=part: self._view.set_visible(part, bool(on)) for part in SCENE_PARTS},
            **self._file_events(),
        }

    def _file_events(self) -> dict[str, Callable[[Any], None]]:
        commands, clock = self._commands, time.perf_counter

        def then_look(action: Callable[[], None]) -> None:
            action()
            self._done_at.pop("folder", None)

        return {
            "open": lambda name: then_look(lambda: commands.open(str(name), clock())),
            "save": lambda name: then_look(lambda: commands.save(name or "", clock())),
            "revert": lambda _: then_look(lambda: commands.revert(clock())),
            "restore": lambda tab: then_look(lambda: commands.restore(str(tab), clock())),
            "upload": lambda file: then_look(lambda: commands.upload(file.name, file.content, clock())),
            "new": lambda _: then_look(lambda: commands.new(clock())),
            "pose": lambda name: self._poses.use(str(name), clock()),
            "save_pose": lambda name: then_look(lambda: self._poses.save(str(name))),
            "delete_pose": lambda name: self._poses.delete(str(name)),
            "download": lambda kind: self._client.send_file_download(
                *commands.download(str(kind)), save_immediately=True
            ),
        }

    def _set_speed(self, speed: float) -> None:
        self.editor.clock.speed = min(max(speed, SPEEDS[0]), SPEEDS[-1])

    def _set_friction(self, friction: float) -> None:
        if friction != self.editor.player.friction:
            self.editor.set_friction(min(max(friction, 0.05), 2.0))
        self._stage.show_friction(self.editor.player.friction)

    def _set_range(self, seconds: Any) -> None:
        start, end = sorted(map(float, seconds)) if seconds else (0.0, 0.0)
        self.editor.range = (max(start, 0.0), end) if end - start >= CONTROL_DT else None

    def _set_visible(self, part: str, on: bool) -> None:
        self._view.set_visible(part, on)
        self._stage.show_part(part, on)

    def _shove(self) -> None:
        pose = self.editor.player.pose()
        self.editor.shove(self._stage.shove(float(geometry.yaw_of(pose.orientation))))

    def _load_policy(self, name: str) -> None:
        try:
            controllers.check_choice(name.strip(), self._launch_policy)
            controller = controllers.load_controller(name.strip(), self.editor.robot)
        except controllers.PolicyError as error:
            self._stage.show_policy(self.editor.policy, f"{name}: {error}")
            raise
        self.editor.set_controller(controller, name.strip())
        self._stage.show_policy(name.strip(), controllers.describe_controller(controller))

    def _follow(self, on: Any) -> None:
        self._view.scene.set_following(not self._view.scene.following if on is None else bool(on))
        self._stage.show_view(follow=self._view.scene.following)

    def _set_light(self, on: bool) -> None:
        if on != self._light:
            self._light = on
            set_colours(self._client.gui, light=on)
            self._view.scene.set_theme(palette.LIGHT if on else palette.DARK)
        self._stage.show_view(light=on)

    def _draw_less(self) -> None:
        """For a browser without a graphics card."""
        self._view.scene.set_shadows(False)
        self._stage.show_view(shadows=False)

    def _export(self, kind: str) -> None:
        if self.editor.recording is not None:
            self._exporter.start(kind, self.editor.recording)


def set_colours(gui: viser.GuiApi, *, light: bool) -> None:
    """Of viser's panels, for one browser or for all."""
    gui.configure_theme(dark_mode=not light, show_logo=False, show_share_button=False, brand_color=palette.BRAND)


def _keys(keys: Any) -> list[int]:
    return [int(key) for key in (keys if isinstance(keys, list) else [] if keys is None else [keys])]


def _times(times: Any) -> dict[int, float]:
    return {int(key): float(time) for key, time in dict(times).items()}
