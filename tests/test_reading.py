"""Readers of files that anyone may have written: limits, and errors of one line."""

import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from keystride.errors import FileError
from keystride.reading import check_model, one_line, parse_json, read_arrays, read_json, read_text, read_yaml


def written(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


def test_text_comes_plain_or_compressed_and_without_its_mark(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, "\ufeffwérd".encode())) == "wérd"
    assert read_text(written(tmp_path, gzip.compress("wérd".encode()))) == "wérd"


@pytest.mark.parametrize(
    ("content", "limit", "message"),
    [
        (b"a" * 11, 10, "too large"),
        (gzip.compress(b"a" * 1000), 999, "too large"),  # the file itself is smaller
        (gzip.compress(b"a" * 10)[:-3], 100, "truncated or damaged gzip"),
        (b"ab\xff", 10, "not text in UTF-8: byte 2"),
        (b"a\0b", 10, "binary"),
    ],
)
def test_text_beyond_its_limits_is_refused(tmp_path: Path, content: bytes, limit: int, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(FileError, match=message):
        read_text(path, limit)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in its file system")
def test_a_pipe_does_not_block_and_a_folder_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="not a regular file"):
        read_text(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": [1, 2', "truncated or not JSON: .* in line 1"),
        ("[1,\n2,,]", "in line 2"),
        ("[NaN]", "NaN is not allowed"),
        ("[" * 200_000, "nested too deep"),
        ("9" * 10_000, "thousands of digits"),
    ],
)
def test_json_that_cannot_be_used_is_named(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        parse_json(text)


def test_files_are_named_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"file: truncated or not JSON"):
        read_json(written(tmp_path, b"{"))
    with pytest.raises(FileError, match=r"file:2: not valid YAML"):
        read_yaml(written(tmp_path, b"a: 1\nb: c: d\n"))
    with pytest.raises(FileError, match=r"file:2: aliases \(\*name\) are not allowed"):
        read_yaml(written(tmp_path, b"a: &x [1]\nb: *x\n"))
    with pytest.raises(FileError, match=r"file:1: nested too deep; allowed: 3 levels"):
        read_yaml(written(tmp_path, b"[[[[1]]]]"), depth=3)
    assert read_yaml(written(tmp_path, b"[[[1]]]"), depth=3) == [[[1]]]


def archive(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return stream.getvalue()


def array_file(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, values, allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a": array_file(np.array([{}], dtype=object))}, "type object is not allowed.*no pickles"),
        ({"a": array_file(np.arange(4.0))[:-8]}, r"\(4,\) of float64 announced, 24 bytes found"),
        ({"a": b"nothing"}, "damaged header"),
        ({f"a{i}": b"" for i in range(65)}, "65 arrays; allowed: at most 64"),
    ],
)
def test_archives_hold_what_they_announce_and_no_objects(
    tmp_path: Path, members: dict[str, bytes], message: str
) -> None:
    with pytest.raises(FileError, match=message):
        read_arrays(written(tmp_path, archive(**members)))


def test_arrays_come_back_by_name(tmp_path: Path) -> None:
    found = read_arrays(written(tmp_path, archive(a=array_file(np.arange(3)), b=array_file(np.array("text")))))
    assert found["a"].tolist() == [0, 1, 2]
    assert str(found["b"]) == "text"


class Example(BaseModel):
    model_config = {"extra": "forbid"}
    one: int
    two: tuple[float, ...] = ()


def test_fields_that_are_wrong_are_listed() -> None:
    assert check_model({"one": 1, "two": [2]}, Example, "f") == Example(one=1, two=(2.0,))
    with pytest.raises(
        FileError, match=r"^f: one: .*, found 'x'; two: input should be a list, found 3; tree: unknown field"
    ):
        check_model({"one": "x", "two": 3, "tree": 1}, Example, "f")


def test_quoted_text_is_one_printable_line_of_limited_length() -> None:
    assert one_line("a\n\tb\x1b[31m") == "a b?[31m"
    assert one_line("x" * 200, 10) == "xxxxxxx..."


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="this system has no file that cannot be read")
def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(OSError, match="Input/output error") as caught:
        read_text(Path("/proc/self/mem"))
    assert caught.value.filename == "/proc/self/mem"
