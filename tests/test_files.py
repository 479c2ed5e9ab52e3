import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keystride.files import open_atomically, part_file, part_folder, recover, write_atomically

NO_EXCHANGE = """
import ctypes, errno, os, struct

def forbid_exchange():
    # From now on the kernel answers this process as one without renameat2's flags does: a seccomp filter of six BPF instructions.
    number, flags_offset = 316 if os.uname().machine == "x86_64" else 276, 48
    load, equal, any_bit, reply = 0x20, 0x15, 0x45, 0x06
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (load, 0, 0, 0),
            (equal, 0, 3, number),
            (load, 0, 0, flags_offset),
            (any_bit, 0, 1, 2),  # RENAME_EXCHANGE
            (reply, 0, 0, 0x00050000 | errno.EINVAL),
            (reply, 0, 0, 0x7FFF0000),
        )
    )
    code = ctypes.create_string_buffer(program)
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 6, ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert prctl(22, 2, ctypes.byref(filters), 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER

forbid_exchange()
"""

REPLACER = """
import sys
from pathlib import Path
from keystride.files import replace_folder
replace_folder(Path(sys.argv[1]), Path(sys.argv[2]))
"""

# Writes a growing number into two files of a folder, over and over, until it is killed.
PUBLISHER = """
import sys
from pathlib import Path
from keystride.files import part_folder
for number in range(1_000_000):
    with part_folder(Path(sys.argv[1])) as part:
        (part / "a").write_text(str(number))
        (part / "inner").mkdir()
        (part / "inner" / "b").write_text(str(number))
    print(number, flush=True)
"""

exchange_or_rename = pytest.mark.parametrize(
    "way",
    [
        pytest.param(
            "exchange", marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges folders")
        ),
        "rename",
    ],
)


def python(program: str, way: str, *arguments: Path) -> list[str]:
    """Return the command that runs a program with or without the exchange of folders."""
    forbid = NO_EXCHANGE if way == "rename" and sys.platform == "linux" else ""
    return [sys.executable, "-c", forbid + program, *map(str, arguments)]


def write_number(place: Path, number: int) -> None:
    place.mkdir()
    (place / "a").write_text(str(number))


def test_a_write_creates_the_parents_and_leaves_the_file_alone_in_its_folder(tmp_path: Path) -> None:
    write_atomically(tmp_path / "made" / "a.txt", "größer")
    assert [path.read_bytes() for path in (tmp_path / "made").iterdir()] == ["größer".encode()]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.onnx"
    file.write_bytes(b"old")
    with pytest.raises(TypeError), open_atomically(file) as handle:
        handle.writelines([b"half", "not bytes"])  # type: ignore[list-item]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_the_part_of_a_file_keeps_its_suffix_for_writers_that_go_by_it(tmp_path: Path) -> None:
    with part_file(tmp_path / "film.mp4") as part:
        assert part.suffix == ".mp4"
        part.write_bytes(b"film")
    assert (tmp_path / "film.mp4").read_bytes() == b"film"


def test_a_symbolic_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_is_written_directly() -> None:
    write_atomically(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


def test_a_folder_is_not_overwritten_by_a_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, b"content")


@exchange_or_rename
def test_a_folder_replaces_another(tmp_path: Path, way: str) -> None:
    write_number(tmp_path / "place", 1)
    (tmp_path / "place" / "gone").write_text("")
    write_number(tmp_path / "part", 2)
    subprocess.run(python(REPLACER, way, tmp_path / "part", tmp_path / "place"), check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert [(path.name, path.read_text()) for path in (tmp_path / "place").iterdir()] == [("a", "2")]


def test_a_folder_that_could_not_be_filled_leaves_the_old_one(tmp_path: Path) -> None:
    write_number(tmp_path / "place", 1)
    with pytest.raises(FileNotFoundError), part_folder(tmp_path / "place") as part:
        (part / "a").write_text((part / "absent").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert (tmp_path / "place" / "a").read_text() == "1"


@pytest.fixture
def ended() -> int:
    """The id of a process that no longer runs."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("kind", ["part", "old"])
def test_recovery_removes_what_dead_processes_left_only(tmp_path: Path, ended: int, kind: str) -> None:
    write_number(tmp_path / "place", 1)
    dead = tmp_path / f".place.{ended}-0123abcd.{kind}"
    alive = tmp_path / f".place.{os.getpid()}-0123abcd.{kind}"
    other = tmp_path / f".places.{ended}-0123abcd.{kind}"
    for folder in (dead, alive, other):
        folder.mkdir()
    assert recover(tmp_path / "place") == [dead]
    assert set(tmp_path.iterdir()) == {tmp_path / "place", alive, other}


def test_the_next_write_of_a_file_removes_what_a_kill_left_of_the_last_one(tmp_path: Path, ended: int) -> None:
    for process in (ended, os.getpid()):
        (tmp_path / f".a.yaml.{process}-0123abcd.part.yaml").write_text("half")
    write_atomically(tmp_path / "a.yaml", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a.yaml", f".a.yaml.{os.getpid()}-0123abcd.part.yaml"}


def test_recovery_brings_back_the_folder_that_was_renamed_out_of_the_way(tmp_path: Path, ended: int) -> None:
    write_number(tmp_path / f".place.{ended}-0123abcd.old", 1)
    recover(tmp_path / "place")
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert (tmp_path / "place" / "a").read_text() == "1"


@exchange_or_rename
def test_a_kill_at_any_moment_leaves_a_whole_folder(tmp_path: Path, way: str) -> None:
    place, moments = tmp_path / "place", random.Random(0)
    for _ in range(6):
        with subprocess.Popen(python(PUBLISHER, way, place), stdout=subprocess.PIPE) as publisher:
            assert publisher.stdout is not None
            publisher.stdout.readline()
            end = time.monotonic() + moments.uniform(0.0, 0.05)
            while time.monotonic() < end:
                assert way == "rename" or place.is_dir()
            publisher.send_signal(signal.SIGKILL)
        if way == "rename":
            recover(place)
        assert (place / "a").read_text() == (place / "inner" / "b").read_text()
    recover(place)
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
