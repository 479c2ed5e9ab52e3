"""Messages between a session and the page's own part: the timeline, the transport bar and the shortcuts.

Both directions use elements that viser draws: HTML that the session writes, and a text field that the page types into.
This needs no second connection. Events are numbered, addressed to one session and acknowledged; events addressed to
another session are dropped.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import viser

from keystride import colours

PAGE_SCRIPTS = ("channel.js", "dock.js", "music.js", "timeline.js", "keys.js")
PREFIX = "keystride:"

Received = Callable[[str, Any], None]


@dataclass(frozen=True)
class Choice:
    """A dialog: a question, and what each of its buttons does. Escape presses the last one."""

    question: str
    buttons: Mapping[str, Callable[[], None]]


Ask = Callable[[Choice], None]


class PageChannel:
    def __init__(self, client: viser.ClientHandle, session: str, received: Received) -> None:
        self.session = session
        self.read = 0  # number of the last event received
        self._received = received
        panel = client.gui.add_panel()
        with panel.add_tab("channel"):
            self._field = client.gui.add_text("channel", PREFIX)
            self._elements = {name: client.gui.add_html("") for name in ("script", "now", "draft", "question", "live")}
            client.gui.add_html(_page())
        self._field.on_update(self._on_update)

    def show(self, name: str, content: dict[str, Any]) -> None:
        """Send a message.

        `script` changes with edits and `now` with time; the browser stores `draft`, `question` is a dialog, and `live`
        is the state of a deployment.
        """
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
    """Parse what a page typed: the session it is addressed to, and its events, oldest first. Ignore malformed text."""
    try:
        batch = json.loads(text.removeprefix(PREFIX) or "{}")
        events = [(int(number), str(name), value) for number, name, value in batch.get("events", ())]
        return str(batch.get("session", "")), events
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError):
        return "", []


def _page() -> str:
    """Return the page's own styles and scripts as HTML.

    Script elements in HTML that a script inserts do not run, but the error handler of an image that fails to load does.
    """
    folder = files("keystride.studio.page") / "web"
    style = colours.page_css() + (folder / "studio.css").read_text(encoding="utf-8")
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in PAGE_SCRIPTS)
    run = "if(!window.keystride){window.keystride=1;new Function(document.getElementById('ks-source').textContent)()}"
    return (
        f"<style>{style}</style><div hidden id='ks-source'>{escape(source)}</div>"
        f'<img hidden src="data:," onerror="{escape(run)}">'
    )
