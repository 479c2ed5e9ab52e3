"""Unsaved work: documents with their history as JSON, the work of each tab, and the autosave on disk."""

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EEXIST
from itertools import count
from pathlib import Path
from typing import Any

from keystride.files import write_atomically
from keystride.keyframes.document import ScriptError
from keystride.keyframes.files import validate_script
from keystride.keyframes.script import Keyframe
from keystride.keyframes.stage import Stage
from keystride.reading import read_text
from keystride.robot.description import Robot
from keystride.studio.document.draft import Draft, Mark
from keystride.studio.document.history import Document, Moment, SavedFile

FORMAT = 1
HISTORY_STEPS = 64  # stored in each direction
MAX_CHARACTERS = 150_000
MAX_DRAFT_BYTES = 4 << 20
MAX_TEXT = 20_000  # characters of a file with its comments


class StorageError(ValueError):
    """The text is not a stored document."""


def dump(document: Document, settings: dict[str, Any] | None = None, steps: int = HISTORY_STEPS) -> str:
    """Return the document as JSON; the oldest steps of its history are dropped if it would be too long."""
    while len(text := _dump(document, settings or {}, steps)) > MAX_CHARACTERS and steps:
        steps //= 2
    return text


def load_document(text: str, robot: Robot) -> tuple[Document, dict[str, Any]]:
    """Return the document and the settings. Raise StorageError if the text was not written by `dump`."""
    try:
        stored = json.loads(text)
        if stored["format"] != FORMAT:
            raise StorageError("written by another version")
        marks = [Mark(int(key), Keyframe.model_validate(_tuples(fields))) for key, fields in stored["marks"]]
        stages = [Stage.model_validate(fields) for fields in stored.get("stages", ())]

        def moment(step: dict[str, Any]) -> Moment:
            draft = _draft(step, robot, marks, stages)
            return Moment(draft, str(step["name"]), tuple(key for key in step["selection"] if key in draft.keys))

        past, future = ([moment(step) for step in stored[side]] for side in ("past", "future"))
        document = Document(Draft(robot))
        document.now, document.revision = moment(stored["now"]), int(stored.get("revision", 0))
        document.past.extend(past)
        document.future.extend(future)
        document.files = {
            str(name): SavedFile(
                _draft(file, robot, marks, stages),
                *(None if file.get(field) is None else str(file[field]) for field in ("digest", "text")),
                uploaded=bool(file.get("uploaded")),
            )
            for name, file in stored["files"].items()
        }
        return document, dict(stored["settings"])
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, ScriptError) as error:
        raise StorageError(f"not a stored document: {error}") from error


def load_latest(whole: str, latest: str, robot: Robot) -> tuple[Document, dict[str, Any]]:
    """Return a stored document in the state of its latest copy, which has no history but is stored more often.

    Either text may be empty. Raise StorageError if neither can be read.
    """
    found = []
    for text in (whole, latest):
        try:
            found.append(load_document(text, robot))
        except StorageError:
            continue
    if not found:
        raise StorageError("not a stored document")
    (document, settings), (copy, _) = found[0], found[-1]
    if copy.revision == document.revision:  # same step of the history, possibly in the middle of a gesture
        document.now = copy.now
    return document, settings


def _dump(document: Document, settings: dict[str, Any], steps: int) -> str:
    table: dict[int, int] = {}
    numbers, marks = count(), []
    stages: list[Stage] = []

    def rows(draft: Draft) -> list[int]:
        for mark in draft.marks:
            if id(mark) not in table:
                table[id(mark)] = next(numbers)
                marks.append((mark.key, _written_fields(mark.keyframe)))
        return [table[id(mark)] for mark in draft.marks]

    def fields(draft: Draft) -> dict[str, Any]:
        found = {"rows": rows(draft), "angles": draft.angles, "next": draft.next_key, "version": draft.version}
        if draft.stage is not None:
            if draft.stage not in stages:
                stages.append(draft.stage)
            found["stage"] = stages.index(draft.stage)
        return found

    def step(moment: Moment) -> dict[str, Any]:
        return {**fields(moment.draft), "name": moment.name, "selection": moment.selection}

    past, future = list(document.past)[max(len(document.past) - steps, 0) :], document.future[-steps:] if steps else []
    names = {moment.name for moment in (*past, *future, document.now)}
    stored = {
        "format": FORMAT,
        "revision": document.revision,
        "now": step(document.now),
        "past": [step(moment) for moment in past],
        "future": [step(moment) for moment in future],
        "files": {
            name: {**fields(file.draft), "digest": file.digest, "uploaded": file.uploaded, "text": _short(file.text)}
            for name, file in document.files.items()
            if name in names
        },
        "settings": settings,
    }
    shapes = [stage.model_dump(mode="json", exclude_defaults=True) for stage in stages]
    return json.dumps({**stored, "marks": marks, "stages": shapes}, separators=(",", ":"))


def _short(text: str | None) -> str | None:
    """Leave out a text that would take the space of the history; its comments are read from the file again."""
    return text if text is not None and len(text) <= MAX_TEXT else None


def _written_fields(keyframe: Keyframe) -> dict[str, Any]:
    """Return the fields that are set. This runs at every edit and is ten times as fast as pydantic's dump."""
    return {name: value for name, value in keyframe.__dict__.items() if value is not None and value is not False}


