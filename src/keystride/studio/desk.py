"""One animator's desk: the script being edited, the robot that plays it, the forecast. No browser, no threads.

While paused, what stands at the play head is always what the script as it is now leads to: after an edit the past is
simulated anew. While playing, an edit changes what lies ahead of the robot, and nothing behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keystride.evaluation.recording import Recording, record
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.limits import control_step
from keystride.keyframes.resolve import resolve
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.studio import draft as drafts
from keystride.studio.controllers import STAND_STILL, Controller, StandStill
from keystride.studio.draft import Draft
from keystride.studio.forecast import Chances, Question
from keystride.studio.history import Document
from keystride.studio.pace import Pace
from keystride.studio.player import Player
from keystride.studio.posing import new_keyframe
from keystride.studio.summary import keyframe_states

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
BUDGET = 0.012  # s of simulation between two frames
SETTLE = 0.15  # s after an edit until the past is simulated anew
COPY_DELAY = 0.5  # s from a keyframe to its duplicate
FRICTION = 0.8  # the model's own
NOWHERE = np.zeros((0, 2))


@dataclass(frozen=True)
class Grip:
    """Edits that belong together. Held, they end when the animator lets go; otherwise after a pause."""

    gesture: Any
    held: bool = False


class Desk:
    def __init__(self, draft: Draft | None = None, name: str = "untitled.yaml") -> None:
        self.document = Document(draft)
        self.name = name
        self.policy = STAND_STILL
        self.player = Player(StandStill(), FRICTION)
        self.pace = Pace()
        self.playing = self.loop = False
        self.odds: dict[int, float] = {}
        self.falls = 0.0  # share of roll-outs that fell
        self.expected = NOWHERE
        self.recording: Recording | None = None
        self._states: dict[int, str] = {}
        self._edited = -SETTLE
        self._shown: Draft | None = None  # the draft that the player's goals were made from
        self._question: Question | None = None
        if self.document.draft.keys:
            self.document.select(self.document.draft.keys[0])

    @property
    def draft(self) -> Draft:
        return self.document.draft

    @property
    def selected(self) -> int | None:
        return self.document.selected

    @property
    def head(self) -> float:
        """Seconds."""
        return self.player.head * CONTROL_DT

    # Editing. ScriptError is raised where a change is not allowed.

    def edit(
        self, change: Callable[[Draft], Draft], now: float, grip: Grip | None = None, select: int | None = None
    ) -> None:
        before = self.draft
        gesture, time = (grip.gesture, None if grip.held else now) if grip else (None, None)
        self.document.edit(change(before), select, gesture, time)
        if self.draft is not before:
            self._changed(now)

    def add(self, time: float, now: float) -> None:
        keyframe = new_keyframe(self.draft, time)
        self.edit(lambda draft: drafts.add(draft, keyframe), now, select=self.draft.next_key)

    def duplicate(self, now: float) -> None:
        key = self.selected
        if key is not None:
            self.edit(lambda draft: drafts.duplicate(draft, key, COPY_DELAY), now, select=self.draft.next_key)

    def delete(self, now: float) -> None:
        key = self.selected
        if key is None:
            return
        row = self.draft.row(key)
        self.edit(lambda draft: drafts.remove(draft, key), now)
        keys = self.draft.keys
        self.document.select(keys[min(row, len(keys) - 1)] if keys else None)

    def retime(self, key: int, time: float, now: float, *, held: bool = False) -> None:
        if key in self.draft.keys:
            self.edit(lambda draft: drafts.retime(draft, key, time), now, Grip(("time", key), held))

    def nudge(self, steps: int, now: float) -> None:
        if self.selected is not None:
            time = self.draft.keyframe(self.selected).time + steps * CONTROL_DT
            self.retime(self.selected, time, now)

    def select_next(self, rows: int) -> None:
        keys = self.draft.keys
        if keys:
            row = keys.index(self.selected) + rows if self.selected in keys else 0
            self.document.select(keys[min(max(row, 0), len(keys) - 1)])

    def undo(self, now: float) -> None:
        if self.document.undo():
            self._changed(now)

    def redo(self, now: float) -> None:
        if self.document.redo():
            self._changed(now)

    def open(self, draft: Draft, name: str, now: float) -> None:
        """Another script, from its start."""
        self.document.replace(draft)
        self.name = name
        self.playing = False
        self._changed(now)
        self.player.restart()

    # Playing.

    def toggle(self, now: float) -> None:
        self.playing = not self.playing
        if self.playing:
            self._take_up(live=False)
            self.pace.start(now)
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

    def faster(self, notches: int) -> None:
        notch = int(np.argmin(np.abs(np.array(SPEEDS) - self.pace.speed))) + notches
        self.pace.speed = SPEEDS[min(max(notch, 0), len(SPEEDS) - 1)]

    def shove(self, velocity: Floats) -> None:
        self.player.push(velocity)

    def set_controller(self, controller: Controller, name: str) -> None:
        self.policy = name
        self.player.set_controller(controller)
        self._forget_forecast()

    def set_friction(self, friction: float) -> None:
        self.player.set_friction(friction)
        self._forget_forecast()

    def tick(self, now: float) -> bool:
        """Whatever is due at this time, in seconds; whether a pass came to its end."""
        if not self.playing and self._shown is not self.draft and now - self._edited >= SETTLE:
            self._take_up(live=False)
        ended = self._play(self.pace.due(now)) if self.playing else False
        if not self.playing:
            self.player.catch_up(BUDGET)
        return ended

    # What is to be seen.

    def states(self) -> dict[int, str]:
        """By key; while an edit has not settled yet, as it was before."""
        if self._shown is self.draft:
            steps = self.player.goals.step[0].tolist()
            words = keyframe_states(steps, self.player.verdicts()) if self.draft.keys else []
            self._states = dict(zip(self.draft.keys, words, strict=True))
        return {key: self._states.get(key, "coming") for key in self.draft.keys}

    def question(self, now: float) -> Question | None:
        """What a forecast is wanted of, when it was not asked before and edits have settled."""
        script = self.draft.script()
        if self._question is not None or script is None or now - self._edited < SETTLE:
            return None
        self._question = Question(script, self.policy, self.player.friction)
        return self._question

    def answer(self, question: Question, chances: Chances) -> None:
        if question is self._question:
            self.odds = dict(zip(self.draft.keys, chances.shares, strict=True))
            self.falls = chances.falls / chances.rollouts
            self.expected = chances.path

    def _changed(self, now: float) -> None:
        self._edited = now
        self._forget_forecast()
        if self.playing:
            self._take_up(live=True)

    def _forget_forecast(self) -> None:
        self._question = None
        self.odds, self.expected = {}, NOWHERE

    def _take_up(self, *, live: bool) -> None:
        """Give the player the script as it is now."""
        if self._shown is self.draft:
            return
        self._shown = self.draft
        script = self.draft.script()
        self.player.set_goals(resolve(script) if script else None, live=live)

    def _play(self, steps: int) -> bool:
        before, player = self.player.head, self.player
        player.seek(min(before + steps, player.end))
        if not player.catch_up(BUDGET):
            player.seek(max(before, player.recorded))
        ended = player.finished
        self.pace.given += steps if ended else player.head - before
        if ended:
            self._end_pass()
        return ended

    def _end_pass(self) -> None:
        script = self.draft.script()
        if script is not None and self.player.recorded >= self.player.end:
            labels = tuple(keyframe.label or "" for keyframe in script.keyframes)
            title = self.name.rsplit(".", 1)[0]
            self.recording = record(self.player.rollout(), 0, GO2, title=title, policy=self.policy, labels=labels)
        self.playing = self.loop
        if self.loop:
            self.player.restart()
