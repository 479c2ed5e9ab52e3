"""Undo and redo. The edits of one gesture, such as a drag, are undone together."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from keystride.studio.document.draft import Draft

DEPTH = 1000  # steps; drafts share keyframes, so a step takes a few hundred bytes
PAUSE = 1.0  # s; edits of the same value further apart than this are undone separately
UNTITLED = "untitled.yaml"


@dataclass(frozen=True)
class Moment:
    """A step of the history: a draft, the name of its file and the selected keyframes, the active one last."""

    draft: Draft
    name: str = UNTITLED
    selection: tuple[int, ...] = ()

    @property
    def selected(self) -> int | None:
        return self.selection[-1] if self.selection else None


@dataclass(frozen=True)
class SavedFile:
    """A file in the script folder as it was last read or written."""

    draft: Draft
    digest: str | None  # of the bytes on disk; None if the file was never read
    text: str | None = None  # YAML from which the draft was read, with its comments
    uploaded: bool = False  # from the user's computer, so it is not in the folder yet


class Document:
    """The script being edited and its history. It uses no clock, files or network."""

    def __init__(self, draft: Draft, name: str = UNTITLED, digest: str | None = None, text: str | None = None) -> None:
        self.now = Moment(draft, name, draft.keys[:1])
        self.files = {name: SavedFile(draft, digest, text)}
        self.past: deque[Moment] = deque(maxlen=DEPTH)
        self.future: list[Moment] = []
        self.revision = 0  # incremented by every edit, undo and redo; a gesture counts once
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
        """The active keyframe, whose values the panel shows."""
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
        return self.draft.marks != (saved.draft.marks if saved and not saved.uploaded else ())

    def select(self, keys: Iterable[int]) -> None:
        """Select keyframes. This is not an edit, so it cannot be undone."""
        self.now = replace(self.now, selection=_existing(self.draft, keys))
        self._gesture = None

    def edit(
        self, draft: Draft, selection: Iterable[int] | None = None, gesture: Any = None, time: float | None = None
    ) -> None:
        """Replace the draft. Consecutive edits with the same gesture are undone together.

        A gesture ends when another one begins, with `end_gesture` or, if a time is given, after a pause.
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

    def open(
        self,
        draft: Draft,
        name: str,
        digest: str | None = None,
        text: str | None = None,
        *,
        uploaded: bool = False,
    ) -> None:
        """Open another script. Undo returns to the previous one and its file name."""
        self.past.append(self.now)
        self.future.clear()
        self.revision += 1
        self._gesture = None
        self.now = Moment(draft, name, draft.keys[:1])
        self.files[name] = SavedFile(draft, digest, text, uploaded)

    def mark_saved(self, name: str, digest: str, text: str | None = None) -> None:
        """Record that the draft was written to a file. A new name also applies to the history since the script was opened."""
        old = self.name
        for moments in (self.past, self.future):
            for row in reversed(range(len(moments))):
                if moments[row].name != old:
                    break
                moments[row] = replace(moments[row], name=name)
        self.now = replace(self.now, name=name)
        self.files[name] = SavedFile(self.draft, digest, text)
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
