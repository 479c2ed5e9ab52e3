"""The studio's server: a page for every browser that comes, each with a session of its own."""

import threading
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from math import radians
from pathlib import Path

import viser

from keystride.keyframes.files import load_script
from keystride.studio import palette
from keystride.studio.desk import Desk
from keystride.studio.draft import Draft, from_script
from keystride.studio.filing import UNTITLED
from keystride.studio.reloads import Reloads
from keystride.studio.session import Session
from keystride.studio.shapes import robot_bodies
from keystride.studio.shelf import Shelf

PANEL_WIDTH = 340
CAMERA, LOOK_AT = (-1.5, -2.6, 1.5), (0.6, 0.1, 0.15)  # m
FIELD_OF_VIEW = radians(50.0)


@dataclass(frozen=True)
class Opening:
    """What every browser finds when it comes."""

    draft: Draft
    name: str
    folder: Path
    policy: str


def opening(script: Path | None, policy: str) -> Opening:
    """ScriptError and OSError when the script cannot be read."""
    if script is None:
        return Opening(Draft(), UNTITLED, Path.cwd(), policy)
    return Opening(from_script(load_script(script)), script.name, script.resolve().parent, policy)


class _Server(viser.ViserServer):
    def request_share_url(self, verbose: bool = True) -> str | None:
        """Any page may ask viser for a tunnel to the internet; nobody gets one here."""
        return None


class Studio:
    def __init__(self, opening: Opening, host: str, port: int) -> None:
        self._opening = opening
        self._sessions: dict[int, Session] = {}
        self._reloads = Reloads()
        self._lock = threading.Lock()
        # Between the moment a browser leaves and the end of its session, what is sent goes nowhere.
        warnings.filterwarnings("ignore", message=r"Queued a \w+ on a closed connection")
        robot_bodies()  # before the first browser has to wait for it
        with redirect_stdout(StringIO()):  # viser greets with a box of its own
            self._server = _Server(host=host, port=port, label="Keystride Studio", verbose=False)
        self._dress()
        self._server.on_client_connect(self._on_connect)
        self._server.on_client_disconnect(self._on_disconnect)

    @property
    def url(self) -> str:
        host = self._server.get_host()
        return f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self._server.get_port()}"

    @property
    def sessions(self) -> tuple[Session, ...]:
        with self._lock:
            return tuple(self._sessions.values())

    def stop(self) -> None:
        for session in self.sessions:
            session.close()
        with redirect_stdout(StringIO()):
            self._server.stop()

    def _dress(self) -> None:
        gui = self._server.gui
        gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=palette.BRAND)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        camera = self._server.initial_camera
        camera.position, camera.look_at, camera.fov = CAMERA, LOOK_AT, FIELD_OF_VIEW
        self._server.scene.world_axes.visible = False

    def _on_connect(self, client: viser.ClientHandle) -> None:
        start = self._opening
        desk = Desk(start.draft, start.name)
        session = Session(client, desk, Shelf(start.folder), start.policy, self._reloads)
        with self._lock:
            self._sessions[client.client_id] = session

    def _on_disconnect(self, client: viser.ClientHandle) -> None:
        with self._lock:
            session = self._sessions.pop(client.client_id, None)
        if session is not None:
            session.close()
