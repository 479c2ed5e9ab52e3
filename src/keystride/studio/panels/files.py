"""Open and save scripts: in the folder of the server, and on the browser's own disk."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import viser

from keystride.studio.page import palette

NEW: str = "(choose)"

OnFileAction = Callable[[str, Any], None]  # open, save, revert, restore, upload, download, new; and what


class FilesPanel:
    def __init__(self, gui: viser.GuiApi, asked: OnFileAction) -> None:
        self._asked = asked
        self._shown: tuple[tuple[str, ...], str, tuple[str, ...]] | None = None
        self._tabs: dict[str, str] = {}
        self._message = gui.add_html("")
        with gui.add_folder("In the folder of the server"):
            self._names: viser.GuiDropdownHandle[str] = gui.add_dropdown("open", (NEW,))
            self._name = gui.add_text("save as", "")
            save = gui.add_button("Save", color=palette.BUTTON, icon=viser.Icon.DEVICE_FLOPPY, hint="Ctrl S")
            revert = gui.add_button(
                "Revert", color=palette.BUTTON, icon=viser.Icon.HISTORY, hint="back to the file on disk; can be undone"
            )
            self._drafts: viser.GuiDropdownHandle[str] = gui.add_dropdown("unsaved drafts", (NEW,), visible=False)
        with gui.add_folder("On this computer"):
            self._upload = gui.add_upload_button(
                "Upload a script", icon=viser.Icon.UPLOAD, mime_type=".yaml,.yml,.json"
            )
            as_yaml = gui.add_button("Download as YAML", color=palette.BUTTON, icon=viser.Icon.DOWNLOAD)
            as_json = gui.add_button("Download as JSON", color=palette.BUTTON, icon=viser.Icon.DOWNLOAD)
        new = gui.add_button("New script", color=palette.BUTTON, icon=viser.Icon.FILE_PLUS)
        self._names.on_update(self._on_open)
        self._upload.on_upload(self._on_upload)
        self._drafts.on_update(self._on_restore)
        self._press(save, "save", lambda: self._name.value)
        self._press(revert, "revert", lambda: None)
        self._press(as_yaml, "download", lambda: "yaml")
        self._press(as_json, "download", lambda: "json")
        self._press(new, "new", lambda: None)

    def show(self, names: Sequence[str], name: str, drafts: Mapping[str, str]) -> None:
        """The files of the folder, the one that is open, and unsaved drafts by their titles."""
        shown = (tuple(names), name, tuple(drafts))
        if shown == self._shown:
            return
        renamed = self._shown is None or self._shown[1] != name
        self._shown, self._tabs = shown, dict(drafts)
        self._names.options = (NEW, *names)
        self._names.value = name if name in names else NEW
        if renamed:  # else it may be half typed
            self._name.value = name
        self._drafts.options = (NEW, *drafts)
        self._drafts.value = NEW
        self._drafts.visible = bool(drafts)

    def tell(self, lines: Sequence[str], *, bad: bool) -> None:
        """Messages that stay until the next ones."""
        text = "<br>".join(escape(line) for line in lines)
        self._message.content = f'<div class="ks-message{" bad" if bad else ""}">{text}</div>'

    async def _on_open(self, event: viser.GuiEvent) -> None:
        if event.client is not None and self._names.value != NEW:
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
