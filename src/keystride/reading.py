"""Read files that anyone may have written: bounded in size and depth, with errors of one line.

Every reader of keystride raises FileError, or one of its subclasses, for content that it cannot use.
"""

import gzip
import io
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from safetensors.numpy import load_file

from keystride.errors import FileError

MIB = 1 << 20
TEXT_BYTES = 64 * MIB  # of a motion, unpacked: about an hour of a BVH with 30 nodes
JSON_BYTES = 16 * MIB
ARRAY_BYTES = 64 * MIB  # of all arrays of an archive, unpacked: an hour of a clip
ARRAYS = 64  # in an archive
WEIGHT_BYTES = 1024 * MIB
YAML_BYTES = MIB
YAML_DEPTH = 32
GZIP = b"\x1f\x8b"


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes. OSError if it cannot be opened."""
    check_size(path, limit)
    with path.open("rb") as file, named_errors(path):
        content = file.read(limit + 1)
    if len(content) > limit:  # it grew
        raise too_large(limit)
    return content


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Give the errors of a damaged disk, which name no file, the name of the file that is read."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_size(path: Path, limit: int) -> None:
    """Raise FileError for a file that is too large or not a regular one: a pipe or a device could block the reader for ever."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, os.strerror(21), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise FileError("not a regular file")
    if status.st_size > limit:
        raise too_large(limit)


def too_large(limit: int) -> FileError:
    return FileError(f"too large; allowed: at most {limit / MIB:g} MiB, unpacked")


def read_text(path: Path, limit: int = TEXT_BYTES) -> str:
    """Return the text of a file, plain or compressed by gzip, of at most `limit` bytes unpacked."""
    content = read_bytes(path, limit)
    if content[:2] == GZIP:
        content = unpack(content, limit)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"not text in UTF-8: byte {error.start}") from error
    if "\0" in text:
        raise FileError("binary; allowed: text in UTF-8, plain or gzip")
    return text


def unpack(content: bytes, limit: int) -> bytes:
    """Decompress gzip data without ever holding more than `limit` bytes of it."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise FileError("truncated or damaged gzip file") from error
    if len(unpacked) > limit:
        raise too_large(limit)
    return unpacked


def parse_json(text: str, *, finite: bool = True) -> Any:
    """Parse JSON; NaN and Infinity, which are not JSON, are refused unless the caller looks for them itself."""
    try:
        return json.loads(text, parse_constant=_refuse_constant if finite else None)
    except json.JSONDecodeError as error:
        raise FileError(f"truncated or not JSON: {error.msg} in line {error.lineno}") from error
    except RecursionError as error:
        raise FileError("JSON nested too deep") from error
    except FileError:
        raise
    except ValueError as error:
        raise FileError("an integer has thousands of digits; allowed: finite numbers") from error


def _refuse_constant(word: str) -> float:
    raise FileError(f"{word} is not allowed; allowed: finite numbers")


def read_json(path: Path, limit: int = JSON_BYTES) -> Any:
    """Read a JSON file; errors name it."""
    try:
        return parse_json(read_text(path, limit))
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


def read_yaml(path: Path, limit: int = YAML_BYTES, depth: int = YAML_DEPTH) -> Any:
    """Read a YAML file of plain values, without aliases, nested at most `depth` deep; errors name file and line."""
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        text = read_text(path, limit)
        _check_events(yaml.parse(text, Loader=loader), depth)
        return yaml.load(text, Loader=loader)  # noqa: S506 (both are safe)
    except FileError as error:
        raise FileError(f"{path}{error}" if str(error).startswith(":") else f"{path}: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}" if mark else ""
        raise FileError(f"{path}{place}: not valid YAML: {one_line(error.problem or error.context)}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # an invalid date, an endless number
        raise FileError(f"{path}: not valid YAML: {one_line(error)}") from error


def _check_events(events: Iterable[Any], allowed: int) -> None:
    """Reject aliases and deep nesting, which loaders expand without bound and which could fill the memory."""
    depth = 0
    for event in events:
        place = f":{event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent):
            raise FileError(f"{place}: aliases (*name) are not allowed: write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > allowed:
            raise FileError(f"{place}: nested too deep; allowed: {allowed} levels")


def read_arrays(path: Path, limit: int = ARRAY_BYTES) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file. The sizes in its headers are compared with the data before memory is allocated."""
    content = read_bytes(path, limit)
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if len(members) > ARRAYS:
                raise FileError(f"{len(members)} arrays; allowed: at most {ARRAYS}")
            left = limit
            for member in members:
                with archive.open(member) as file:
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise too_large(limit)
                name = member.filename.removesuffix(".npy")
                arrays[name] = _array(name, data)
    except FileError:
        raise
    except Exception as error:  # zipfile and zlib raise a dozen kinds for damaged archives
        raise FileError(f"truncated or not a NumPy archive: {one_line(error)}") from error
    return arrays


