"""A document with its history as JSON: what the browser keeps of unsaved work, and the autosave on disk."""

import json
from itertools import count
from typing import Any

from keystride.keyframes.problems import ScriptError
from keystride.keyframes.script import Keyframe, Stage
from keystride.keyframes.validate import validate_script
from keystride.robot.description import Robot
from keystride.studio.document.draft import Draft, Mark
from keystride.studio.document.history import Document, Moment, SavedFile

FORMAT = 1
HISTORY_STEPS = 64  # kept each way
MAX_CHARACTERS = 150_000


class StorageError(ValueError):
    """Not a stored document."""


def dump(document: Document, settings: dict[str, Any] | None = None, steps: int = HISTORY_STEPS) -> str:
    """Return the document as text; the oldest steps of its history are dropped until it is short enough."""
    while len(text := _dump(document, settings or {}, steps)) > MAX_CHARACTERS and steps:
        steps //= 2
    return text


def load_document(text: str, robot: Robot) -> tuple[Document, dict[str, Any]]:
    """Return the document and the settings. StorageError if anything in the text is not as `dump` writes it."""
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
                _draft(file, robot, marks, stages), None if file["digest"] is None else str(file["digest"])
            )
            for name, file in stored["files"].items()
        }
        return document, dict(stored["settings"])
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, ScriptError) as error:
        raise StorageError(f"not a stored document: {error}") from error


def load_latest(whole: str, latest: str, robot: Robot) -> tuple[Document, dict[str, Any]]:
    """Return a stored document as its latest copy without history has it, which a browser stores more often.

    Either text may be empty. StorageError if neither can be read.
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
    if copy.revision == document.revision:  # the same step of the history, perhaps in the middle of a gesture
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
            name: {**fields(file.draft), "digest": file.digest}
            for name, file in document.files.items()
            if name in names
        },
        "settings": settings,
    }
    shapes = [stage.model_dump(mode="json", exclude_defaults=True) for stage in stages]
    return json.dumps({**stored, "marks": marks, "stages": shapes}, separators=(",", ":"))


def _written_fields(keyframe: Keyframe) -> dict[str, Any]:
    """Without defaults. Ten times as fast as pydantic's dump, and it runs with every edit."""
    return {name: value for name, value in keyframe.__dict__.items() if value is not None and value is not False}


def _draft(step: dict[str, Any], robot: Robot, marks: list[Mark], stages: list[Stage]) -> Draft:
    """Checked as a script is: what comes back from a browser or a disk may be anything."""
    chosen = tuple(marks[row] for row in step["rows"] if row >= 0)
    if len({mark.key for mark in chosen}) != len(chosen) or not all(0 < mark.key < step["next"] for mark in chosen):
        raise StorageError("keys are not unique")
    if step["angles"] not in ("degrees", "radians"):
        raise StorageError("unknown unit of angles")
    version, stage = int(step.get("version", 1)), stages[step["stage"]] if "stage" in step else None
    if chosen:
        keyframes = [dict(mark.keyframe.__dict__) for mark in chosen]
        header = {"version": version, "angles": step["angles"], "stage": stage}
        validate_script({**header, "keyframes": keyframes}, robot)
    return Draft(robot, chosen, step["angles"], int(step["next"]), version, stage)


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
