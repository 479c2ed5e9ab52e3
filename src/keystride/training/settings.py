"""Convert nested frozen dataclasses from and to plain data, validate them and compare them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from keystride import reading
from keystride.errors import FileError, UserError
from keystride.reading import one_line, reason

Config = TypeVar("Config")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file."""
    try:
        values = reading.read_yaml(path)
    except FileError as error:
        raise UserError(str(error)) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected settings such as `name: value`, found {type(values).__name__}")
    return values


def plain_config(config: Any) -> dict[str, Any]:
    """Return a dataclass as dicts, lists, numbers and strings."""
    return json.loads(json.dumps(asdict(config), default=str))


def overridden(default: Config, values: Any, where: str = "") -> Config:
    """Return a dataclass with some fields replaced by plain values; errors name the path of the setting.

    For a tuple of named dataclasses, a list replaces all entries and a mapping overrides existing entries by name.
    """
    assert is_dataclass(default)
    assert not isinstance(default, type)
    return replace(default, **_fields(type(default), values, default, where))


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ between two plain configurations, as {path: (old, new)}."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys((*old, *new)):
        path, before, after = _join(where, name), old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            found |= differences(before, after, path)
        elif before != after:
            found[path] = before, after
    return found


def paths(values: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield the dotted paths of all leaves of a nested mapping."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from paths(value, _join(where, name))
        else:
            yield _join(where, name)


def is_within(path: str, prefix: str) -> bool:
    """Return whether a dotted path equals `prefix` or lies below it."""
    return path == prefix or path.startswith(f"{prefix}.")


def _fields(kind: type, values: Any, default: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise UserError(f"{where or 'configuration'}: expected settings such as `name: value`, found {_found(values)}")
    hints, known = get_type_hints(kind), {field.name: field for field in fields(kind)}
    for name in values:
        if name not in known:
            raise UserError(f"{_join(where, _named(name))}: unknown setting{_suggestion(str(name), list(known))}")
    return {
        name: _value(hints[name], value, _present(known[name], default), _join(where, name))
        for name, value in values.items()
    }


def _value(kind: Any, value: Any, default: Any, where: str) -> Any:
    if is_dataclass(kind):
        return overridden(default, value, where)
    entry = get_args(kind)[0] if get_origin(kind) is tuple else None
    if is_dataclass(entry):
        return _entries(entry, value, default, where)
    from pydantic import TypeAdapter, ValidationError  # lazy, to keep --help fast

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        reasons = "; ".join(_reason(part, where) for part in error.errors(include_url=False))
        raise UserError(f"{one_line(reasons, 300)}; found {_found(value)}") from error


def _entries(kind: Any, value: Any, default: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        names = [entry.name for entry in default]
        for name in value:
            if name not in names:
                raise UserError(f"{_join(where, _named(name))}: unknown name{_suggestion(str(name), names)}")
        return tuple(
            overridden(entry, value[entry.name], _join(where, entry.name)) if entry.name in value else entry
            for entry in default
        )
    if not isinstance(value, list):
        raise UserError(f"{where}: expected a list, found {_found(value)}")
    return tuple(_new(kind, item, _join(where, i)) for i, item in enumerate(value))


def _new(kind: Any, values: Any, where: str) -> Any:
    given = _fields(kind, values, None, where)
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    for name in needed:
        if name not in given:
            raise UserError(f"{_join(where, name)}: missing")
    return kind(**given)


def _present(field: "Field[Any]", owner: Any) -> Any:
    """Return the value that overrides of this field are applied to."""
    if owner is not None:
        return getattr(owner, field.name)
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _reason(part: Any, where: str) -> str:
    place = ".".join(str(key) for key in part["loc"] if isinstance(key, int))  # drop the names of union members
    return f"{_join(where, place) if place else where}: {reason(part)}"


def _found(value: Any) -> str:
    return one_line(repr(value), 60)


def _named(name: object) -> str:
    return one_line(name, 60) or repr(name)


def _suggestion(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; choose from {', '.join(known)}"


def _join(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)
