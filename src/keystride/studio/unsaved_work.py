"""Unsaved work: what each tab of a browser was working on, for reloads and lost connections, and its autosave on disk."""

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keystride.files import write_atomically
from keystride.robot.description import Robot
from keystride.studio.document import storage
from keystride.studio.document.history import Document

CAPACITY = 32  # tabs whose work is kept
FOLDER = ".keystride-drafts"
MOST = 50  # files; the oldest are deleted
TAB = re.compile(r"[A-Za-z0-9.-]{1,64}")


@dataclass(frozen=True)
class Work:
    document: Document
    settings: dict[str, Any] = field(default_factory=dict)


class TabRestore:
    """Shared by all sessions of a server."""

    def __init__(self) -> None:
        self._kept: dict[str, Work] = {}
        self._open: dict[str, Callable[[], Work]] = {}
        self._lock = threading.Lock()

    @property
    def open_tabs(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._open)

    def enter(self, tab: str, leave: Callable[[], Work]) -> Work | None:
        """A tab has connected; return what it was working on.

        After a network failure its previous session may not have noticed yet: that one is ended, by its `leave`.
        """
        with self._lock:
            previous = self._open.get(tab)
            self._open[tab] = leave
        if previous is leave:  # it has said so before
            return None
        if previous is not None:
            return previous()
        with self._lock:
            return self._kept.pop(tab, None)

    def exit(self, tab: str, leave: Callable[[], Work], work: Work) -> None:
        """A session has ended. Its work is kept unless the tab has another session by now."""
        with self._lock:
            if not tab or self._open.get(tab) is not leave:
                return
            del self._open[tab]
            self._kept.pop(tab, None)
            self._kept[tab] = work
            while len(self._kept) > CAPACITY:
                self._kept.pop(next(iter(self._kept)))


@dataclass(frozen=True)
class StoredDraft:
    tab: str
    name: str  # of the script
    age: float  # s

    @property
    def title(self) -> str:
        minutes = round(self.age / 60)
        return f"{self.name}, {f'{minutes} min' if minutes < 120 else f'{minutes // 60} h'} ago"


class DraftsFolder:
    def __init__(self, scripts: Path, robot: Robot) -> None:
        self._folder, self._robot = scripts / FOLDER, robot

    def write(self, tab: str, text: str) -> None:
        if TAB.fullmatch(tab):
            write_atomically(self._path(tab), text)
            for path in self._paths()[:-MOST]:
                path.unlink(missing_ok=True)

    def read(self, tab: str) -> Document | None:
        """None if there is no draft, or one that cannot be read."""
        if not TAB.fullmatch(tab):
            return None
        try:
            return storage.load_document(self._path(tab).read_text(encoding="utf-8"), self._robot)[0]
        except (OSError, UnicodeError, storage.StorageError):
            return None

    def delete(self, tab: str) -> None:
        if TAB.fullmatch(tab):
            with suppress(OSError):
                self._path(tab).unlink(missing_ok=True)

    def entries(self) -> tuple[StoredDraft, ...]:
        """Latest first."""
        found = []
        for path in reversed(self._paths()):
            document = self.read(path.stem)
            if document is not None:
                found.append(StoredDraft(path.stem, document.name, time.time() - path.stat().st_mtime))
        return tuple(found)

    def _path(self, tab: str) -> Path:
        return self._folder / f"{tab}.json"

    def _paths(self) -> list[Path]:
        """Oldest first."""
        try:
            return sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        except OSError:
            return []
