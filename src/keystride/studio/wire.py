"""The page's own part: a dock with timeline, transport and shortcuts beside viser's scene and panels, and how it talks.

Everything goes through two elements that viser draws: HTML that the session writes, and a text field that the page
types into. So it needs no second connection, and each browser has its own.
"""

import json
from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

import viser

SCRIPTS = ("channel.js", "dock.js", "timeline.js", "keys.js")
PREFIX = "keystride:"

Received = Callable[[str, Any], None]


class Wire:
    def __init__(self, client: viser.ClientHandle, received: Received) -> None:
        self._received = received
        self._read = 0
        panel = client.gui.add_panel()
        with panel.add_tab("wire"):
            self._field = client.gui.add_text("wire", PREFIX)
            self._script = client.gui.add_html("")
            self._now = client.gui.add_html("")
            client.gui.add_html(_page())
        self._field.on_update(self._on_update)

    def show_script(self, script: dict[str, Any]) -> None:
        """What changes with edits."""
        self._script.content = _data("ks-script", script)

    def show_now(self, now: dict[str, Any]) -> None:
        """What changes with time."""
        self._now.content = _data("ks-now", now | {"read": self._read})

    async def _on_update(self, event: viser.GuiEvent) -> None:
        if event.client is None:
            return
        for number, name, value in read_events(self._field.value):
            if number > self._read:
                self._read = number
                self._received(name, value)


def read_events(text: str) -> list[tuple[int, str, Any]]:
    """What a page typed, oldest first; nothing when it makes no sense."""
    try:
        events = json.loads(text.removeprefix(PREFIX) or "[]")
        return [(int(number), str(name), value) for number, name, value in events]
    except (ValueError, TypeError):
        return []


def _data(name: str, value: Any) -> str:
    return f'<div hidden id="{name}">{escape(json.dumps(value, separators=(",", ":")))}</div>'


def _page() -> str:
    """HTML set by a script runs no script elements, but an image that cannot be loaded says so."""
    folder = files("keystride.studio") / "web"
    style = (folder / "studio.css").read_text(encoding="utf-8")
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    run = "if(!window.keystride){window.keystride=1;new Function(document.getElementById('ks-source').textContent)()}"
    return (
        f"<style>{style}</style><div hidden id='ks-source'>{escape(source)}</div>"
        f'<img hidden src="data:," onerror="{escape(run)}">'
    )
