"""The Files panel: open and save scripts in the server's folder or on the user's computer."""

import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import PurePath
from typing import Any, NoReturn

import viser

from keystride import colours
from keystride.keyframes.document import ScriptError
from keystride.keyframes.files import format_script, parse_script
from keystride.keyframes.script import Script
from keystride.studio.document.draft import Draft, from_script
from keystride.studio.document.history import UNTITLED, Document
from keystride.studio.editor import Editor
from keystride.studio.page.page_channel import Ask, Choice
from keystride.studio.script_folder import Conflict, ScriptFolder, yaml_source
from keystride.studio.unsaved_work import DraftsFolder

CHOOSE: str = "(choose)"

OnFileAction = Callable[[str, Any], None]  # name of the event, and its value


class FilesPanel:
    def __init__(self, gui: viser.GuiApi, asked: OnFileAction) -> None:
        self._asked = asked
        self._shown: tuple[tuple[str, ...], str, tuple[tuple[str, str], ...]] | None = None
        self._tabs: dict[str, str] = {}
        self._message = gui.add_html("")
        with gui.add_folder("Folder of the server"):
            self._names: viser.GuiDropdownHandle[str] = gui.add_dropdown("open", (CHOOSE,))
            self._name = gui.add_text("save as", "")
            save = gui.add_button("Save", color=colours.BUTTON, icon=viser.Icon.DEVICE_FLOPPY, hint="Ctrl S")
            revert = gui.add_button(
                "Revert", color=colours.BUTTON, icon=viser.Icon.HISTORY, hint="back to the file on disk; can be undone"
            )
            self._drafts: viser.GuiDropdownHandle[str] = gui.add_dropdown("unsaved drafts", (CHOOSE,), visible=False)
        with gui.add_folder("This computer"):
            self._upload = gui.add_upload_button(
                "Upload a script", icon=viser.Icon.UPLOAD, mime_type=".yaml,.yml,.json"
            )
            as_yaml = gui.add_button("Download as YAML", color=colours.BUTTON, icon=viser.Icon.DOWNLOAD)
            as_json = gui.add_button("Download as JSON", color=colours.BUTTON, icon=viser.Icon.DOWNLOAD)
        new = gui.add_button("New script", color=colours.BUTTON, icon=viser.Icon.FILE_PLUS)
        self._names.on_update(self._on_open)
        self._upload.on_upload(self._on_upload)
        self._drafts.on_update(self._on_restore)
        self._press(save, "save", lambda: self._name.value)
        self._press(revert, "revert", lambda: None)
        self._press(as_yaml, "download", lambda: "yaml")
        self._press(as_json, "download", lambda: "json")
        self._press(new, "new", lambda: None)

    def show(self, names: Sequence[str], name: str, drafts: Mapping[str, str]) -> None:
        """Show the files of the folder, the name of the open one, and the tabs of unsaved drafts by their titles."""
        shown = (tuple(names), name, tuple(drafts.items()))
        if shown == self._shown:
            return
        renamed = self._shown is None or self._shown[1] != name
        self._shown, self._tabs = shown, dict(drafts)
        self._names.options = (CHOOSE, *names)
        self._names.value = name if name in names else CHOOSE
        if renamed:  # otherwise the user may be typing a name
            self._name.value = name
        self._drafts.options = (CHOOSE, *drafts)
        self._drafts.value = CHOOSE
        self._drafts.visible = bool(drafts)

    def show_messages(self, lines: Sequence[str], *, bad: bool) -> None:
        """Show messages until the next ones."""
        text = "<br>".join(escape(line) for line in lines)
        self._message.content = f'<div class="ks-message{" bad" if bad else ""}">{text}</div>'

    async def _on_open(self, event: viser.GuiEvent) -> None:
        if event.client is not None and self._names.value != CHOOSE:
            self._asked("open", self._names.value)

    async def _on_restore(self, event: viser.GuiEvent) -> None:
        if event.client is not None and self._drafts.value in self._tabs:
            self._asked("restore", self._tabs[self._drafts.value])

    async def _on_upload(self, event: viser.GuiEvent) -> None:
        self._asked("upload", self._upload.value)

    def _press(self, button: viser.GuiButtonHandle, what: str, value: Callable[[], Any]) -> None:
        async def pressed(_: viser.GuiEvent) -> None:
            self._asked(what, value())

        button.on_click(pressed)