def _draft(step: dict[str, Any], robot: Robot, marks: list[Mark], stages: list[Stage]) -> Draft:
    """Build and validate a draft; the text may come from a browser or a damaged file."""
    chosen = tuple(marks[row] for row in step["rows"] if row >= 0)
    if len({mark.key for mark in chosen}) != len(chosen) or not all(0 < mark.key < step["next"] for mark in chosen):
        raise StorageError("keys are not unique")
    if step["angles"] not in ("degrees", "radians"):
        raise StorageError("unknown angle unit")
    version, stage = int(step.get("version", 1)), stages[step["stage"]] if "stage" in step else None
    if chosen:
        keyframes = [dict(mark.keyframe.__dict__) for mark in chosen]
        header = {"version": version, "angles": step["angles"], "stage": stage}
        validate_script({**header, "keyframes": keyframes}, robot)
    return Draft(robot, chosen, step["angles"], int(step["next"]), version, stage)


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


CAPACITY = 32  # tabs whose work is kept
FOLDER = ".keystride-drafts"
MAX_DRAFTS = 50  # files; the oldest are deleted
TAB = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")  # a part that a kill left behind begins with a dot


@dataclass(frozen=True)
class Work:
    document: Document
    settings: dict[str, Any] = field(default_factory=dict)


def load_work(draft: str, latest: str, robot: Robot) -> Work | None:
    """Return the work that a browser stored, or None if it cannot be read."""
    try:
        return Work(*load_latest(draft, latest, robot))
    except StorageError:
        return None


class TabRestore:
    """The work of each tab, for reloads and lost connections; shared by all sessions of a server."""

    def __init__(self) -> None:
        self._kept: dict[str, Work] = {}
        self._open: dict[str, Callable[[], Work]] = {}
        self._lock = threading.Lock()

    @property
    def open_tabs(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._open)

    def enter(self, tab: str, leave: Callable[[], Work]) -> Work | None:
        """Register the session of a tab that has connected; return what the tab was working on.

        After a network failure its previous session may still be open: it is ended by calling its `leave`.
        """
        with self._lock:
            previous = self._open.get(tab)
            self._open[tab] = leave
        if previous is leave:  # it has entered before
            return None
        if previous is not None:
            return previous()
        with self._lock:
            return self._kept.pop(tab, None)

    def exit(self, tab: str, leave: Callable[[], Work], work: Work) -> None:
        """Keep the work of a session that has ended, unless the tab has another session by now."""
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
    """The autosave: a hidden folder beside the scripts with one file for each tab that has unsaved work."""

    def __init__(self, scripts: Path, robot: Robot) -> None:
        self._folder, self._robot = scripts / FOLDER, robot
        self._autosaved: Any = None

    def autosave(self, tab: str, document: Document) -> None:
        """Write unsaved work, or delete the draft of a document that is saved, if anything has changed."""
        state = (document.draft, document.name, document.unsaved)
        if state == self._autosaved:
            return
        self._autosaved = state
        if document.unsaved:
            self.write(tab, dump(document))
        else:
            self.delete(tab)

    def write(self, tab: str, text: str) -> None:
        if TAB.fullmatch(tab):
            if self._folder.is_symlink():
                raise FileExistsError(
                    EEXIST, "a link; remove it, or unsaved work is written elsewhere", str(self._folder)
                )
            write_atomically(self._path(tab), text)
            for path in self._paths()[:-MAX_DRAFTS]:
                path.unlink(missing_ok=True)

    def read(self, tab: str) -> Document | None:
        """Return the draft of a tab; None if there is none, or if it cannot be read."""
        if not TAB.fullmatch(tab) or self._folder.is_symlink():
            return None
        try:
            return load_document(read_text(self._path(tab), MAX_DRAFT_BYTES), self._robot)[0]
        except (OSError, ValueError):
            return None

    def delete(self, tab: str) -> None:
        if TAB.fullmatch(tab) and not self._folder.is_symlink():
            with suppress(OSError):
                self._path(tab).unlink(missing_ok=True)

    def entries(self) -> tuple[StoredDraft, ...]:
        """Return all drafts that can be read, latest first."""
        found = []
        for path in reversed(self._paths()[-MAX_DRAFTS:]):
            document, changed = self.read(path.stem), _changed_at(path)
            if document is not None:
                found.append(StoredDraft(path.stem, document.name, time.time() - changed))
        return tuple(found)

    def titles(self, open_tabs: frozenset[str]) -> dict[str, str]:
        """Return the tabs of the drafts by unique titles, without those of open tabs."""
        found: dict[str, str] = {}
        for draft in self.entries():
            if draft.tab not in open_tabs:
                titles = (draft.title, *(f"{draft.title} ({number})" for number in range(2, MAX_DRAFTS + 2)))
                found[next(title for title in titles if title not in found)] = draft.tab
        return found

    def _path(self, tab: str) -> Path:
        return self._folder / f"{tab}.json"

    def _paths(self) -> list[Path]:
        """Return the files named after tabs, oldest first."""
        try:
            found = [path for path in self._folder.glob("*.json") if TAB.fullmatch(path.stem)]
        except OSError:
            return []
        return sorted(found, key=_changed_at)


def _changed_at(path: Path) -> float:
    """Return the time of the last change of a file or link; 0 if another session has deleted it."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
