"""Parse YAML or JSON from untrusted sources, keeping the line of every value and of every mistake.

YAML is read from its events, not by a loader that builds objects: no tags, no aliases, bounded depth, and scalars as in
YAML 1.2's core schema, so that `1e-3` is a number and `on` and `1:30` are text.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from keystride.errors import FileError
from keystride.reading import MOST_NAMED, mistake, one_line, read_bytes

MAX_SCRIPT_BYTES = 1 << 20
MAX_DEPTH = 8  # of scripts, which need four levels
MAX_MODEL_DEPTH = 32  # of other files: the stages of a run need a dozen levels
MAX_INTEGER_DIGITS = 19  # longer integers are read as floats, because Python needs quadratic time for them or refuses
HUGE = 1e300  # a larger integer may not even fit into a float
LONGEST_MESSAGE, LONGEST_NAME = 600, 120  # characters of a message, and of a field's name in it
MOST_SHOWN = 30  # a damaged file may have as many problems as lines

INTEGER = re.compile(r"[-+]?[0-9]+\Z")
YAML_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
YAML_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -inf),
}


FieldPath = tuple[str | int, ...]  # ("keyframes", 2, "yaw")


@dataclass(frozen=True)
class Problem:
    """One mistake: where it is, what is wrong, what is allowed."""

    place: FieldPath
    message: str
    line: int | None = None  # counted from 1

    def __str__(self) -> str:
        field = one_line(field_name(self.place), LONGEST_NAME)
        return one_line(f"{field}: {self.message}" if field else self.message, LONGEST_MESSAGE)


class ScriptError(FileError):
    """All mistakes in a script."""

    def __init__(self, problems: Iterable[Problem], source: str = "script"):
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return one line per problem, as compilers print them: file, line, field, what is allowed."""
        shown = [f"{self._mark(problem)}: {problem}" for problem in self.problems[:MOST_SHOWN]]
        left = len(self.problems) - len(shown)
        return [*shown, f"{self.source}: and {left} more"] if left else shown

    def _mark(self, problem: Problem) -> str:
        return f"{self.source}:{problem.line}" if problem.line else self.source


def field_name(place: FieldPath) -> str:
    """Return a readable field name, such as `keyframe 3, posture[0]`; keyframes and obstacles are counted from 1."""
    prefix, rest = "", place
    if len(place) > 1 and place[0] == "keyframes" and isinstance(place[1], int):
        prefix, rest = f"keyframe {place[1] + 1}", place[2:]
    elif len(place) > 2 and place[:2] == ("stage", "obstacles") and isinstance(place[2], int):
        prefix, rest = f"obstacle {place[2] + 1}", place[3:]
    name = ""
    for part in rest:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return ", ".join(filter(None, (prefix, name)))


