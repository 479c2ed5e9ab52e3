"""A script while it is being edited: an immutable draft, and edits as functions that return a new draft.

Unlike a script, a draft may be empty, and each keyframe has a key that it keeps when its time changes. Adding, removing
and retiming keyframes does not move the others in space, even those that are relative to the previous keyframe.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import cos, sin
from typing import Any

from keystride.keyframes.files import validate_script
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import MAX_SECONDS, Keyframe, Script, Unit, check_joint_limits, control_step
from keystride.keyframes.stage import Stage
from keystride.robot.description import Robot

LAST_STEP = control_step(MAX_SECONDS)


@dataclass(frozen=True)
class Mark:
    """A keyframe on the timeline."""

    key: int
    keyframe: Keyframe


@dataclass(frozen=True)
class Draft:
    """Keyframes in the order of their times."""

    robot: Robot
    marks: tuple[Mark, ...] = ()
    angles: Unit = "degrees"
    next_key: int = 1
    version: int = 1  # of the file
    stage: Stage | None = None

    @property
    def keys(self) -> tuple[int, ...]:
        return tuple(mark.key for mark in self.marks)

    @property
    def end(self) -> float:
        """Time of the last keyframe, s."""
        return self.marks[-1].keyframe.time if self.marks else 0.0

    def row(self, key: int) -> int:
        return self.keys.index(key)

    def keyframe(self, key: int) -> Keyframe:
        return self.marks[self.row(key)].keyframe

    def script(self) -> Script | None:
        """Return the script; None if there are no keyframes."""
        if not self.marks:
            return None
        keyframes = tuple(mark.keyframe for mark in self.marks)
        fields = {"version": self.version, "angles": self.angles, "stage": self.stage, "keyframes": keyframes}
        return Script.model_validate(fields, context=self.robot)


def from_script(script: Script, robot: Robot) -> Draft:
    """Return a draft of the script for a robot; ScriptError if joints exceed its limits."""
    check_joint_limits(script, robot)
    marks = tuple(Mark(key, keyframe) for key, keyframe in enumerate(script.keyframes, start=1))
    return Draft(robot, marks, script.angles, len(marks) + 1, script.version, script.stage)


def add(draft: Draft, keyframe: Keyframe) -> Draft:
    """Add a keyframe at the free control step nearest to its time; its key is the old draft's next_key."""
    time = _free_time(draft.marks, keyframe.time)
    marks = (*draft.marks, Mark(draft.next_key, keyframe.model_copy(update={"time": time})))
    return keep_places(draft, _checked(draft, marks, draft.next_key + 1))


def remove(draft: Draft, keys: Collection[int]) -> Draft:
    """Remove keyframes. Keyframes that were relative to a removed one stay in place."""
    marks = [mark for mark in draft.marks if mark.key not in keys]
    return keep_places(draft, _checked(draft, marks, draft.next_key))


def ripple_remove(draft: Draft, keys: Collection[int]) -> Draft:
    """Remove keyframes and close the gaps in time: the keyframe after each removed one takes its time."""
    times = {mark.key: mark.keyframe.step for mark in draft.marks}
    for row in reversed(range(len(draft.marks))):
        if draft.marks[row].key in keys and row + 1 < len(draft.marks):
            gap = times[draft.marks[row + 1].key] - times[draft.marks[row].key]
            for mark in draft.marks[row + 1 :]:
                times[mark.key] -= gap
    kept = [key for key in draft.keys if key not in keys]
    return set_times(remove(draft, keys), {key: times[key] * CONTROL_DT for key in kept})


def insert(draft: Draft, keyframes: Sequence[Keyframe]) -> Draft:
    """Add keyframes at the free control steps nearest to their times; their keys count up from the draft's next_key."""
    for keyframe in keyframes:
        draft = add(draft, keyframe)
    return draft


def retime(draft: Draft, key: int, time: float) -> Draft:
    """Move a keyframe to the free control step nearest to a time; it may pass others."""
    return set_times(draft, {key: time})


