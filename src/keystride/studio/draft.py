"""The script while it is being edited: plain data, and every edit a function from one draft to the next.

Unlike a script, a draft may be empty, and each keyframe has a key that stays with it when its place in time changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.limits import control_step
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import MAX_SECONDS, Keyframe, Script, Unit
from keystride.keyframes.validate import validate_script

LAST_STEP = control_step(MAX_SECONDS)


@dataclass(frozen=True)
class Mark:
    """A keyframe on the timeline."""

    key: int
    keyframe: Keyframe


@dataclass(frozen=True)
class Draft:
    """Marks in the order of their times."""

    marks: tuple[Mark, ...] = ()
    angles: Unit = "degrees"
    next_key: int = 1

    @property
    def keys(self) -> tuple[int, ...]:
        return tuple(mark.key for mark in self.marks)

    @property
    def end(self) -> float:
        """Seconds until the last keyframe."""
        return self.marks[-1].keyframe.time if self.marks else 0.0

    def row(self, key: int) -> int:
        return self.keys.index(key)

    def keyframe(self, key: int) -> Keyframe:
        return self.marks[self.row(key)].keyframe

    def script(self) -> Script | None:
        """None while there is no keyframe."""
        if not self.marks:
            return None
        return Script(angles=self.angles, keyframes=tuple(mark.keyframe for mark in self.marks))


def from_script(script: Script) -> Draft:
    marks = tuple(Mark(key, keyframe) for key, keyframe in enumerate(script.keyframes, start=1))
    return Draft(marks, script.angles, len(marks) + 1)


def add(draft: Draft, keyframe: Keyframe) -> Draft:
    """One more keyframe, at the free control step nearest to its time; its key is the old draft's next_key."""
    time = _free_time(draft.marks, keyframe.time)
    marks = (*draft.marks, Mark(draft.next_key, keyframe.model_copy(update={"time": time})))
    return _checked(marks, draft.angles, draft.next_key + 1)


def remove(draft: Draft, key: int) -> Draft:
    draft.row(key)
    marks = [mark for mark in draft.marks if mark.key != key]
    return _checked(marks, draft.angles, draft.next_key)


def duplicate(draft: Draft, key: int, delay: float) -> Draft:
    """The same keyframe again, that many seconds later; a relative one goes on by its offset once more."""
    keyframe = draft.keyframe(key)
    return add(draft, keyframe.model_copy(update={"time": min(keyframe.time + delay, MAX_SECONDS)}))


def retime(draft: Draft, key: int, time: float) -> Draft:
    """Moved to another time, past others where it has to; nearest control step that no other keyframe holds."""
    others = [mark for mark in draft.marks if mark.key != key]
    return change(draft, key, time=_free_time(others, time))


def change(draft: Draft, key: int, **fields: Any) -> Draft:
    """Fields of one keyframe as they would stand in the file; ScriptError when that is not allowed."""
    draft.row(key)
    marks = [(mark.key, _fields(mark) | (fields if mark.key == key else {})) for mark in draft.marks]
    return _validated(marks, draft.angles, draft.next_key)


def before(draft: Draft, key: int) -> Spot:
    """Where the script says the robot is before this keyframe: relative positions are seen from there."""
    script, row = draft.script(), draft.row(key)
    return spots(script)[row - 1] if script and row else Spot()


def _checked(marks: Sequence[Mark], angles: Unit, next_key: int) -> Draft:
    return _validated([(mark.key, _fields(mark)) for mark in marks], angles, next_key)


def _fields(mark: Mark) -> dict[str, Any]:
    return dict(mark.keyframe.__dict__)


def _validated(marks: Sequence[tuple[int, dict[str, Any]]], angles: Unit, next_key: int) -> Draft:
    if not marks:
        return Draft((), angles, next_key)
    marks = sorted(marks, key=lambda mark: mark[1]["time"])
    script = validate_script({"version": 1, "angles": angles, "keyframes": [fields for _, fields in marks]})
    keys = [key for key, _ in marks]
    return Draft(tuple(map(Mark, keys, script.keyframes)), angles, next_key)


def _free_time(others: Sequence[Mark], time: float) -> float:
    """Seconds at the control step nearest to a time that is after the start and not taken."""
    taken = {mark.keyframe.step for mark in others}
    wanted = min(max(control_step(time), 1), LAST_STEP)
    for distance in range(LAST_STEP):
        for step in (wanted + distance, wanted - distance):
            if 1 <= step <= LAST_STEP and step not in taken:
                return round(step * CONTROL_DT, 6)
    raise ValueError("no control step is free")