def _array(name: str, data: bytes) -> np.ndarray:
    shown = one_line(repr(name), 60)
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version}")
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(stream)
    except Exception as error:  # the header is a Python literal, which can be wrong in many ways
        raise FileError(f"array {shown}: damaged header: {one_line(error)}") from error
    if dtype.hasobject or (dtype.itemsize == 0 and prod(shape) > MIB):
        raise FileError(f"array {shown}: type {dtype} is not allowed; allowed: numbers and text, no pickles")
    there = len(data) - stream.tell()
    if any(length < 0 for length in shape) or prod(shape) * dtype.itemsize != there:
        raise FileError(f"array {shown}: {shape} of {dtype} announced, {there} bytes found")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


def read_tensors(path: Path, limit: int = WEIGHT_BYTES) -> dict[str, np.ndarray]:
    """Return the tensors of a safetensors file, all of finite numbers."""
    check_size(path, limit)
    try:
        tensors = load_file(path)
    except Exception as error:  # for types that NumPy lacks, it raises various exceptions
        raise FileError(f"damaged or not a safetensors file: {one_line(error)}") from error
    for name, values in tensors.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise FileError(f"tensor {one_line(repr(name), 60)} holds values that are not finite")
    return tensors


Model = TypeVar("Model", bound=BaseModel)
MOST_NAMED = 3  # mistakes in one message
IN_FILES = {  # pydantic's kind of error, and what it means in a file
    **dict.fromkeys(
        ("model_type", "dataclass_type", "dict_type", "model_attributes_type"), "input should be a mapping"
    ),
    **dict.fromkeys(("tuple_type", "list_type"), "input should be a list"),
    "path_type": "input should be a path",
    "extra_forbidden": "unknown field",
}


def check_model(data: Any, kind: type[Model], source: str) -> Model:
    """Validate what was read from JSON by a schema; FileError names the first fields that are wrong and what is allowed."""
    try:
        return kind.model_validate_json(json.dumps(data))
    except ValidationError as error:
        entries = error.errors(include_url=False, include_context=False)
        more = f"; and {len(entries) - MOST_NAMED} more" if len(entries) > MOST_NAMED else ""
        raise FileError(f"{source}: {'; '.join(map(mistake, entries[:MOST_NAMED]))}{more}") from error


def mistake(entry: ErrorDetails) -> str:
    """Return one of pydantic's errors in a few words: field, what is allowed, what was found."""
    field = one_line(".".join(map(str, entry["loc"])), 60)
    found = "" if entry["type"] == "missing" else f", found {one_line(repr(entry['input']), 40)}"
    message = f"{reason(entry)}{found}"
    return f"{field}: {message}" if field else message


def reason(entry: ErrorDetails) -> str:
    """Return what pydantic says is allowed, in terms of the file rather than of Python."""
    message = one_line(IN_FILES.get(entry["type"], entry["msg"]))
    message = message.removeprefix("Value error, ").replace("Tuple ", "List ").replace(" after validation", "")
    return message[:1].lower() + message[1:]


def one_line(value: object, longest: int = 120) -> str:
    """Return text that can be quoted in a message: one line, printable, not too long."""
    text = " ".join(str(value).split())
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
