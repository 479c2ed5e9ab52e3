"""Read and write scripts as YAML, JSON or plain data. Errors give the line of every mistake, and what is allowed there."""

import json
from collections.abc import Iterator
from dataclasses import replace
from errno import ENOENT
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from keystride.errors import FileError
from keystride.files import write_atomically
from keystride.keyframes.document import (
    MAX_SCRIPT_BYTES,
    YAML_FLOAT,
    FieldPath,
    ParsedText,
    Problem,
    ScriptError,
    decode,
    parse_script_json,
    parse_script_yaml,
    shorten,
)
from keystride.keyframes.postures import POSTURE_NAMES
from keystride.keyframes.script import MAX_KEYFRAMES, MAX_SECONDS, STAGE_VERSION, Keyframe, Script
from keystride.keyframes.stage import MAX_CORNERS, MAX_LABEL, MAX_METRES, MAX_OBSTACLES, Obstacle, Stage
from keystride.reading import read_bytes
from keystride.robot.catalogue import load_robot
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
POSTURE_KINDS = (
    "name",
    "angles",
    "joints",
)  # the tags of the posture's union, which are part of pydantic's error locations


def load_script(path: Path | str, robot: Robot | Path | str | None = None) -> Script:
    """Read a script from a file, or an example by its name, such as "walk".

    With a robot, such as "go2", joint angles are checked against its limits here; otherwise wherever the script is played.

    Raise ScriptError, which lists every mistake with its line, or OSError if there is no such file.
    """
    path = find_script(path)
    if not path.exists() and path.suffix == "":
        raise FileNotFoundError(ENOENT, f"no such file; the examples are {', '.join(example_scripts())}", str(path))
    robot = robot if robot is None or isinstance(robot, Robot) else load_robot(robot)
    try:
        return parse_script(read_bytes(path, MAX_SCRIPT_BYTES), json=is_json(path), robot=robot)
    except ScriptError as error:
        raise ScriptError(error.problems, source=str(path)) from None
    except FileError as error:
        raise ScriptError([Problem((), str(error))], source=str(path)) from None


def find_script(path: Path | str) -> Path:
    """Return the path itself if it exists, or else the built-in example of that name."""
    path = Path(path)
    return path if path.exists() else example_scripts().get(str(path), path)


def example_scripts() -> dict[str, Path]:
    """Return the built-in examples by name."""
    package = Path(__file__).parents[1]
    folders = (package / "examples", package.parents[1] / "examples")  # in a wheel; in a checkout
    folder = next((one for one in folders if one.is_dir()), package)
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def parse_script(content: bytes | str, *, json: bool = False, robot: Robot | None = None) -> Script:
    content = content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    text = decode(content)
    return validate_document(parse_script_json(text) if json else parse_script_yaml(text), robot)


def validate_script(data: Any, robot: Robot | None = None) -> Script:
    """Validate lists and mappings, as a browser or another program sends them; ScriptError says what is wrong."""
    return validate_document(ParsedText(data), robot)


def validate_document(document: ParsedText, robot: Robot | None = None) -> Script:
    """Return the script; with a robot, check joint angles against its limits too."""
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


def save_script(script: Script, path: Path | str) -> None:
    """Write YAML, or JSON where the name ends in .json, atomically."""
    path = Path(path)
    write_atomically(path, format_script(script, json=is_json(path)))


def format_script(script: Script, *, json: bool = False) -> str:
    return _to_json(script_data(script)) if json else _to_yaml(script_data(script))


def script_data(script: Script) -> dict[str, Any]:
    """Return the script as lists and mappings, without fields that are absent or have their default."""
    data = script.model_dump(mode="json", exclude_defaults=True)
    return {"version": script.version, **data}


def script_schema() -> dict[str, Any]:
    """Return the JSON Schema of script files, for editors."""
    schema = Script.model_json_schema()
    schema["required"] = ["version", "keyframes"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Keystride keyframe script"}


def is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _stage_without_version(data: Any) -> bool:
    """Return whether a stage is given in version 1. (The schema only reports this if the stage has no other mistakes.)"""
    return isinstance(data, dict) and data.get("version") == 1 and data.get("stage") is not None


def _findings(error: ValidationError) -> Iterator[Problem]:
    entries = error.errors(include_url=False)
    places = [_place(entry) for entry in entries]
    around = {place[:end] for place in places for end in range(len(place))}
    for entry, place in zip(entries, places, strict=True):
        if not (entry["type"] == "too_short" and place in around):  # a wrong item does not make a list too short
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
    """Return the model that contains a path, and the rest of the path within it."""
    if len(place) > 1 and place[0] == "keyframes":
        return Keyframe, place[2:]
    if len(place) > 2 and place[:2] == ("stage", "obstacles"):
        return Obstacle, place[3:]
    if len(place) > 1 and place[0] == "stage":
        return Stage, place[1:]
    return Script, place


def _to_json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _to_yaml(data: dict[str, Any]) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes lists of numbers on one line, and quotes text that YAML 1.1 or 1.2 would read as a number."""

    def represent_numbers(self, numbers: list[Any]) -> yaml.Node:
        flow = all(isinstance(number, float) for number in numbers)
        return self.represent_sequence("tag:yaml.org,2002:seq", numbers, flow_style=flow)


_Dumper.add_representer(list, _Dumper.represent_numbers)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", YAML_FLOAT, list("-+.0123456789"))
