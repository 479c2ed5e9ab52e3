"""The folder of scripts that the studio reads and writes.

Only names are accepted, never paths, so that no page reaches another place. A file is saved against the digest of what
was read: nobody overwrites what they have not seen.
"""

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from keystride.files import write_atomically
from keystride.keyframes.document import MAX_SCRIPT_BYTES, ScriptError
from keystride.keyframes.files import format_script, load_script, parse_script
from keystride.keyframes.script import Script
from keystride.robot.description import Robot
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import SavedFile
from keystride.studio.document.yaml_text import merge

SCRIPT_SUFFIXES = (".yaml", ".yml", ".json")
_writing = threading.Lock()  # of all sessions: between the check of a digest and the write nobody else writes


class BadName(ValueError):
    """Not a name for a script in this folder; the message says what is."""


class Conflict(Exception):
    """The file on disk is not the one that was read."""

    def __init__(self, name: str, known: bool) -> None:
        super().__init__(f"{name} was changed on disk" if known else f"{name} exists already")
        self.name, self.known = name, known


@dataclass(frozen=True)
class LoadedScript:
    script: Script
    digest: str


class ScriptFolder:
    def __init__(self, folder: Path, robot: Robot) -> None:
        self.folder, self.robot = folder, robot

    def names(self) -> tuple[str, ...]:
        found = (
            path
            for path in self.folder.iterdir()
            if path.suffix.lower() in SCRIPT_SUFFIXES and not path.name.startswith(".")
        )
        return tuple(sorted(path.name for path in found if path.is_file()))

    def load(self, name: str) -> LoadedScript:
        """ScriptError lists what is wrong with the file; OSError if it cannot be read."""
        content = self._content(name)
        try:
            script = parse_script(content, json=_is_json(name), robot=self.robot)
            return LoadedScript(script, _digest(content))
        except ScriptError as error:
            raise ScriptError(error.problems, source=name) from None

    def digest(self, name: str) -> str | None:
        """None if there is no such file."""
        try:
            return _digest(self._content(name))
        except FileNotFoundError:
            return None

    def save(self, name: str, draft: Draft, saved: SavedFile | None, *, replace: bool = False) -> str:
        """Write a draft and return the digest of the file; comments in a YAML file that was read are kept.

        `saved` is what was last read from or written to this name. Conflict if the disk holds something else, unless
        it is to be replaced.
        """
        script = draft.script()
        if script is None:
            raise ValueError("a script needs one keyframe at least")
        path = self._path(name)
        with _writing:
            current = self.digest(name)
            read = saved.digest if saved else None
            check_replaceable(path, self.robot)
            if current not in (None, read) and not replace:
                raise Conflict(name, known=read is not None)
            if saved and read == current is not None and not _is_json(name):
                content = merge(path.read_text(encoding="utf-8"), saved.draft.keys, draft)
            else:
                content = format_script(script, json=_is_json(name))
            write_atomically(path, content)
            return _digest(content.encode())

    def complete(self, name: str) -> str:
        """Add .yaml to a name without a kind."""
        return name if Path(name).suffix.lower() in SCRIPT_SUFFIXES else f"{name}.yaml"

    def _content(self, name: str) -> bytes:
        with self._path(name).open("rb") as file:
            return file.read(MAX_SCRIPT_BYTES + 1)

    def _path(self, name: str) -> Path:
        plain = Path(name).name == name == PureWindowsPath(name).name
        if (
            not plain
            or name.startswith(".")
            or not name.isprintable()
            or Path(name).suffix.lower() not in SCRIPT_SUFFIXES
        ):
            raise BadName(
                f"{name!r} is not a name for a script; allowed: letters, no folders, ending in {', '.join(SCRIPT_SUFFIXES)}"
            )
        return self.folder / name


def check_replaceable(path: Path, robot: Robot) -> None:
    """Raise BadName where a file is that is not a keyframe script, such as package.json: it is not ours to replace."""
    try:
        load_script(path, robot)
    except FileNotFoundError:
        return
    except (ScriptError, OSError) as error:
        raise BadName(
            f"{path.name} exists and is not a keyframe script that can be read: it is not replaced"
        ) from error


def _is_json(name: str) -> bool:
    return name.lower().endswith(".json")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