def shorten(value: Any) -> str:
    """Return a value as text that fits in one line."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int | float):
        return "a huge number" if HUGE < abs(value) < inf else f"{value:.6g}"
    text = repr(str(value))
    return text if len(text) <= 40 else f"{text[:36]}...'"


@dataclass
class ParsedText:
    """The parsed content of a text."""

    data: Any = None
    lines: dict[FieldPath, int] = field(default_factory=dict)  # counted from 1
    problems: list[Problem] = field(default_factory=list)

    def line(self, place: FieldPath) -> int | None:
        """Return the line of a value, or of the innermost enclosing value that has one."""
        for end in range(len(place), -1, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]]
        return None


def decode(content: bytes) -> str:
    if len(content) > MAX_SCRIPT_BYTES:
        raise _stop(f"is larger than {MAX_SCRIPT_BYTES >> 20} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _stop(f"is not text in UTF-8 (byte {error.start})") from None
    if "\0" in text:
        raise _stop("is binary, not text")
    if not text.strip():
        raise _stop("is empty")
    return text


ModelT = TypeVar("ModelT")
ResultT = TypeVar("ResultT")


def read_model(path: Path, kind: type[ModelT]) -> ModelT:
    """Read a YAML file into a pydantic model or dataclass; FileError names file, line, field and what is allowed."""
    return _read(path, lambda content: parse_model(content, kind, str(path)))


def read_mapping(path: Path, kind: type[ModelT]) -> dict[str, Any]:
    """Read a YAML file and check it against a schema. The order, and entries that the schema does not know, are kept."""

    def parse(content: bytes) -> dict[str, Any]:
        parse_model(content, kind, str(path))
        return parse_script_yaml(decode(content), MAX_MODEL_DEPTH).data

    return _read(path, parse)


def _read(path: Path, parse: Callable[[bytes], ResultT]) -> ResultT:
    """Read and parse a file; errors name it."""
    try:
        return parse(read_bytes(path, MAX_SCRIPT_BYTES))
    except ScriptError as error:
        raise FileError("; ".join(ScriptError(error.problems, str(path)).lines())) from error
    except FileError as error:
        message = str(error)
        raise FileError(message if message.startswith(str(path)) else f"{path}: {message}") from error


def parse_model(content: bytes, kind: type[ModelT], source: str) -> ModelT:
    document = parse_script_yaml(decode(content), MAX_MODEL_DEPTH)
    problems = [*document.problems]
    try:
        model = TypeAdapter(kind).validate_python(document.data)
        if not problems:
            return model
    except ValidationError as error:
        entries = error.errors(include_url=False, include_context=False)
        problems += [Problem((), mistake(entry), document.line(entry["loc"])) for entry in entries]
    shown = [f"{source}:{one.line}: {one}" if one.line else f"{source}: {one}" for one in problems[:MOST_NAMED]]
    more = len(problems) - len(shown)
    raise FileError("; ".join(shown) + (f"; and {more} more" if more else ""))


def parse_script_yaml(text: str, depth: int = MAX_DEPTH) -> ParsedText:
    document = ParsedText()
    try:
        _Reader(document, text, depth).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _stop(f"is not YAML: {error.problem or error.context}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, ScriptError):
            raise
        raise _stop(f"is not YAML: {shorten(error)}") from None
    return document


def parse_script_json(text: str) -> ParsedText:
    """Parse JSON. Lines come from the YAML reader, if it can read the text too."""
    document = ParsedText()
    try:
        document.data = json.loads(text, parse_int=_integer, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise _stop(f"is not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise _stop(f"is not JSON: {shorten(error)}") from None
    with suppress(ScriptError):
        document.lines = parse_script_yaml(text).lines
    document.data = _without_duplicates(document, document.data, ())
    return document


class _Pairs(list[tuple[str, Any]]):
    """A JSON object whose duplicate keys have not been detected yet."""


def _without_duplicates(document: ParsedText, value: Any, place: FieldPath) -> Any:
    if len(place) > MAX_DEPTH:
        raise _too_deep(document.line(place))
    if isinstance(value, _Pairs):
        found: dict[str, Any] = {}
        for key, item in value:
            inside = (*place, key)
            _keep(document, found, inside, _without_duplicates(document, item, inside), document.line(inside))
        return found
    if isinstance(value, list):
        return [_without_duplicates(document, item, (*place, index)) for index, item in enumerate(value)]
    return value


def _keep(document: ParsedText, found: dict[str, Any], place: FieldPath, value: Any, line: int | None) -> None:
    """Store a value under the last part of its path; of duplicates, the first is kept."""
    if place[-1] in found:
        document.problems.append(Problem(place, "is given twice", line))
    found.setdefault(str(place[-1]), value)


class _Reader:
    """Recursive descent over YAML events; the depth is bounded, so the recursion is too."""

    def __init__(self, document: ParsedText, text: str, depth: int):
        self.document, self.depth = document, depth
        loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=loader))

    def read(self) -> None:
        next(self.events)  # stream start
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise _stop("is empty")
        self.document.data = self.value(next(self.events), ())
        next(self.events)  # document end
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _stop("holds more than one document; allowed: one", _line(after))

    def value(self, event: yaml.Event, place: FieldPath) -> Any:
        line = _line(event)
        self.document.lines.setdefault(place, line)
        if len(place) > self.depth:
            raise _too_deep(line, self.depth)
        if isinstance(event, yaml.AliasEvent):
            raise _stop("uses an alias (*name), which is not allowed: write the value out", line)
        if getattr(event, "tag", None) is not None:
            raise _stop(f"uses a tag ({shorten(getattr(event, 'tag', ''))}), which is not allowed", line)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(place)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(place)
        assert isinstance(event, yaml.ScalarEvent)
        return _scalar(event)

    def sequence(self, place: FieldPath) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            values.append(self.value(event, (*place, len(values))))
        return values

    def mapping(self, place: FieldPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _stop("has a key that is not plain text", _line(event))
            inside, line = (*place, event.value), _line(event)
            self.document.lines.setdefault(inside, line)
            _keep(self.document, found, inside, self.value(next(self.events), inside), line)
        return found


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = event.value
    if not event.implicit[0]:  # quoted
        return text
    if text in YAML_WORDS:
        return YAML_WORDS[text]
    if INTEGER.match(text):
        return _integer(text)
    return float(text) if YAML_FLOAT.match(text) else text


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else float(text)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1  # pyright: ignore[reportAttributeAccessIssue]


def _too_deep(line: int | None = None, depth: int = MAX_DEPTH) -> ScriptError:
    return _stop(f"is nested more than {depth} deep", line)


def _stop(message: str, line: int | None = None) -> ScriptError:
    return ScriptError([Problem((), message, line)])
