"""What a browser's tab was working on when it went, for when it comes back: a reload loses nothing."""

import threading
from dataclasses import dataclass

from keystride.studio.history import Document

ROOM = 32  # tabs that are remembered


@dataclass(frozen=True)
class Work:
    document: Document
    name: str


class Reloads:
    """Shared by all sessions of a server. What is kept here belongs to no session."""

    def __init__(self) -> None:
        self._kept: dict[str, Work] = {}
        self._lock = threading.Lock()

    def keep(self, tab: str, work: Work) -> None:
        with self._lock:
            self._kept.pop(tab, None)
            if tab:
                self._kept[tab] = work
            while len(self._kept) > ROOM:
                self._kept.pop(next(iter(self._kept)))

    def take(self, tab: str) -> Work | None:
        """Once: a second tab that gives the same name starts afresh."""
        with self._lock:
            return self._kept.pop(tab, None)
