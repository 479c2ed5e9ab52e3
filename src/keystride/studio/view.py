"""Everything that a browser sees of a desk, sent only when it differs from what was sent before."""

import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import viser

from keystride.keyframes.goals import CONTROL_DT
from keystride.studio.desk import Desk
from keystride.studio.ghost_scene import Dragged, GhostScene
from keystride.studio.ghosts import ghost_warnings, ghosts
from keystride.studio.keyframe_panel import KeyframePanel
from keystride.studio.scene import Scene
from keystride.studio.shapes import Figure
from keystride.studio.summary import captions, marks
from keystride.studio.wire import Received, Wire

NOW_EVERY = 0.04  # s
TRACE_EVERY = 0.15  # s
PARTS: tuple[str, ...] = ("keyframes", "path", "trace")


class View:
    def __init__(
        self, client: viser.ClientHandle, received: Received, clicked: Callable[[int], None], dragged: Dragged
    ) -> None:
        figure = Figure()
        self.scene = Scene(client, figure)
        self._ghosts = GhostScene(client, figure, clicked, dragged)
        self._wire = Wire(client, received)
        self._page = client.client_id
        self._visible = dict.fromkeys(PARTS, True)
        self._seen: dict[str, Any] = {}
        self._times: dict[str, float] = {}

    def refresh(self) -> None:
        """Send the script again, though it may be the same: the page may show something else."""
        self._seen.pop("script", None)

    def set_visible(self, part: str, on: bool) -> None:
        self._visible[part] = on
        self.scene.set_visible(path=self._visible["path"], trace=self._visible["trace"])
        self._ghosts.set_visible(self._visible["keyframes"])

    def show(self, desk: Desk, panel: KeyframePanel) -> None:
        player, states = desk.player, desk.states()
        at = (player.head, player.recorded, player.tape)
        if self._news("robot", at) or self.scene.gliding:
            self.scene.show_robot(player.pose())
        if self._news("trace", at[1:], every=TRACE_EVERY):
            self.scene.show_trace(player.tape.column("position"))
        if self._news("now", _now(desk), every=NOW_EVERY):
            self._wire.show_now(_now(desk) | {"session": self._page})
        script = (desk.document.now, desk.document.unsaved, states, desk.odds, desk.name, desk.policy)
        if self._news("script", script):
            self._show_script(desk, states, panel)

    def _show_script(self, desk: Desk, states: dict[int, str], panel: KeyframePanel) -> None:
        draft, key, found = desk.draft, desk.selected, ghosts(desk.draft)
        doubts = ghost_warnings(draft)
        self.scene.show_expected(desk.expected)
        self.scene.show_path(ghost.position for ghost in found.values() if ghost.placed)
        self._ghosts.show(found, captions(draft, states, desk.odds, doubts), key)
        self._ghosts.set_visible(self._visible["keyframes"])
        self._wire.show_script(
            {
                "name": desk.name,
                "unsaved": desk.document.unsaved,
                "undo": desk.document.can_undo,
                "redo": desk.document.can_redo,
                "selected": key,
                "note": _note(desk),
                "marks": marks(draft, states, desk.odds, doubts),
            }
        )
        head = _head(desk, key, states, doubts.get(key, []) if key is not None else [])
        panel.show(draft, key, found.get(key) if key is not None else None, head)

    def _news(self, name: str, value: Any, every: float = 0.0) -> bool:
        """Whether it is new, and time to tell."""
        now = time.perf_counter()
        if name in self._seen and (self._seen[name] == value or now - self._times[name] < every):
            return False
        self._seen[name], self._times[name] = value, now
        return True


def _now(desk: Desk) -> dict[str, Any]:
    player = desk.player
    return {
        "head": round(desk.head, 2),
        "recorded": round(min(player.recorded, player.end) * CONTROL_DT, 2),
        "end": round(player.end * CONTROL_DT, 2),
        "playing": desk.playing,
        "speed": desk.pace.speed,
        "loop": desk.loop,
    }


def _note(desk: Desk) -> str:
    falls = f" · falls in {desk.falls:.0%} of trials" if desk.odds and desk.falls >= 0.005 else ""
    return f"{Path(desk.policy).name}{falls}"


def _head(desk: Desk, key: int | None, states: dict[int, str], doubts: list[str]) -> str:
    """What stands above the numbers of the selected keyframe."""
    if key is None:
        return '<p class="ks-headline">Select a keyframe on the timeline or in the scene, or press K to add one.</p>'
    odds = "" if key not in desk.odds else f" · met in {desk.odds[key]:.0%} of trials"
    number = f"<b>Keyframe {desk.draft.row(key) + 1} of {len(desk.draft.keys)}</b> · {states[key]}{odds}"
    warnings = "".join(
        f'<div class="ks-doubt" style="color:#ffc43d;font-size:12px">⚠ {escape(doubt)}</div>' for doubt in doubts
    )
    return f'<div class="ks-headline">{number}{warnings}</div>'
