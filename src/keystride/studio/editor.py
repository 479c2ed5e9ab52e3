"""The editor of one user: the script, the simulation that plays it and the forecast, without a browser or threads.

While paused, the play head always shows what the current script leads to: after an edit the past is simulated again
from the first difference. While playing, an edit changes only what is still ahead of the robot.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from keystride.evaluation.recording import Recording, record
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.inbetween.planner import WaypointPlan
from keystride.keyframes.resolve import resolve
from keystride.keyframes.script import Keyframe, control_step
from keystride.policy.guide import outside_training, planned
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats
from keystride.studio.document import draft as drafts
from keystride.studio.document import posing
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import Document
from keystride.studio.document.posing import new_keyframe
from keystride.studio.playback.controllers import STAND_STILL, Controller, StandStill
from keystride.studio.playback.forecast import Chances, Forecast, Question
from keystride.studio.playback.player import PlaybackClock, Player, keyframe_states

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
BUDGET = 0.012  # s of simulation per frame
RESIMULATE_DELAY = 0.15  # s from an edit to simulating the past again
COPY_DELAY = 0.5  # s from a keyframe to its duplicate
DEFAULT_FRICTION = 0.8  # of the model
FRICTION_LIMITS = (0.05, 2.0)


@dataclass(frozen=True)
class Gesture:
    """Edits that are undone together. A held gesture ends when the user lets go, others after a pause."""

    name: Any
    held: bool = False


class Editor:
    def __init__(self, document: Document, *, inbetween: bool = True) -> None:
        self.document, self.robot = document, document.draft.robot
        self.policy = STAND_STILL
        self.player = Player(self.robot, StandStill(self.robot), DEFAULT_FRICTION, inbetween=inbetween)
        self.clock = PlaybackClock()
        self.playing = self.loop = False
        self.range: tuple[float, float] | None = None  # s, looped range
        self.forecast = Forecast()
        self.recording: Recording | None = None
        self._clipboard: tuple[Keyframe, ...] = ()
        self._states: dict[int, str] = {}
        self._edited = -RESIMULATE_DELAY
        self._applied: Draft | None = None  # the draft that the player has
        self._question: Question | None = None

    @property
    def draft(self) -> Draft:
        return self.document.draft

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def selected(self) -> int | None:
        return self.document.selected

    @property
    def head(self) -> float:
        """Time of the play head, s."""
        return self.player.head * CONTROL_DT

    @property
    def simulating(self) -> bool:
        """Whether the simulation has to catch up with an edit or with the play head."""
        return not self.playing and (self.player.waiting or self._applied is not self.draft)

    # Editing. Raises ScriptError if a change is not allowed.

    def edit(
        self,
        change: Callable[[Draft], Draft],
        now: float,
        gesture: Gesture | None = None,
        select: Iterable[int] | None = None,
    ) -> None:
        before = self.draft
        name, time = (gesture.name, None if gesture.held else now) if gesture else (None, None)
        self.document.edit(change(before), select, name, time)
        if self.draft is not before:
            self._changed(now)

    def add(self, time: float, now: float) -> None:
        keyframe = new_keyframe(self.draft, time)
        self.edit(lambda draft: drafts.add(draft, keyframe), now, select=(self.draft.next_key,))

    def duplicate(self, now: float) -> None:
        """Insert copies of the selected keyframes after the last of them; relative ones keep their offsets."""
        keyframes = self._selected_keyframes()
        if keyframes:
            self._insert(keyframes, keyframes[-1].time + COPY_DELAY, now)

    def copy(self) -> None:
        self._clipboard = self._selected_keyframes() or self._clipboard

    def cut(self, now: float) -> None:
        self.copy()
        self.delete(now)

    def paste(self, now: float) -> None:
        """Insert the copied keyframes, the first one at the play head."""
        if self._clipboard:
            self._insert(self._clipboard, max(self.head, CONTROL_DT), now)

    def delete(self, now: float, *, ripple: bool = False) -> None:
        """Delete the selected keyframes and select the next one. If `ripple`, close the gap in time."""
        keys = self.document.selection
        if not keys:
            return
        rows = [self.draft.row(key) for key in keys]
        later = [key for key in self.draft.keys[min(rows) :] if key not in keys]
        earlier = self.draft.keys[: min(rows)]
        remove = drafts.ripple_remove if ripple else drafts.remove
        self.edit(lambda draft: remove(draft, keys), now, select=later[:1] or earlier[-1:])

    def retime(self, key: int, time: float, now: float, *, held: bool = False) -> None:
        """Move a keyframe in time; if it is selected, the whole selection moves with it."""
        if key not in self.draft.keys:
            return
        keys = self.document.selection if key in self.document.selection else (key,)
        first = min(self.draft.keyframe(each).time for each in keys)
        delta = max(time - self.draft.keyframe(key).time, CONTROL_DT - first)
        times = {each: self.draft.keyframe(each).time + delta for each in keys}
        self.edit(lambda draft: drafts.set_times(draft, times), now, Gesture(("time", key), held))

    def scale_times(self, pivot: float, factor: float, now: float, start: dict[int, float] | None = None) -> None:
        """Scale the selected keyframes in time about a pivot, as a held gesture; `start` has their times before it."""
        times = start or {key: self.draft.keyframe(key).time for key in self.document.selection}
        scaled = {key: pivot + (time - pivot) * factor for key, time in times.items() if key in self.draft.keys}
        self.edit(lambda draft: drafts.set_times(draft, scaled), now, Gesture("scale", held=True))

    def nudge(self, steps: int, now: float) -> None:
        if self.selected is not None:
            time = self.draft.keyframe(self.selected).time + steps * CONTROL_DT
            self.retime(self.selected, time, now)

    def select(self, keys: Iterable[int]) -> None:
        self.document.select(keys)

    def toggle_selected(self, key: int) -> None:
        others = [each for each in self.document.selection if each != key]
        self.document.select(others if key in self.document.selection else [*others, key])

    def select_next(self, rows: int, *, extend: bool = False) -> None:
        keys = self.draft.keys
        if keys:
            row = keys.index(self.selected) + rows if self.selected in keys else 0
            key = keys[min(max(row, 0), len(keys) - 1)]
            self.document.select([*(each for each in self.document.selection if each != key), key] if extend else [key])

    def undo(self, now: float) -> None:
        if self.document.undo():
            self._changed(now)

    def redo(self, now: float) -> None:
        if self.document.redo():
            self._changed(now)

    def open(
        self,
        draft: Draft,
        name: str,
        now: float,
        digest: str | None = None,
        text: str | None = None,
        *,
        uploaded: bool = False,
    ) -> None:
        """Open another script and go to its start."""
        self.document.open(draft, name, digest, text, uploaded=uploaded)
        self.playing, self.range = False, None
        self._changed(now)
        self.player.restart()

    def restore(self, document: Document, now: float) -> None:
        """Continue with a document and its history."""
        self.document = document
        self.playing = False
        self._changed(now)

    # Playing.

    def toggle(self, now: float) -> None:
        self.playing = not self.playing
        if self.playing:
            self._apply(live=False)
            self.clock.start(now)
            if self.player.finished:
                self.player.restart()

    def restart(self) -> None:
        self.player.restart()

    def seek(self, time: float) -> None:
        self.playing = False
        self.player.seek(control_step(max(time, 0.0)))

    def step(self, steps: int) -> None:
        self.playing = False
        self.player.seek(self.player.head + steps)

    def jump(self, keyframes: int) -> None:
        """Move the play head to the next keyframe, or to the previous one if negative."""
        steps = [mark.keyframe.step for mark in self.draft.marks]
        ahead = [step for step in steps if step > self.player.head] if keyframes > 0 else []
        behind = [0, *(step for step in steps if step < self.player.head)] if keyframes < 0 else []
        if ahead or behind:
            self.seek((ahead[0] if ahead else behind[-1]) * CONTROL_DT)

    def faster(self, notches: int) -> None:
        notch = int(np.argmin(np.abs(np.array(SPEEDS) - self.clock.speed))) + notches
        self.clock.speed = SPEEDS[min(max(notch, 0), len(SPEEDS) - 1)]

    def shove(self, velocity: Floats) -> None:
        self.player.push(velocity)

    def set_controller(self, controller: Controller, name: str) -> None:
        """Set the controller from the play head on."""
        self.policy = name
        self.player.set_controller(controller)
        self._outdate_forecast()

    def set_friction(self, friction: float) -> None:
        """Set the friction from the play head on, kept within limits; a page may send any number."""
        if isfinite(friction) and friction != self.player.friction:
            self.player.set_friction(min(max(friction, FRICTION_LIMITS[0]), FRICTION_LIMITS[1]))
            self._outdate_forecast()

    def tick(self, now: float) -> bool:
        """Do what is due at a time, in seconds; return whether a pass has ended."""
        if not self.playing and self._applied is not self.draft and now - self._edited >= RESIMULATE_DELAY:
            self._apply(live=False)
        ended = self._play(self.clock.due(now)) if self.playing else False
        if not self.playing:
            self.player.catch_up(BUDGET)
        return ended

    # What the page shows.

    def states(self) -> dict[int, str]:
        """Return the state of each keyframe by key; unchanged until an edit is applied."""
        if self._applied is self.draft:
            steps = self.player.goals.step[0].tolist()
            words = keyframe_states(steps, self.player.verdicts()) if self.draft.keys else []
            self._states = dict(zip(self.draft.keys, words, strict=True))
        return {key: self._states.get(key, "coming") for key in self.draft.keys}

    def outside_training(self) -> dict[int, list[str]]:
        """Return by key how the script leaves the ranges that the policy was trained on."""
        script, controller = self.draft.script(), self.player.controller
        found: dict[int, list[str]] = {}
        if script is not None and isinstance(controller, Policy):
            for one in outside_training(script, controller.metadata, self.robot, inbetween=self.player.inbetween):
                found.setdefault(self.draft.keys[one.row], []).append(one.message)
        return found

    def path_on_stage(self) -> WaypointPlan | None:
        """Return the path with the waypoints of the policy, to check against the stage; None if there is no stage."""
        script, controller = self.draft.script(), self.player.controller
        if script is None or script.stage is None or not isinstance(controller, Policy) or not self.player.inbetween:
            return None
        return planned(script, controller.metadata, self.robot)

    def question(self, now: float) -> Question | None:
        """Return the next question for the forecast; None if there is nothing new, or an edit was made just now."""
        script = self.draft.script()
        if self._question is not None or script is None or now - self._edited < RESIMULATE_DELAY:
            return None
        player = self.player
        self._question = Question(self.robot, script, self.policy, player.friction, inbetween=player.inbetween)
        return self._question

    def answer(self, question: Question, chances: Chances) -> None:
        if question is self._question:
            self.forecast = Forecast.from_chances(self.draft.keys, chances)

    def follow_tip(self, key: int, kind: str, now: float) -> None:
        """Apply a suggestion of the forecast to a keyframe; a delay also applies to all later keyframes."""
        tip = next((tip for tip in self.forecast.tips.get(key, ()) if tip.kind == kind), None)
        if tip is None or key not in self.draft.keys:
            return
        if tip.time is not None:
            delay = tip.time - self.draft.keyframe(key).time
            later = self.draft.marks[self.draft.row(key) :]
            times = {mark.key: mark.keyframe.time + delay for mark in later}
            self.edit(lambda draft: drafts.set_times(draft, times), now)
        elif tip.position is not None:
            place = np.array(tip.position)
            self.edit(lambda draft: posing.place_keyframe(draft, key, place), now)
        elif tip.component is not None:
            component = tip.component
            self.edit(lambda draft: posing.set_component(draft, key, component, False), now)

    def _selected_keyframes(self) -> tuple[Keyframe, ...]:
        return tuple(mark.keyframe for mark in self.draft.marks if mark.key in self.document.selection)

    def _insert(self, keyframes: tuple[Keyframe, ...], time: float, now: float) -> None:
        """Insert keyframes, the first at a time and the others at their distances from it, and select them."""
        delta, key = time - keyframes[0].time, self.draft.next_key
        moved = [each.model_copy(update={"time": each.time + delta}) for each in keyframes]
        self.edit(lambda draft: drafts.insert(draft, moved), now, select=range(key, key + len(moved)))

    def _changed(self, now: float) -> None:
        self._edited = now
        self._outdate_forecast()
        if self.playing:
            self._apply(live=True)

    def _outdate_forecast(self) -> None:
        self._question = None
        self.forecast.stale = True

    def _apply(self, *, live: bool) -> None:
        """Pass the current script to the player."""
        if self._applied is self.draft:
            return
        self._applied = self.draft
        script = self.draft.script()
        self.player.set_goals(resolve(script, self.robot) if script else None, live=live)

    def _play(self, steps: int) -> bool:
        before, player = self.player.head, self.player
        player.seek(min(before + steps, player.end))
        if not player.catch_up(BUDGET):
            player.seek(max(before, player.recorded))
        ended = player.finished
        self.clock.given += steps if ended else player.head - before
        if ended:
            self._end_pass()
        elif self.loop and self.range and self.head >= self.range[1]:
            player.seek(control_step(self.range[0]))
        return ended

    def _end_pass(self) -> None:
        script = self.draft.script()
        if script is not None and self.player.recorded >= self.player.end:
            labels = tuple(keyframe.label or "" for keyframe in script.keyframes)
            title = self.name.rsplit(".", 1)[0]
            self.recording = record(
                self.player.rollout(), 0, self.robot, title=title, policy=self.policy, labels=labels
            )
        self.playing = self.loop
        if self.loop:
            self.player.restart()
            if self.range:
                self.player.seek(control_step(self.range[0]))
