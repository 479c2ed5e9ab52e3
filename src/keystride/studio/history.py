"""Undo and redo over drafts, with gestures: what one drag or one slider does is one step."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from keystride.studio.draft import Draft

DEPTH = 1000  # drafts share their keyframes: a step costs a few hundred bytes
PAUSE = 1.0  # s: a longer rest between two changes of the same thing makes them two steps


@dataclass(frozen=True)
class Moment:
    """A draft, and the keyframe that was selected."""

    draft: Draft
    selected: int | None = None


class Document:
    """The edited script with its past and its future. No clock and no input or output of its own."""

    def __init__(self, draft: Draft | None = None) -> None:
        self.now = Moment(draft or Draft())
        self._past: deque[Moment] = deque(maxlen=DEPTH)
        self._future: list[Moment] = []
        self._saved = self.now.draft
        self._gesture: Any = None
        self._touched = 0.0

    @property
    def draft(self) -> Draft:
        return self.now.draft

    @property
    def selected(self) -> int | None:
        return self.now.selected

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        return bool(self._future)

    @property
    def unsaved(self) -> bool:
        return self.draft.marks != self._saved.marks

    def select(self, key: int | None) -> None:
        """Not an edit: it is not undone by itself."""
        self.now = Moment(self.draft, key if key in self.draft.keys else None)
        self._gesture = None

    def edit(self, draft: Draft, selected: int | None = None, gesture: Any = None, time: float | None = None) -> None:
        """Take a new draft. Edits with the same gesture are undone together.

        A gesture ends with another, with `end_gesture`, or, where a time is given, with a pause.
        """
        if draft == self.draft:
            return
        rested = time is not None and time - self._touched > PAUSE
        if gesture is None or gesture != self._gesture or rested:
            self._past.append(self.now)
        self._gesture, self._touched = gesture, time or 0.0
        self._future.clear()
        self.now = Moment(draft, self._still(draft, self.selected if selected is None else selected))

    def end_gesture(self) -> None:
        self._gesture = None

    def undo(self) -> bool:
        return self._travel(self._past, self._future)

    def redo(self) -> bool:
        return self._travel(self._future, self._past)

    def replace(self, draft: Draft) -> None:
        """Another script altogether, as it stands on file; it can be undone like an edit."""
        self.edit(draft)
        self.select(draft.keys[0] if draft.keys else None)
        self.mark_saved()

    def mark_saved(self) -> None:
        self._saved = self.draft

    def _travel(self, origin: deque[Moment] | list[Moment], other: deque[Moment] | list[Moment]) -> bool:
        if not origin:
            return False
        other.append(self.now)
        self.now = origin.pop()
        self._gesture = None
        return True

    @staticmethod
    def _still(draft: Draft, key: int | None) -> int | None:
        return key if key in draft.keys else None
