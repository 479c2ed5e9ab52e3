"""Everything that a browser shows of an editor. Values are sent only if they have changed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from keystride import colours
from keystride.evaluation.episodes import NEVER_FELL, THRESHOLDS
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT
from keystride.keyframes.script import Keyframe
from keystride.robot.description import Floats, Robot
from keystride.studio.document.draft import Draft
from keystride.studio.document.keyframe_poses import Ghost, ghost_warnings, ghosts
from keystride.studio.document.posing import legs_at_limits
from keystride.studio.editor import Editor
from keystride.studio.page import handles
from keystride.studio.page.figure import Figure
from keystride.studio.page.ghost_scene import Actions, Caption, GhostScene
from keystride.studio.page.ground import StageShapes
from keystride.studio.page.page_channel import PageChannel
from keystride.studio.page.scene import LiveGhost, Scene
from keystride.studio.playback.coaching import MISSED_SHARE
from keystride.studio.unsaved_work import dump

NOW_EVERY = 0.04  # s
BEAT_EVERY = 1.0  # s; the session sends a message at least this often
TRACE_PERIOD = 0.15  # s
SCENE_PARTS: tuple[str, ...] = ("keyframes", "path", "trace")

Odds = Mapping[int, float]  # by key: share of rollouts that met the keyframe
Warnings = Mapping[int, Sequence[str]]
ShowKeyframe = Callable[[Draft, int | None, Ghost | None, str], None]  # `KeyframePanel.show`


class View:
    def __init__(self, client: viser.ClientHandle, robot: Robot, channel: PageChannel, actions: Actions) -> None:
        self.figure = figure = Figure(robot)
        self.scene = Scene(client, figure)
        self._ghosts = GhostScene(client, figure, self.scene, actions)
        self._stage_shapes = StageShapes(client)
        self.live_ghost = LiveGhost(client, figure)
        self._channel = channel
        self.visible = dict.fromkeys(SCENE_PARTS, True)
        self._seen: dict[str, Any] = {}
        self._times: dict[str, float] = {}

    @property
    def clicked(self) -> int | None:
        """Return the keyframe whose ghost was clicked just now."""
        return self._ghosts.clicked

    def refresh(self) -> None:
        """Send the script again even if it is unchanged, because the page may show something else."""
        self._seen.pop("script", None)

    def set_visible(self, part: str, on: bool) -> None:
        self.visible[part] = on
        self.scene.set_visible(path=self.visible["path"], trace=self.visible["trace"])
        self._ghosts.set_visible(self.visible["keyframes"])

    def greet(self) -> None:
        """Tell the page the identifier of its session."""
        self._channel.show("now", {"waiting": True, "read": self._channel.read})

    def show(self, editor: Editor, show_keyframe: ShowKeyframe, *, changed_on_disk: bool, queued: bool) -> None:
        """Show the editor; `queued` says that its forecast waits for those of other browsers."""
        player, states = editor.player, editor.states()
        at = (player.head, player.recorded, player.trajectory)
        if self._news("robot", at) or self.scene.gliding:
            self.scene.show_robot(player.pose())
        if self._news("trace", at[1:], every=TRACE_PERIOD):
            self.scene.show_trace(player.trajectory.column("position"))
            self.scene.show_waypoints(player.waypoints)
        now = _now(editor) | {"read": self._channel.read}
        if self._news("now", now, every=NOW_EVERY) or self._late("now", BEAT_EVERY):
            self._channel.show("now", now | {"beat": self._times["now"]})
        document, forecast = editor.document, editor.forecast
        flags = {"changedOnDisk": changed_on_disk, "queued": queued}
        script = (document.now, document.unsaved, states, forecast, forecast.stale, editor.policy, flags)
        if self._news("script", script):
            self._show_script(editor, states, show_keyframe, flags)

    def _show_script(
        self, editor: Editor, states: dict[int, str], show_keyframe: ShowKeyframe, flags: Mapping[str, bool]
    ) -> None:
        draft, key, found = editor.draft, editor.selected, ghosts(editor.draft)
        doubts, forecast = ghost_warnings(draft, editor.path_on_stage()), editor.forecast
        for doubtful, messages in editor.outside_training().items():
            doubts.setdefault(doubtful, []).extend(messages)
        self._stage_shapes.show(draft.stage)
        self.scene.show_expected(forecast.path)
        self.scene.show_path(ghost.position for ghost in found.values() if ghost.placed)
        self._ghosts.show(found, captions(draft, states, forecast.odds, doubts, stale=forecast.stale), key)
        self._ghosts.set_visible(self.visible["keyframes"])
        self._channel.show(
            "script",
            {
                "latest": dump(editor.document, steps=0),
                "name": editor.name,
                "unsaved": editor.document.unsaved,
                **flags,
                "undo": editor.document.can_undo,
                "redo": editor.document.can_redo,
                "selected": key,
                "selection": editor.document.selection,
                "note": _note(editor),
                "stale": forecast.stale,
                "progress": round(forecast.progress, 2),
                "tips": _tips(editor),
                "marks": marks(draft, states, forecast.odds, doubts, forecast.errors),
            },
        )
        said = [] if key is None else [*doubts.get(key, []), *_limits(found.get(key))]
        head = _head(editor, key, states, said)
        show_keyframe(draft, key, found.get(key) if key is not None else None, head)

    def _late(self, name: str, every: float) -> bool:
        """Return whether nothing was sent for this long, and count this as sent."""
        now = time.perf_counter()
        if now - self._times[name] < every:
            return False
        self._times[name] = now
        return True

    def _news(self, name: str, value: Any, every: float = 0.0) -> bool:
        """Return whether a value is new and enough time has passed since the last message; count it as sent if so."""
        now = time.perf_counter()
        if name in self._seen and (self._seen[name] == value or now - self._times[name] < every):
            return False
        self._seen[name], self._times[name] = value, now
        return True


def _now(editor: Editor) -> dict[str, Any]:
    player = editor.player
    return {
        "head": round(editor.head, 2),
        "recorded": round(min(player.recorded, player.end) * CONTROL_DT, 2),
        "end": round(player.end * CONTROL_DT, 2),
        "playing": editor.playing,
        "simulating": editor.simulating,
        "speed": editor.clock.speed,
        "loop": editor.loop,
        "range": editor.range,
        "friction": round(player.friction, 3),
        "shoves": [round(step * CONTROL_DT, 2) for step in player.pushes],
        "fell": None if player.fell == NEVER_FELL else round(player.fell * CONTROL_DT, 2),
    }


def _tips(editor: Editor) -> dict[str, Any] | None:
    """Return the suggestions for the selected keyframe, or else for the first missed one."""
    keys = (editor.selected, *editor.draft.keys)
    found = next((key for key in keys if key is not None and editor.forecast.tips.get(key)), None)
    if found is None or editor.forecast.stale:
        return None
    tips = [{"kind": tip.kind, "text": tip.text} for tip in editor.forecast.tips[found]]
    return {"key": found, "number": editor.draft.row(found) + 1, "tips": tips}


def _note(editor: Editor) -> str:
    forecast = editor.forecast
    falls = f" · falls in {forecast.falls:.0%} of trials" if forecast.odds and forecast.falls >= 0.005 else ""
    return f"{Path(editor.policy).name}{falls}"


def _head(editor: Editor, key: int | None, states: dict[int, str], doubts: list[str]) -> str:
    """Return the HTML above the values of the selected keyframe."""
    if key is None:
        return '<p class="ks-headline">Select a keyframe on the timeline or in the scene, or press K to add one.</p>'
    odds = editor.forecast.odds.get(key)
    chance = "" if odds is None else f" · met in {odds:.0%} of trials"
    over = "" if key not in editor.forecast.errors else ", ".join(misses(editor.forecast.errors[key]))
    chance += f" · {over}" if over else ""
    if editor.forecast.stale and chance:
        chance = f'<span class="ks-stale">{chance}</span>'
    number = f"<b>Keyframe {editor.draft.row(key) + 1} of {len(editor.draft.keys)}</b> · {states[key]}{chance}"
    warnings = "".join(f'<div class="ks-doubt">⚠ {escape(doubt)}</div>' for doubt in doubts)
    return f'<div class="ks-headline">{number}{warnings}</div>'


def _limits(ghost: Ghost | None) -> list[str]:
    """Name the legs of a posed ghost that are red in the scene."""
    if ghost is None or not ghost.posed:
        return []
    legs = zip(handles.FEET, legs_at_limits(ghost), strict=True)
    return [f"{foot.removesuffix(' foot')} leg: a joint is at its limit" for foot, at_limit in legs if at_limit]


def misses(errors: Floats) -> list[str]:
    """Say by how much the median rollout exceeds each threshold; errors (6,) are in the units of METRICS."""
    found = []
    for name, error, limit in zip((*COMPONENTS, "height"), errors.tolist(), astuple(THRESHOLDS), strict=True):
        unit = ".2f} m" if name in ("position", "height") else ".1f}°"
        if error > limit:
            found.append(f"{name} " + ("{:" + unit).format(error - limit) + " over")
    return found


def marks(
    draft: Draft, states: Mapping[int, str], odds: Odds, warnings: Warnings, errors: Mapping[int, Floats] | None = None
) -> list[dict[str, Any]]:
    limits, errors = np.array(astuple(THRESHOLDS)), errors or {}
    return [
        {
            "key": mark.key,
            "number": number,
            "time": mark.keyframe.time,
            "label": mark.keyframe.label or "",
            "state": states[mark.key],
            "colour": colours.as_hex(colours.KEYFRAME_COLOURS[states[mark.key]]),
            "odds": round(100 * odds[mark.key]) if mark.key in odds else None,
            "oddsColour": colours.as_hex(colours.likelihood(odds[mark.key])) if mark.key in odds else None,
            "asks": asks(mark.keyframe),
            "parts": [getattr(mark.keyframe, component) is not None for component in COMPONENTS],
            "over": _over(_failing(errors[mark.key] / limits, odds.get(mark.key))) if mark.key in errors else [],
            "misses": misses(errors[mark.key]) if mark.key in errors else [],
            "warnings": list(warnings.get(mark.key, ())),
        }
        for number, mark in enumerate(draft.marks, start=1)
    ]


def _failing(ratios: Floats, odds: float | None) -> NDArray[np.bool_]:
    """Return (6,) which metrics the median rollout exceeds; if most rollouts miss for several reasons, the worst one."""
    over = ratios > 1.0
    if not over.any() and odds is not None and odds < MISSED_SHARE and not np.isnan(ratios).all():
        over[np.nanargmax(ratios)] = True
    return over


def _over(over: NDArray[np.bool_]) -> list[bool]:
    """Combine metrics (6,) to components (5,): the height, the last metric, belongs to the position."""
    return [bool(over[0] or over[-1]), *over[1:-1].tolist()]


def captions(
    draft: Draft, states: Mapping[int, str], odds: Odds, warnings: Warnings, *, stale: bool = False
) -> dict[int, Caption]:
    return {
        mark.key: Caption(_caption(number, odds.get(mark.key), mark.key in warnings, stale), states[mark.key])
        for number, mark in enumerate(draft.marks, start=1)
    }


def asks(keyframe: Keyframe) -> str:
    """Return the names of the components that a keyframe asks for."""
    present = [component for component in COMPONENTS if getattr(keyframe, component) is not None]
    return ", ".join(present)


def _caption(number: int, odds: float | None, doubtful: bool, stale: bool) -> str:
    """Return the label of a ghost. It has only one colour, so odds from before the last edit are in brackets."""
    chance = "" if odds is None else f"  ({round(100 * odds)}%)" if stale else f"  {round(100 * odds)}%"
    return f"{number}{chance}{'  !' if doubtful else ''}"
