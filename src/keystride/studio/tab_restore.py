"""What each tab of a browser was working on, so that a reload or a lost connection loses nothing."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keystride.studio.document.history import Document

CAPACITY = 32  # tabs whose work is kept


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
