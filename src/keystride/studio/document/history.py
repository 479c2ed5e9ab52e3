"""Undo and redo over drafts. The edits of one gesture, such as a drag, are undone together."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from keystride.studio.document.draft import Draft

DEPTH = 1000  # steps; drafts share their keyframes, so that a step costs a few hundred bytes
PAUSE = 1.0  # s; a longer pause between two changes of the same thing separates them
UNTITLED = "untitled.yaml"


@dataclass(frozen=True)
class Moment:
    """What undo returns to: a draft, the name of its file, and the selected keyframes, the last of them active."""

    draft: Draft
    name: str = UNTITLED
    selection: tuple[int, ...] = ()

    @property
    def selected(self) -> int | None:
        return self.selection[-1] if self.selection else None


@dataclass(frozen=True)
class SavedFile:
    """A file of the script folder as this document last read or wrote it."""

    draft: Draft
    digest: str | None  # of the bytes on disk; None if nothing was read


class Document:
    """The edited script with its past and its future. No clock and no input or output of its own."""

    def __init__(self, draft: Draft, name: str = UNTITLED, digest: str | None = None) -> None:
        self.now = Moment(draft, name, draft.keys[:1])
        self.files = {name: SavedFile(draft, digest)}
        self.past: deque[Moment] = deque(maxlen=DEPTH)
        self.future: list[Moment] = []
        self.revision = 0  # counts the steps made in the history, either way; edits of one gesture are one step
        self._gesture: Any = None
        self._touched = 0.0

    @property
    def draft(self) -> Draft:
        return self.now.draft

    @property
    def name(self) -> str:
        return self.now.name

    @property
    def selection(self) -> tuple[int, ...]:
        return self.now.selection

    @property
    def selected(self) -> int | None:
        """The active keyframe: the one whose values the panel shows."""
        return self.now.selected

    @property
    def can_undo(self) -> bool:
        return bool(self.past)

    @property
    def can_redo(self) -> bool:
        return bool(self.future)

    @property
    def unsaved(self) -> bool:
        saved = self.files.get(self.name)
        return self.draft.marks != (saved.draft.marks if saved else ())

    def select(self, keys: Iterable[int]) -> None:
        """Not an edit: it is not undone by itself."""
        self.now = replace(self.now, selection=_existing(self.draft, keys))
        self._gesture = None

    def edit(
        self, draft: Draft, selection: Iterable[int] | None = None, gesture: Any = None, time: float | None = None
    ) -> None:
        """Take a new draft. Consecutive edits with the same gesture are undone together.

        A gesture ends with another one, with `end_gesture` or, if a time is given, with a pause.
        """
        if draft == self.draft:
            return
        rested = time is not None and time - self._touched > PAUSE
        if gesture is None or gesture != self._gesture or rested:
            self.past.append(self.now)
            self.revision += 1
        self._gesture, self._touched = gesture, time or 0.0
        self.future.clear()
        selection = self.selection if selection is None else selection
        self.now = Moment(draft, self.name, _existing(draft, selection))

    def end_gesture(self) -> None:
        self._gesture = None

    def undo(self) -> bool:
        return self._travel(self.past, self.future)

    def redo(self) -> bool:
        return self._travel(self.future, self.past)

    def open(self, draft: Draft, name: str, digest: str | None = None) -> None:
        """Take another script as it is on file. Undo returns to the previous one and to its name."""
        self.past.append(self.now)
        self.future.clear()
        self.revision += 1
        self._gesture = None
        self.now = Moment(draft, name, draft.keys[:1])
        self.files[name] = SavedFile(draft, digest)

    def mark_saved(self, name: str, digest: str) -> None:
        """The draft was written to a file. Under a new name, undo stays with it, back to where the script was opened."""
        old = self.name
        for moments in (self.past, self.future):
            for row in reversed(range(len(moments))):
                if moments[row].name != old:
                    break
                moments[row] = replace(moments[row], name=name)
        self.now = replace(self.now, name=name)
        self.files[name] = SavedFile(self.draft, digest)
        self.revision += 1

    def _travel(self, origin: deque[Moment] | list[Moment], other: deque[Moment] | list[Moment]) -> bool:
        if not origin:
            return False
        other.append(self.now)
        self.now = origin.pop()
        self.revision += 1
        self._gesture = None
        return True


def _existing(draft: Draft, keys: Iterable[int]) -> tuple[int, ...]:
    known = set(draft.keys)
    return tuple(dict.fromkeys(key for key in keys if key in known))
