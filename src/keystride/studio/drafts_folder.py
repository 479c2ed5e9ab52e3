"""Autosave: the unsaved work of every tab, in a hidden folder beside the scripts."""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keystride.files import write_atomically
from keystride.robot.description import Robot
from keystride.studio.document import storage
from keystride.studio.document.history import Document

FOLDER = ".keystride-drafts"
MOST = 50  # files; the oldest are deleted
TAB = re.compile(r"[A-Za-z0-9.-]{1,64}")


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
