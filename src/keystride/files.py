"""Atomic, durable writing: after a crash or a kill, a file or folder is either the old one or the new one.

New content is written under a temporary name beside its destination (`.NAME.PID-RANDOM.part`), flushed to disk, and moved
into place. A killed process can leave such a part behind; `recover` removes the leftovers of processes that no longer run.
"""

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

PART, OLD = ".part", ".old"
AT_FDCWD = -100  # paths are relative to the working directory
RENAME_EXCHANGE = 2
NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)  # by the kernel, file system or sandbox


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file's content in one step; text is written as UTF-8. Missing parent folders are created."""
    content = content.encode() if isinstance(content, str) else content
    with open_atomically(path) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends without an exception."""
    with part_file(path) as part, part.open("wb") as file:
        yield file


@contextmanager
def part_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, with the suffix of `path`, for writers that open files themselves.

    When the block ends without an exception, the file replaces `path`; otherwise it is removed. Symbolic links are
    followed. A destination that is not a regular file, such as /dev/stdout, is written directly.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # leftovers that cannot be removed must not prevent the write
        recover(path)
    part = _temporary_name(path, PART + path.suffix)
    try:
        yield part
        _sync(part)
        part.replace(path)
        _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def part_folder(place: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that replaces `place` when the block ends without an exception."""
    place = Path(os.path.realpath(place))
    place.parent.mkdir(parents=True, exist_ok=True)
    recover(place)
    part = _temporary_name(place, PART)
    part.mkdir()
    try:
        yield part
        replace_folder(part, place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def replace_folder(part: Path, place: Path) -> None:
    """Put the folder `part` at `place`, on the same file system, and delete the folder that was there.

    All files of `part` reach the disk first. On Linux the two folders are exchanged by one system call, so that `place`
    exists and is complete at every moment. Where the exchange is not supported, the old folder is renamed out of the way
    first. A kill between the two renames leaves no `place`; readers that find no folder call `recover(place)`, which
    restores the old one.
    """
    for folder, _, files in os.walk(part):
        for name in files:
            _sync(Path(folder, name))
        _sync(Path(folder))
    if not place.exists():
        part.rename(place)
    elif _exchange(part, place):
        _sync(place.parent)
        shutil.rmtree(part)
    else:
        old = _temporary_name(place, OLD)
        place.rename(old)
        part.rename(place)
        _sync(place.parent)
        shutil.rmtree(old)
    _sync(place.parent)


def refuse_links(folder: Path) -> None:
    """Raise FileExistsError if the folder contains a symbolic link, because writing would replace what it points to."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_symlink():
            reason = f"a link to {os.readlink(path)}; remove it: what it points to would be replaced"
            raise FileExistsError(errno.EEXIST, reason, str(path))


def recover(place: Path) -> list[Path]:
    """Clean up after interrupted writes of a file or folder. Return the paths removed or restored.

    Only leftovers of processes that no longer run on this machine are touched.
    """
    left = _left_behind(place)
    for path in left:
        if path.suffix == OLD and not place.exists():
            path.rename(place)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return left


def _temporary_name(place: Path, kind: str) -> Path:
    return place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}{kind}")


def _left_behind(place: Path) -> list[Path]:
    """Return the temporary files and folders of `place` whose writers have ended, latest first."""
    if not place.parent.is_dir():
        return []
    kinds = f"{PART}(?:{re.escape(place.suffix)})?|{OLD}"
    pattern = re.compile(rf"\.{re.escape(place.name)}\.(\d+)-[0-9a-f]{{8}}(?:{kinds})")
    found = ((path, pattern.fullmatch(path.name)) for path in place.parent.iterdir())
    left = [path for path, match in found if match and not _runs(int(match[1]))]
    return sorted(left, key=lambda path: path.stat().st_ctime, reverse=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process exists, but belongs to another user
        return True
    return True


def _sync(path: Path) -> None:
    """Flush a file or folder to disk; where folders cannot be flushed (Windows), leave that to the system."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two paths atomically. Return False, with nothing changed, where that is not supported."""
    function = _renameat2()
    if function is None:
        return False
    if function(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@cache
def _renameat2() -> Any:
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc 2.28, musl 1.2.4
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function