class FileCommands:
    """Open, save, revert, upload and restore scripts, asking before work would be lost."""

    def __init__(self, editor: Editor, folder: ScriptFolder, drafts: DraftsFolder, panel: FilesPanel, ask: Ask) -> None:
        self._editor, self._folder, self._drafts, self._panel, self._ask = editor, folder, drafts, panel, ask

    def events(self) -> dict[str, Callable[[Any], None]]:
        clock = time.perf_counter
        return {
            "open": lambda name: self.open(str(name), clock()),
            "save": lambda name: self.save(name or "", clock()),
            "revert": lambda _: self.revert(clock()),
            "restore": lambda tab: self.restore(str(tab), clock()),
            "upload": lambda file: self.upload(file.name, file.content, clock()),
            "new": lambda _: self.new(clock()),
        }

    def open(self, name: str, now: float) -> None:
        try:
            loaded = self._folder.load(name)
        except ScriptError as error:
            self._refuse(name, error)
        self._open(loaded.script, name, now, loaded.digest, loaded.text)

    def revert(self, now: float) -> None:
        """Return to the file on disk; undo returns to the edits."""
        self.open(self._editor.name, now)

    def upload(self, name: str, content: bytes, now: float) -> None:
        name = PurePath(name.replace("\\", "/")).name
        try:
            script = parse_script(content, json=name.lower().endswith(".json"), robot=self._editor.robot)
        except ScriptError as error:
            self._refuse(name, error)
        self._open(script, name, now, None, yaml_source(name, content), uploaded=True)

    def save(self, name: str, now: float) -> None:
        """Save under a name; ask first if that would overwrite a file that was changed or never read."""
        name = self._folder.complete(name.strip() or self._editor.name)
        try:
            self._save(name, replace=False)
        except Conflict as conflict:
            overwrite = "Overwrite" if conflict.known else "Replace"
            self._ask(
                Choice(
                    f"{conflict}. Saving would replace it with what you see here.",
                    {
                        overwrite: lambda: self._save(name, replace=True),
                        "Open the file": lambda: self.open(name, now),
                        "Cancel": lambda: None,
                    },
                )
            )

    def download(self, kind: str) -> tuple[str, bytes]:
        """Return a file name and its content."""
        script = self._editor.draft.script()
        if script is None:
            raise ValueError("a script needs at least one keyframe")
        stem = self._editor.name.rsplit(".", 1)[0]
        return f"{stem}.{kind}", format_script(script, json=kind == "json").encode()

    def new(self, now: float) -> None:
        self._editor.open(Draft(self._editor.robot), UNTITLED, now)
        self._panel.show_messages(["New script."], bad=False)

    def restore(self, tab: str, now: float) -> None:
        """Restore an autosaved draft; undo goes back through its history to what was open before."""
        document = self._drafts.read(tab)
        if document is None:
            raise ValueError("this draft no longer exists")
        current = self._editor.document
        document.past.extendleft([current.now, *reversed(current.past)])
        document.files = current.files | document.files
        self._editor.restore(document, now)
        self._drafts.delete(tab)
        self._panel.show_messages([f"Restored the unsaved draft of {document.name}."], bad=False)

    def refresh(self, open_tabs: frozenset[str]) -> None:
        """Show the current files of the folder, and the drafts of tabs that are gone."""
        self._panel.show(self._folder.names(), self._editor.name, self._drafts.titles(open_tabs))

    def changed_on_disk(self) -> bool:
        """Return whether the open file has changed on disk since it was read."""
        saved = self._editor.document.files.get(self._editor.name)
        if saved is None or saved.digest is None:
            return False
        return self._folder.digest(self._editor.name) not in (None, saved.digest)

    def up_to_date(self, document: Document) -> Document:
        """Read the file of a document again if it has no unsaved edits and the file has changed."""
        saved = document.files.get(document.name)
        if document.unsaved or saved is None or saved.digest is None:
            return document
        try:
            loaded = self._folder.load(document.name)
        except (ScriptError, OSError, ValueError):
            return document
        if loaded.digest != saved.digest:
            draft = from_script(loaded.script, self._editor.robot)
            document.open(draft, document.name, loaded.digest, loaded.text)
        return document

    def report_autosave(self, error: OSError) -> None:
        self._panel.show_messages([f"Autosave failed: {error}"], bad=True)

    def _save(self, name: str, *, replace: bool) -> None:
        document = self._editor.document
        source = None if name == document.name else document.files.get(document.name)
        written = self._folder.save(name, document.draft, document.files.get(name), source, replace=replace)
        document.mark_saved(name, written.digest, written.text)
        self._panel.show_messages([f"Saved {name} in {self._folder.folder}."], bad=False)

    def _open(
        self,
        script: Script,
        name: str,
        now: float,
        digest: str | None,
        text: str | None,
        *,
        uploaded: bool = False,
    ) -> None:
        draft = from_script(script, self._editor.robot)
        self._editor.open(draft, name, now, digest, text, uploaded=uploaded)
        count = len(script.keyframes)
        self._panel.show_messages([f"Opened {name}: {count} keyframe{'s' if count > 1 else ''}."], bad=False)

    def _refuse(self, name: str, error: ScriptError) -> NoReturn:
        self._panel.show_messages(ScriptError(error.problems, source=name).lines(), bad=True)
        count = len(error.problems)
        raise ValueError(f"{name} has {count} mistake{'s' if count > 1 else ''}; the Files panel lists them")
