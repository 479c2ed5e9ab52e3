"""The studio's server: each browser that is admitted gets its own session."""

import threading
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from math import radians
from pathlib import Path

import viser

from keystride.keyframes.document import MAX_SCRIPT_BYTES, ScriptError
from keystride.keyframes.files import find_script, load_script
from keystride.robot.description import Robot
from keystride.studio.document.draft import Draft, from_script
from keystride.studio.document.history import UNTITLED, Document
from keystride.studio.editor import Editor
from keystride.studio.live.live_run import Target
from keystride.studio.page.figure import robot_bodies
from keystride.studio.panels.stage import set_colour_scheme
from keystride.studio.script_folder import ScriptFolder
from keystride.studio.session import StudioSession
from keystride.studio.unsaved_work import TabRestore
from keystride.web_access import PrivateServer, cap_uploads, start_server

PANEL_WIDTH = 350
CAMERA, LOOK_AT = (-1.5, -2.6, 1.5), (0.6, 0.1, 0.15)  # m
FIELD_OF_VIEW = radians(50.0)


@dataclass(frozen=True)
class Opening:
    """What a browser gets when it connects: the script as it is on disk at that moment."""

    name: str
    folder: Path
    robot: Robot
    policy: str
    inbetween: bool = True
    document: Document | None = None  # used instead of the file
    target: Target = field(default_factory=Target)  # for the Live tab

    def read(self) -> Document:
        """Read the script. Raise ScriptError or OSError if that fails."""
        if self.document is not None:
            return Document(self.document.draft, self.document.name)
        try:
            loaded = ScriptFolder(self.folder, self.robot).load(self.name)
        except FileNotFoundError:
            if self.name != UNTITLED:
                raise
            return Document(Draft(self.robot))
        return Document(from_script(loaded.script, self.robot), self.name, loaded.digest, loaded.text)


def opening(script: Path | None, robot: Robot, policy: str, *, inbetween: bool = True) -> Opening:
    """Check that a script can be read and saved again. Raise ScriptError, OSError or BadName if not.

    Without a script, the default name in the current folder is opened: an earlier session may have saved it. The name of a built-in
    example opens a copy of it, to be saved in the current folder.
    """
    if script is None:
        return Opening(UNTITLED, Path.cwd(), robot, policy, inbetween)
    found = find_script(script)
    if found != script:
        copy = Document(from_script(load_script(found, robot), robot), found.name)
        return Opening(found.name, Path.cwd(), robot, policy, inbetween, copy)
    load_script(script, robot)
    start = Opening(script.name, script.resolve().parent, robot, policy, inbetween)
    start.read()
    return start


class Studio:
    def __init__(self, opening: Opening, host: str, port: int) -> None:
        self._opening = opening
        self._sessions: dict[int, StudioSession] = {}
        self._tabs = TabRestore()
        self._lock = threading.Lock()
        # Messages that are sent while a session ends, after its browser has left, are dropped.
        warnings.filterwarnings("ignore", message=r"Queued a \w+ on a closed connection")
        robot_bodies(opening.robot)  # cached, so that the first browser need not wait
        self._server, self.url = start_server(
            lambda: PrivateServer(host=host, port=port, label="Keystride Studio", verbose=False), host
        )
        self._arrange_page()
        self._server.on_client_connect(self._on_connect)
        self._server.on_client_disconnect(self._on_disconnect)

    @property
    def sessions(self) -> tuple[StudioSession, ...]:
        with self._lock:
            return tuple(self._sessions.values())

    def stop(self) -> None:
        for session in self.sessions:
            session.close()
        with redirect_stdout(StringIO()):
            self._server.stop()

    def _arrange_page(self) -> None:
        gui = self._server.gui
        set_colour_scheme(gui, light=False)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        camera = self._server.initial_camera
        camera.position, camera.look_at, camera.fov = CAMERA, LOOK_AT, FIELD_OF_VIEW
        self._server.scene.world_axes.visible = False

    def _on_connect(self, client: viser.ClientHandle) -> None:
        cap_uploads(client, MAX_SCRIPT_BYTES)
        start = self._opening
        try:
            document = start.read()
        except (ScriptError, OSError) as error:  # it was fine when the server started
            document = Document(Draft(start.robot))
            client.add_notification(f"{start.name} cannot be read", str(error), color="red")
        session = StudioSession(
            client,
            Editor(document, inbetween=start.inbetween),
            ScriptFolder(start.folder, start.robot),
            start.policy,
            self._tabs,
            start.target,
        )
        with self._lock:
            self._sessions[client.client_id] = session

    def _on_disconnect(self, client: viser.ClientHandle) -> None:
        with self._lock:
            session = self._sessions.pop(client.client_id, None)
        if session is not None:
            session.close()
