"""The studio as its users have it: the command in a process of its own, and pages of a real browser."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keystride.keyframes.files import load_script
from keystride.keyframes.script import Keyframe
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.studio.document.draft import Draft
from keystride.studio.playback.controllers import STAND_STILL
from keystride.studio.server import CAMERA, FIELD_OF_VIEW, LOOK_AT
from keystride.studio.unsaved_work import load_latest

WINDOW = {"width": 900, "height": 600}
COARSE = 0.12  # pixels per pixel of the layout: the scene is drawn in software
PATIENCE = int(os.environ.get("KEYSTRIDE_PATIENCE", "120")) * 1000  # ms: the machine may be busy

SCRIPT = """version: 1
keyframes:
  - time: 0.4
    position: [0.0, 0.0, 0.333]
    label: here
  - time: 0.8
    position: [0.8, 0.3]
"""


SCENE = """([x, y]) => {  // what can keep the scene from being grabbed
  const { camera, canvas, nodeRefFromName } = __viserMutable, there = document.elementFromPoint(x, y);
  return JSON.stringify({
    camera: camera.matrixWorld.elements.slice(12, 15), there: there?.outerHTML.slice(0, 200),
    lost: canvas.getContext("webgl2")?.isContextLost(), shown: document.visibilityState, focus: document.hasFocus(),
    nodes: Object.keys(nodeRefFromName).filter((name) => nodeRefFromName[name]?.visible),
    now: document.getElementById("ks-now")?.textContent }); }"""


class Server:
    """`keystride studio` in a process, with a folder of scripts; it can be ended and started again."""

    def __init__(
        self, folder: Path, script: str = SCRIPT, policy: str = STAND_STILL, options: tuple[str, ...] = ()
    ) -> None:
        self.folder, self.log = folder, folder / "server.log"
        self.script = folder / "start.yaml"
        self.script.write_text(script)
        self._options = ("--policy", policy, *options)
        self.url, self.port = "", free_port()
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "keystride", "studio", str(self.script), "--headless"]
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *self._options],
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        assert self.process.stdout is not None
        greeting = self.process.stdout.readline().decode()
        address = re.search(r"http://\S+", greeting)
        assert address, greeting + self.log.read_text()
        self.url = address.group()  # with the token of this launch
        assert f":{self.port}/" in self.url  # at another port it would be another origin, with another storage

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=PATIENCE / 1000)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def check(self) -> None:
        assert self.process.poll() is None, "the server ended by itself"
        log = self.log.read_text().replace(
            "opening handshake failed\nTraceback", ""
        )  # a browser that gave up connecting
        assert "Traceback" not in log
        assert "has no attribute" not in log


def free_port() -> int:
    """Below the range from which the system takes ports for connections: it stays free while a server is down."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no port is free")


class Relay:
    """Passes bytes between the browser and a server, until the line is cut."""

    def __init__(self, port: int) -> None:
        self._target, self._sockets, self._open = port, [], True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection; new ones are accepted."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                browser, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [browser, server]
                for source, sink in ((browser, server), (server, browser)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class Camera:
    eye: Floats  # (3,) m
    target: Floats  # (3,) m

    @property
    def axes(self) -> Floats:
        """Return the directions (3, 3) of the picture's right, its top and its depth."""
        ahead = (self.target - self.eye) / np.linalg.norm(self.target - self.eye)
        right = np.cross(ahead, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(right, ahead), ahead])


OPENING = Camera(np.array(CAMERA), np.array(LOOK_AT))  # until somebody turns it


