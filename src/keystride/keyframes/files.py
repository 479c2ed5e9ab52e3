"""Scripts on file: YAML, or JSON where the name ends in .json."""

import json
from pathlib import Path
from typing import Any

import yaml

from keystride.errors import FileError
from keystride.files import write_atomically
from keystride.keyframes.document import MAX_SCRIPT_BYTES, YAML_FLOAT, decode, parse_script_json, parse_script_yaml
from keystride.keyframes.problems import Problem, ScriptError
from keystride.keyframes.script import Script
from keystride.keyframes.validate import validate_document
from keystride.reading import read_bytes
from keystride.robot.description import Robot


def load_script(path: Path | str, robot: Robot | None = None) -> Script:
    """Read a script from a file, or one that ships by its name, such as "walk".

    Joint angles are checked against the limits of the robot, the Go2 by default.

    Raise ScriptError, which lists every mistake by line, or OSError when there is no such file.
    """
    path = find_script(path)
    try:
        return parse_script(read_bytes(path, MAX_SCRIPT_BYTES), json=is_json(path), robot=robot)
    except ScriptError as error:
        raise ScriptError(error.problems, source=str(path)) from None
    except FileError as error:
        raise ScriptError([Problem((), str(error))], source=str(path)) from None


def find_script(path: Path | str) -> Path:
    """Return the path as it is, or the file of a script that ships if it is the name of one."""
    path = Path(path)
    return path if path.exists() else example_scripts().get(str(path), path)


def example_scripts() -> dict[str, Path]:
    """Return the scripts that ship, by name."""
    package = Path(__file__).parents[1]
    folders = (package / "examples", package.parents[1] / "examples")  # in a wheel; in a checkout
    folder = next((one for one in folders if one.is_dir()), package)
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def parse_script(content: bytes | str, *, json: bool = False, robot: Robot | None = None) -> Script:
    content = content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    text = decode(content)
    return validate_document(parse_script_json(text) if json else parse_script_yaml(text), robot)


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
    """JSON Schema of the files, for editors."""
    schema = Script.model_json_schema()
    schema["required"] = ["version", "keyframes"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Keystride keyframe script"}


def is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _to_json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _to_yaml(data: dict[str, Any]) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Lists of numbers on one line; text that YAML 1.1 or 1.2 takes for a number is quoted."""

    def represent_numbers(self, numbers: list[Any]) -> yaml.Node:
        flow = all(isinstance(number, float) for number in numbers)
        return self.represent_sequence("tag:yaml.org,2002:seq", numbers, flow_style=flow)


_Dumper.add_representer(list, _Dumper.represent_numbers)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", YAML_FLOAT, list("-+.0123456789"))
