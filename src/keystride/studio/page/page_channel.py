"""The page's own part: a dock with timeline, transport and shortcuts beside viser's scene and panels, and its messages.

Everything goes through elements that viser draws: HTML that the session writes, and a text field that the page types
into. So it needs no second connection, and each browser has its own. Every event is numbered, addressed to one session
and acknowledged; what was addressed to another session is dropped.
"""

import json
from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

import viser

PAGE_SCRIPTS = ("channel.js", "dock.js", "music.js", "timeline.js", "live.js", "keys.js")
PREFIX = "keystride:"

Received = Callable[[str, Any], None]


class PageChannel:
    def __init__(self, client: viser.ClientHandle, session: str, received: Received) -> None:
        self.session = session
        self.read = 0  # number of the last event that was received
        self._received = received
        panel = client.gui.add_panel()
        with panel.add_tab("channel"):
            self._field = client.gui.add_text("channel", PREFIX)
            self._elements = {name: client.gui.add_html("") for name in ("script", "now", "draft", "question", "live")}
            client.gui.add_html(_page())
        self._field.on_update(self._on_update)

    def show(self, name: str, content: dict[str, Any]) -> None:
        """`script` changes with edits, `now` with time; `draft` is for the browser to keep, `question` is a dialog."""
        data = json.dumps(content | {"session": self.session}, separators=(",", ":"))
        self._elements[name].content = f'<div hidden id="ks-{name}">{escape(data)}</div>'

    async def _on_update(self, event: viser.GuiEvent) -> None:
        if event.client is None:
            return
        session, events = read_events(self._field.value)
        for number, name, value in events if session == self.session else ():
            if number > self.read:
                self.read = number
                self._received(name, value)


def read_events(text: str) -> tuple[str, list[tuple[int, str, Any]]]:
    """What a page typed: the session it is meant for, and events, oldest first; nothing if it makes no sense."""
    try:
        batch = json.loads(text.removeprefix(PREFIX) or "{}")
        events = [(int(number), str(name), value) for number, name, value in batch.get("events", ())]
        return str(batch.get("session", "")), events
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError):
        return "", []


def _page() -> str:
    """HTML set by a script runs no script elements, but an image that cannot be loaded runs its error handler."""
    folder = files("keystride.studio.page") / "web"
    style = (folder / "studio.css").read_text(encoding="utf-8")
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in PAGE_SCRIPTS)
    run = "if(!window.keystride){window.keystride=1;new Function(document.getElementById('ks-source').textContent)()}"
    return (
        f"<style>{style}</style><div hidden id='ks-source'>{escape(source)}</div>"
        f'<img hidden src="data:," onerror="{escape(run)}">'
    )
