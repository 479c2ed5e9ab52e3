"""Opening and saving at the desk, with a word on how it went."""

from pathlib import PurePath

from keystride.keyframes.files import format_script, parse_script
from keystride.keyframes.problems import ScriptError
from keystride.keyframes.script import Script
from keystride.studio.desk import Desk
from keystride.studio.draft import Draft, from_script
from keystride.studio.files_panel import FilesPanel
from keystride.studio.shelf import Shelf

UNTITLED = "untitled.yaml"


class Filing:
    def __init__(self, desk: Desk, shelf: Shelf, panel: FilesPanel) -> None:
        self._desk, self._shelf, self._panel = desk, shelf, panel

    def open(self, name: str, now: float) -> None:
        try:
            script = self._shelf.load(name)
        except ScriptError as error:
            self._refuse(name, error)
            return
        self._take(script, name, now)

    def upload(self, name: str, content: bytes, now: float) -> None:
        name = PurePath(name.replace("\\", "/")).name
        try:
            script = parse_script(content, json=name.lower().endswith(".json"))
        except ScriptError as error:
            self._refuse(name, error)
            return
        self._take(script, name, now)

    def save(self, name: str) -> None:
        script = self._script()
        self._desk.name = self._shelf.save(name.strip() or self._desk.name, script)
        self._desk.document.mark_saved()
        self._show()
        self._panel.tell([f"Saved {self._desk.name} in {self._shelf.folder}."], bad=False)

    def download(self, kind: str) -> tuple[str, bytes]:
        """A file name and its content."""
        stem = self._desk.name.rsplit(".", 1)[0]
        return f"{stem}.{kind}", format_script(self._script(), json=kind == "json").encode()

    def new(self, now: float) -> None:
        self._desk.open(Draft(), UNTITLED, now)
        self._show()
        self._panel.tell(["A new script."], bad=False)

    def _script(self) -> Script:
        script = self._desk.draft.script()
        if script is None:
            raise ValueError("a script needs one keyframe at least")
        return script

    def _take(self, script: Script, name: str, now: float) -> None:
        self._desk.open(from_script(script), name, now)
        self._show()
        count = len(script.keyframes)
        self._panel.tell([f"Opened {name}: {count} keyframe{'s' if count > 1 else ''}."], bad=False)

    def _refuse(self, name: str, error: ScriptError) -> None:
        self._panel.tell(ScriptError(error.problems, source=name).lines(), bad=True)
        count = len(error.problems)
        raise ValueError(f"{name} has {count} mistake{'s' if count > 1 else ''}; the Files panel lists them")

    def _show(self) -> None:
        self._panel.show(self._shelf.names(), self._desk.name)