class Page:
    """What a user does in a tab."""

    def __init__(self, context: Any, url: str) -> None:
        self.faults: list[str] = []
        self.dialogs: list[str] = []
        self.context = context
        self.tab = context.new_page()
        self.tab.set_default_timeout(PATIENCE)
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("dialog", self._accept)
        self.tab.goto(url)
        self.wait_until("document.querySelector('#ks-script')?.textContent")

    def _accept(self, dialog: Any) -> None:
        self.dialogs.append(dialog.type)
        dialog.accept()

    def wait_until(self, condition: str) -> None:
        self.tab.wait_for_function(condition, timeout=PATIENCE, polling=50)

    def script(self) -> dict[str, Any]:
        """What the session last said of the script."""
        return self.tab.evaluate("JSON.parse(document.getElementById('ks-script').textContent)")

    def now(self) -> dict[str, Any]:
        return self.tab.evaluate("JSON.parse(document.getElementById('ks-now').textContent)")

    def wait_for_script(self, condition: str) -> dict[str, Any]:
        """Until a JavaScript expression over `script` holds."""
        self.wait_until(
            f"((script) => {condition})(JSON.parse(document.getElementById('ks-script')?.textContent || '{{\"marks\":[]}}'))"
        )
        return self.script()

    def wait_for_marks(self, condition: str) -> list[dict[str, Any]]:
        """Until a JavaScript expression over `marks` holds."""
        return self.wait_for_script(f"((marks) => {condition})(script.marks)")["marks"]

    def wait_for_now(self, condition: str) -> None:
        """Until a JavaScript expression over `now` holds."""
        self.wait_until(f"((now) => {condition})(JSON.parse(document.getElementById('ks-now')?.textContent || '{{}}'))")

    def reset(self) -> None:
        """Take every edit back and select the first keyframe, as the page began."""
        if self.tab.locator("dialog[open]").count():
            self.press("Escape")
        self.open_panel("Keyframe")
        while self.script()["undo"]:
            left = self.tab.evaluate("JSON.parse(document.getElementById('ks-script').textContent).latest")
            self.press("Control+z")
            self.wait_for_script(f"script.latest !== {json.dumps(left)}")
        self.press("Home")
        for _ in self.script()["marks"]:
            self.press("ArrowUp")
        self.wait_for_script("script.selected === script.marks[0].key && script.selection.length === 1")
        self.wait_for_now("now.head === 0 && !now.playing")

    def press(self, key: str) -> None:
        self.tab.keyboard.press(key)

    def open_panel(self, name: str) -> None:
        self.tab.get_by_role("tab", name=name).click()

    def seek(self, seconds: float) -> None:
        """Click on the ruler."""
        x, top = self.tab.evaluate(
            """(seconds) => {
                 const ticks = [...document.querySelectorAll('.ks-tick.major')].map(
                   (tick) => [parseFloat(tick.textContent), tick.getBoundingClientRect().left]);
                 const [t0, x0] = ticks[0], [t1, x1] = ticks[ticks.length - 1];
                 return [x0 + (seconds - t0) / (t1 - t0) * (x1 - x0),
                         document.getElementById('ks-ruler').getBoundingClientRect().top]; }""",
            seconds,
        )
        self.tab.mouse.click(x, top + 8)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.tab.mouse.move(*start)
        self.tab.mouse.down()
        self.tab.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3)
        self.tab.mouse.move(*end, steps=3)
        self.tab.mouse.up()

    def hover(self, x: float, y: float) -> None:
        """Put the pointer on something of the scene that can be grabbed, as soon as it is drawn."""
        for _ in range(PATIENCE // 100):
            self.tab.mouse.move(1, y)  # after a jump of the camera, what was under the pointer has to be left first
            self.tab.wait_for_timeout(50)
            self.tab.mouse.move(x, y)
            self.tab.wait_for_timeout(50)
            if self.tab.evaluate("[...document.querySelectorAll('canvas')].some((e) => e.style.cursor === 'pointer')"):
                return
        raise AssertionError(f"nothing to grab at {x:.0f}, {y:.0f}: {self.tab.evaluate(SCENE, [x, y])}")

    def draft(self) -> Draft:
        """The script as the session last said that it is."""
        return load_latest("", self.script()["latest"], GO2)[0].draft

    def wait_for_draft(self, condition: Callable[[Draft], bool]) -> Draft:
        """Wait until the script is as a test expects it, and return it."""
        for _ in range(PATIENCE // 100):
            draft = self.draft()
            if condition(draft):
                return draft
            self.tab.wait_for_timeout(100)
        raise AssertionError(f"the script stayed {self.draft().script()}")

    def saved(self) -> tuple[Keyframe, ...]:
        """The keyframes as a download has them."""
        self.open_panel("Files")
        with self.tab.expect_download() as download:
            self.tab.get_by_role("button", name="Download as YAML").click()
        return load_script(download.value.path()).keyframes

    def on_screen(self, point: Floats, camera: Camera = OPENING) -> tuple[float, float]:
        """Where a point of the stage is drawn."""
        canvas = self.tab.locator("#root canvas").last.bounding_box()
        along = camera.axes @ (point - camera.eye)
        scale = canvas["height"] / 2 / np.tan(FIELD_OF_VIEW / 2) / along[2]
        x, y = canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2
        return float(x + scale * along[0]), float(y - scale * along[1])


@pytest.fixture(scope="session")
def served(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests. Whatever they do, its log holds no traceback, and start.yaml is as it was when they end."""
    server = Server(tmp_path_factory.mktemp("scripts"))
    yield server
    server.check()
    server.stop()


@pytest.fixture
def opening() -> Camera:
    """Where a page looks from until somebody turns the camera."""
    return OPENING


@pytest.fixture
def make_server(browser: Any) -> type[Server]:
    """For a test that ends its server."""
    return Server


@pytest.fixture
def relay() -> Iterator[Any]:
    """A function that puts a line that can be cut before a server."""
    lines: list[Relay] = []

    def relay(server: Server) -> Relay:
        lines.append(Relay(server.port))
        return lines[-1]

    yield relay
    for line in lines:
        line.close()


def new_page(browser: Any, url: str, *, drawn: bool = False, **options: Any) -> Page:
    """Open an address with a storage of its own; the scene is drawn only where a test looks at it."""
    context = browser.new_context(
        **{"viewport": WINDOW, "device_scale_factor": COARSE, "accept_downloads": True, **options}
    )
    if not drawn:
        context.add_init_script(path=Path(__file__).with_name("no_drawing.js"))
    return Page(context, url)


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """A function that opens an address as another browser would."""
    opened: list[Page] = []

    def open_page(url: str, **options: Any) -> Page:
        opened.append(new_page(browser, url, **options))
        return opened[-1]

    yield open_page
    for page in opened:
        assert page.faults == []
        page.context.close()


@pytest.fixture
def page(open_page: Any, served: Server) -> Page:
    """A page of its own."""
    return open_page(served.url)


@pytest.fixture(scope="session")
def _shared_page(browser: Any, served: Server) -> Iterator[Page]:
    page = new_page(browser, served.url)
    yield page
    assert page.faults == []
    page.context.close()


@pytest.fixture
def shared_page(_shared_page: Page) -> Page:
    """For tests that only edit and play: the same page for all of them, reset by undoing."""
    _shared_page.reset()
    return _shared_page
