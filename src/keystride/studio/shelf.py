"""The folder of scripts that the studio reads and writes: names only, so that no page reaches another place."""

from pathlib import Path, PureWindowsPath

from keystride.keyframes.files import load_script, save_script
from keystride.keyframes.script import Script

KINDS = (".yaml", ".yml", ".json")


class BadName(ValueError):
    """Not a name for a script in this folder; the message says what is."""


class Shelf:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> tuple[str, ...]:
        found = (
            path for path in self.folder.iterdir() if path.suffix.lower() in KINDS and not path.name.startswith(".")
        )
        return tuple(sorted(path.name for path in found if path.is_file()))

    def load(self, name: str) -> Script:
        return load_script(self._path(name))

    def save(self, name: str, script: Script) -> str:
        """The name under which it was saved: .yaml is added where a kind is missing."""
        name = name if Path(name).suffix.lower() in KINDS else f"{name}.yaml"
        save_script(script, self._path(name))
        return name

    def _path(self, name: str) -> Path:
        plain = Path(name).name == name == PureWindowsPath(name).name
        if not plain or name.startswith(".") or not name.isprintable() or Path(name).suffix.lower() not in KINDS:
            raise BadName(
                f"{name!r} is no name for a script; allowed: letters, no folders, ending in {', '.join(KINDS)}"
            )
        return self.folder / name
