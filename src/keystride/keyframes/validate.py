"""Plain data to a script, or to a list of all that is wrong with it: each in a line, with what is allowed there."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from keystride.keyframes.document import ParsedText
from keystride.keyframes.postures import POSTURE_NAMES
from keystride.keyframes.problems import FieldPath, Problem, ScriptError, shorten
from keystride.keyframes.script import (
    MAX_CORNERS,
    MAX_KEYFRAMES,
    MAX_LABEL,
    MAX_METRES,
    MAX_OBSTACLES,
    MAX_SECONDS,
    STAGE_VERSION,
    Keyframe,
    Obstacle,
    Script,
    Stage,
)
from keystride.robot.description import JOINT_NAMES, Robot

PHRASES = {
    "extra_forbidden": "unknown field",
    "missing": "is missing",
    "float_type": "{value} is not a number",
    "int_type": "{value} is not a version",
    "finite_number": "{value} is not a finite number",
    "string_type": "{value} is not text",
    "bool_type": "{value} is neither true nor false",
    "tuple_type": "{value} is not a list",
    "dict_type": "{value} is not a mapping",
    "model_type": "{value} is not a mapping",
    "literal_error": "{value} is not known",
    "too_short": "{value} is too short",
    "too_long": "{value} is too long",
    "string_too_long": "{value} is too long",
    "greater_than_equal": "{value} is out of range",
    "less_than_equal": "{value} is out of range",
    "union_tag_not_found": "{value} is not a posture",
}

ALLOWED = {
    "": f"a mapping with {', '.join(Script.model_fields)}",
    "version": f"1 or {STAGE_VERSION}",
    "angles": "degrees or radians",
    "keyframes": f"a list of 1 to {MAX_KEYFRAMES} keyframes",
    "time": f"seconds, 0 to {MAX_SECONDS:g}",
    "position": f"[x, y] or [x, y, z] in metres, each within {MAX_METRES:g}",
    "relative": "true or false",
    **dict.fromkeys(("roll", "pitch", "yaw"), "a finite number in the unit of `angles`"),
    "posture": f"12 angles, a mapping from joint names to angles, or one of {', '.join(POSTURE_NAMES)}",
    "label": f"text of at most {MAX_LABEL} characters",
    "stage": f"a mapping with {', '.join(Stage.model_fields)}",
    "floor": f"3 to {MAX_CORNERS} corners [x, y] in metres, each within {MAX_METRES:g}",
    "obstacles": f"a list of at most {MAX_OBSTACLES} obstacles",
    "audience": f"two points [x, y] in metres, each within {MAX_METRES:g}",
    "center": f"[x, y] in metres, each within {MAX_METRES:g}",
    "radius": f"metres, 0.01 to {MAX_METRES:g}",
    "corners": f"3 to {MAX_CORNERS} corners [x, y] in metres, each within {MAX_METRES:g}",
}
POSTURE_KINDS = ("name", "angles", "joints")  # the tags of the posture's union, which stand in pydantic's places


def validate_script(data: Any, robot: Robot | None = None) -> Script:
    """Validate lists and mappings, as a browser or another program sends them; ScriptError says what is wrong."""
    return validate_document(ParsedText(data), robot)


def validate_document(document: ParsedText, robot: Robot | None = None) -> Script:
    """Return the script, its joint angles checked against the robot's limits; without one, the default robot's."""
    problems = list(document.problems)
    if isinstance(document.data, dict) and "version" not in document.data:
        problems.append(Problem(("version",), f"is missing; allowed: {ALLOWED['version']}"))
    try:
        script = Script.model_validate(document.data, context=robot)
    except ValidationError as error:
        problems += _findings(error)
        if _stage_without_version(document.data) and not any(found.place == ("stage",) for found in problems):
            problems.append(Problem(("stage",), f"needs version {STAGE_VERSION}"))
    else:
        if not problems:
            return script
    raise ScriptError(replace(found, line=found.line or document.line(found.place)) for found in problems)


def _stage_without_version(data: Any) -> bool:
    """The schema says so itself of a stage that is right in all else."""
    return isinstance(data, dict) and data.get("version") == 1 and data.get("stage") is not None


def _findings(error: ValidationError) -> Iterator[Problem]:
    entries = error.errors(include_url=False)
    places = [_place(entry) for entry in entries]
    around = {place[:end] for place in places for end in range(len(place))}
    for entry, place in zip(entries, places, strict=True):
        if not (entry["type"] == "too_short" and place in around):  # a list is not short for having a wrong item
            yield Problem(place, _message(entry, place))


def _place(entry: ErrorDetails) -> FieldPath:
    place = tuple(part for part in entry["loc"] if part != "[key]")
    if len(place) > 3 and place[2] == "posture" and place[3] in POSTURE_KINDS:
        return (*place[:3], *place[4:])
    return place


def _message(entry: ErrorDetails, place: FieldPath) -> str:
    if entry["type"] not in PHRASES:
        return entry["msg"]
    return f"{PHRASES[entry['type']].format(value=shorten(entry['input']))}; allowed: {_allowed(entry, place)}"


def _allowed(entry: ErrorDetails, place: FieldPath) -> str:
    model, inside = _model_at(place)
    if entry["type"] == "extra_forbidden":
        return ", ".join(model.model_fields)
    if not inside and place:
        return f"a mapping with {', '.join(model.model_fields)}"
    if inside[:1] == ("posture",) and len(inside) > 1:
        return "a finite number" if entry["type"] != "literal_error" else ", ".join(JOINT_NAMES)
    return ALLOWED[str(inside[0]) if inside else ""]


def _model_at(place: FieldPath) -> tuple[type[BaseModel], FieldPath]:
    """Return the model that a place is in, and where in it."""
    if len(place) > 1 and place[0] == "keyframes":
        return Keyframe, place[2:]
    if len(place) > 2 and place[:2] == ("stage", "obstacles"):
        return Obstacle, place[3:]
    if len(place) > 1 and place[0] == "stage":
        return Stage, place[1:]
    return Script, place