def set_times(draft: Draft, times: Mapping[int, float]) -> Draft:
    """Move several keyframes, each to the nearest control step that is still free."""
    placed = [mark for mark in draft.marks if mark.key not in times]
    for key, time in sorted(times.items(), key=lambda entry: entry[1]):
        keyframe = draft.keyframe(key).model_copy(update={"time": _free_time(placed, time)})
        placed.append(Mark(key, keyframe))
    return keep_places(draft, _checked(draft, placed, draft.next_key))


def scale_times(draft: Draft, keys: Collection[int], pivot: float, factor: float) -> Draft:
    """Scale the times of keyframes about a pivot, in seconds."""
    times = {mark.key: mark.keyframe.time for mark in draft.marks if mark.key in keys}
    return set_times(draft, {key: pivot + (time - pivot) * factor for key, time in times.items()})


def keep_places(before: Draft, after: Draft) -> Draft:
    """Rewrite the offsets of relative keyframes so that each stays in place."""
    script = before.script()
    if script is None or not any(mark.keyframe.relative for mark in after.marks):
        return after
    places = dict(zip(before.keys, spots(script), strict=True))
    for key in after.keys:
        keyframe = after.keyframe(key)
        if keyframe.relative and keyframe.position and key in places:
            x, y = relative_to_spot(previous_spot(after, key), places[key].x, places[key].y)
            position = (round(x, 3) + 0.0, round(y, 3) + 0.0, *keyframe.position[2:])
            if max(abs(a - b) for a, b in zip(position, keyframe.position, strict=True)) > 5e-4:
                after = change(after, key, position=position)
    return after


def change(draft: Draft, key: int, **fields: Any) -> Draft:
    """Change fields of one keyframe, given as in a file. Raise ScriptError if the result is invalid."""
    draft.row(key)
    marks = [(mark.key, _fields(mark) | (fields if mark.key == key else {})) for mark in draft.marks]
    return _validated(draft, marks, draft.next_key, known=draft.marks)


def previous_spot(draft: Draft, key: int) -> Spot:
    """Return the place of the previous keyframe, from which a relative position is measured."""
    script, row = draft.script(), draft.row(key)
    return spots(script)[row - 1] if script and row else Spot()


def relative_to_spot(spot: Spot, x: float, y: float) -> tuple[float, float]:
    """Return a point as seen from a spot: the inverse of `Spot.ahead`."""
    c, s = cos(spot.yaw), sin(spot.yaw)
    x, y = x - spot.x, y - spot.y
    return c * x + s * y, -s * x + c * y


def _checked(draft: Draft, marks: Sequence[Mark], next_key: int) -> Draft:
    return _validated(draft, [(mark.key, _fields(mark)) for mark in marks], next_key, known=marks)


def _fields(mark: Mark) -> dict[str, Any]:
    return dict(mark.keyframe.__dict__)


def _validated(
    draft: Draft, marks: Sequence[tuple[int, dict[str, Any]]], next_key: int, known: Sequence[Mark]
) -> Draft:
    """Return the draft with other marks. Unchanged marks stay the same objects, so drafts of a history share them."""
    if not marks:
        return replace(draft, marks=(), next_key=next_key)
    marks = sorted(marks, key=lambda mark: mark[1]["time"])
    header = {"version": draft.version, "angles": draft.angles, "stage": draft.stage}
    script = validate_script({**header, "keyframes": [fields for _, fields in marks]}, draft.robot)
    old = {mark.key: mark for mark in known}
    new = (Mark(key, keyframe) for (key, _), keyframe in zip(marks, script.keyframes, strict=True))
    shared = tuple(old[mark.key] if mark == old.get(mark.key) else mark for mark in new)
    return replace(draft, marks=shared, next_key=next_key)


def _free_time(others: Sequence[Mark], time: float) -> float:
    """Return the time, in seconds, of the nearest control step after the start that no other keyframe uses."""
    taken = {mark.keyframe.step for mark in others}
    wanted = min(max(control_step(time), 1), LAST_STEP)
    for distance in range(LAST_STEP):
        for step in (wanted + distance, wanted - distance):
            if 1 <= step <= LAST_STEP and step not in taken:
                return round(step * CONTROL_DT, 6)
    raise ValueError("no control step is free")
