"""The folder of scripts that the studio reads and writes.

Only names are accepted, never paths, so a page cannot reach other folders. Saving compares the digest of the file with
that of what was read, so nobody overwrites a version they have not seen.
"""

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from keystride.errors import FileError
from keystride.files import write_atomically
from keystride.keyframes.document import MAX_SCRIPT_BYTES, Problem, ScriptError
from keystride.keyframes.files import format_script, load_script, parse_script
from keystride.keyframes.script import Script
from keystride.reading import read_bytes
from keystride.robot.description import Robot
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import SavedFile
from keystride.studio.document.yaml_text import merge

SCRIPT_SUFFIXES = (".yaml", ".yml", ".json")
_writing = threading.Lock()  # shared by all sessions; held from the digest check to the write


class BadName(ValueError):
    """The name is not allowed for a script; the message says what is."""


class Conflict(Exception):
    """The file on disk is not the version that was read."""

    def __init__(self, name: str, known: bool) -> None:
        super().__init__(f"{name} was changed on disk" if known else f"{name} already exists")
        self.name, self.known = name, known


@dataclass(frozen=True)
class LoadedScript:
    script: Script
    digest: str
    text: str | None = None  # of a YAML file, with its comments


class ScriptFolder:
    def __init__(self, folder: Path, robot: Robot) -> None:
        self.folder, self.robot = folder, robot

    def names(self) -> tuple[str, ...]:
        """Return the names of all files that may be scripts; none if the folder cannot be read."""
        try:
            found = [
                path
                for path in self.folder.iterdir()
                if path.suffix.lower() in SCRIPT_SUFFIXES and not path.name.startswith(".") and path.is_file()
            ]
        except OSError:
            return ()
        return tuple(sorted(path.name for path in found))

    def load(self, name: str) -> LoadedScript:
        """Read a script. Raise ScriptError with all mistakes in it, or OSError if the file cannot be read."""
        content = self._content(name)
        try:
            script = parse_script(content, json=_is_json(name), robot=self.robot)
            return LoadedScript(script, _digest(content), yaml_source(name, content))
        except ScriptError as error:
            raise ScriptError(error.problems, source=name) from None

    def digest(self, name: str) -> str | None:
        """Return the digest of a file; None if it does not exist, empty if it cannot be read or be a script."""
        try:
            return _digest(self._content(name))
        except FileNotFoundError:
            return None
        except (ScriptError, OSError):
            return ""

    def save(
        self,
        name: str,
        draft: Draft,
        saved: SavedFile | None,
        source: SavedFile | None = None,
        *,
        replace: bool = False,
    ) -> LoadedScript:
        """Write a draft and return what was written. Comments of the YAML text that the draft was read from are preserved.

        `saved` is what was last read from or written to this name, `source` the file that is edited, if it is another
        one. Raise Conflict if the file on disk is not `saved` and `replace` is not set.
        """
        script = draft.script()
        if script is None:
            raise ValueError("a script needs at least one keyframe")
        path = self._path(name)
        with _writing:
            current = self.digest(name)
            read = saved.digest if saved else None
            check_replaceable(path, self.robot)
            if current not in (None, read) and not replace:
                raise Conflict(name, known=read is not None)
            base, text = source or saved, None
            if base is not None and not _is_json(name):
                on_disk = base is saved and read == current is not None
                text = yaml_source(name, self._content(name)) if on_disk else base.text
            if base is not None and text is not None:
                content = merge(text, base.draft.keys, draft)
            else:
                content = format_script(script, json=_is_json(name))
            write_atomically(path, content)
            return LoadedScript(script, _digest(content.encode()), None if _is_json(name) else content)

    def complete(self, name: str) -> str:
        """Add .yaml to a name without a suffix."""
        return name if Path(name).suffix.lower() in SCRIPT_SUFFIXES else f"{name}.yaml"

    def _content(self, name: str) -> bytes:
        """Raise ScriptError for what cannot be a script, such as a pipe, which would block the reader."""
        try:
            return read_bytes(self._path(name), MAX_SCRIPT_BYTES)
        except FileError as error:
            raise ScriptError([Problem((), str(error))], source=name) from None

    def _path(self, name: str) -> Path:
        plain = Path(name).name == name == PureWindowsPath(name).name
        if (
            not plain
            or name.startswith(".")
            or not name.isprintable()
            or Path(name).suffix.lower() not in SCRIPT_SUFFIXES
        ):
            raise BadName(
                f"{name!r} is not a valid script name: no folders, no leading dot, ending in {', '.join(SCRIPT_SUFFIXES)}"
            )
        return self.folder / name


def check_replaceable(path: Path, robot: Robot) -> None:
    """Raise BadName if the file exists and is not a keyframe script, such as package.json: it must not be replaced."""
    try:
        load_script(path, robot)
    except FileNotFoundError:
        return
    except (ScriptError, OSError) as error:
        raise BadName(f"{path.name} exists and is not a valid keyframe script, so it is not replaced") from error


def yaml_source(name: str, content: bytes) -> str | None:
    """Return the text of a YAML file; None for JSON and for what is not UTF-8."""
    try:
        return None if _is_json(name) else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_json(name: str) -> bool:
    return name.lower().endswith(".json")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
