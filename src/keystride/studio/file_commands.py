"""The commands that read and write files: scripts, drafts and poses; and what is asked before work is lost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import NoReturn

from keystride.keyframes.files import format_script, parse_script
from keystride.keyframes.problems import ScriptError
from keystride.keyframes.script import Script
from keystride.studio.document.draft import Draft, from_script
from keystride.studio.document.history import UNTITLED
from keystride.studio.document.keyframe_poses import ghosts
from keystride.studio.document.pose_library import PoseExists, PoseLibrary
from keystride.studio.document.posing import pose_of, set_pose, set_posture
from keystride.studio.editor import Editor
from keystride.studio.page.meshes import Figure
from keystride.studio.page.pose_pictures import pose_buttons
from keystride.studio.panels.files import FilesPanel
from keystride.studio.panels.keyframe import KeyframePanel
from keystride.studio.script_folder import Conflict, ScriptFolder
from keystride.studio.unsaved_work import DraftsFolder


@dataclass(frozen=True)
class Choice:
    """A dialog: a question and what each of its buttons does. The last one is also what Escape does."""

    question: str
    buttons: Mapping[str, Callable[[], None]]


Ask = Callable[[Choice], None]


class FileCommands:
    def __init__(self, editor: Editor, folder: ScriptFolder, drafts: DraftsFolder, panel: FilesPanel, ask: Ask) -> None:
        self._editor, self._folder, self._drafts, self._panel, self._ask = editor, folder, drafts, panel, ask

    def open(self, name: str, now: float) -> None:
        try:
            loaded = self._folder.load(name)
        except ScriptError as error:
            self._refuse(name, error)
        self._open(loaded.script, name, now, loaded.digest)

    def revert(self, now: float) -> None:
        """Return to the file on disk; undo returns to the edits."""
        self.open(self._editor.name, now)

    def upload(self, name: str, content: bytes, now: float) -> None:
        name = PurePath(name.replace("\\", "/")).name
        try:
            script = parse_script(content, json=name.lower().endswith(".json"), robot=self._editor.robot)
        except ScriptError as error:
            self._refuse(name, error)
        self._open(script, name, now, None)

    def save(self, name: str, now: float) -> None:
        """Save under a name; ask if that would overwrite something that was not read."""
        name = self._folder.complete(name.strip() or self._editor.name)
        try:
            self._save(name, replace=False)
        except Conflict as conflict:
            overwrite = "Overwrite" if conflict.known else "Replace"
            self._ask(
                Choice(
                    f"{conflict}. Saving would replace it by what you see here.",
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
            raise ValueError("a script needs one keyframe at least")
        stem = self._editor.name.rsplit(".", 1)[0]
        return f"{stem}.{kind}", format_script(script, json=kind == "json").encode()

    def new(self, now: float) -> None:
        self._editor.open(Draft(self._editor.robot), UNTITLED, now)
        self._panel.tell(["A new script."], bad=False)

    def restore(self, tab: str, now: float) -> None:
        """Take an unsaved draft from the autosave; undo goes through its history and back to what was open."""
        document = self._drafts.read(tab)
        if document is None:
            raise ValueError("this draft is gone")
        current = self._editor.document
        document.past.extendleft([current.now, *reversed(current.past)])
        document.files = current.files | document.files
        self._editor.restore(document, now)
        self._drafts.delete(tab)
        self._panel.tell([f"Restored the unsaved draft of {document.name}."], bad=False)

    def refresh(self, open_tabs: frozenset[str]) -> None:
        """Show the folder as it is now, and the drafts of tabs that are gone."""
        drafts = {draft.title: draft.tab for draft in self._drafts.entries() if draft.tab not in open_tabs}
        self._panel.show(self._folder.names(), self._editor.name, drafts)

    def changed_on_disk(self) -> bool:
        """The open file was changed by somebody else since it was read."""
        saved = self._editor.document.files.get(self._editor.name)
        if saved is None or saved.digest is None:
            return False
        return self._folder.digest(self._editor.name) not in (None, saved.digest)

    def _save(self, name: str, *, replace: bool) -> None:
        document = self._editor.document
        digest = self._folder.save(name, document.draft, document.files.get(name), replace=replace)
        document.mark_saved(name, digest)
        self._panel.tell([f"Saved {name} in {self._folder.folder}."], bad=False)

    def _open(self, script: Script, name: str, now: float, digest: str | None) -> None:
        self._editor.open(from_script(script, self._editor.robot), name, now, digest)
        count = len(script.keyframes)
        self._panel.tell([f"Opened {name}: {count} keyframe{'s' if count > 1 else ''}."], bad=False)

    def _refuse(self, name: str, error: ScriptError) -> NoReturn:
        self._panel.tell(ScriptError(error.problems, source=name).lines(), bad=True)
        count = len(error.problems)
        raise ValueError(f"{name} has {count} mistake{'s' if count > 1 else ''}; the Files panel lists them")


class PoseCommands:
    """Use, save and delete the poses of the library that the Keyframe panel shows."""

    def __init__(self, editor: Editor, library: PoseLibrary, figure: Figure, panel: KeyframePanel, ask: Ask) -> None:
        self._editor, self._library, self._figure, self._panel, self._ask = editor, library, figure, panel, ask
        self._shown = False

    def use(self, name: str, now: float) -> None:
        """Give the selected keyframe a pose."""
        key, own = self._editor.selected, self._library.own()
        if key is None:
            raise ValueError("select a keyframe first, then its pose")
        if name in own:
            self._editor.edit(lambda draft: set_pose(draft, key, own[name]), now)
        elif name in self._library.built_in:
            self._editor.edit(lambda draft: set_posture(draft, key, name), now)
        else:
            raise ValueError(f"the pose {name!r} is gone")

    def save(self, name: str) -> None:
        """Save the pose of the selected keyframe; ask before another one is replaced."""
        key = self._editor.selected
        if key is None:
            raise ValueError("select the keyframe whose pose is to be saved")
        pose = pose_of(ghosts(self._editor.draft)[key])
        try:
            self._library.save(name, pose)
        except PoseExists as error:
            replace = {"Replace": lambda: self._library.save(name, pose, replace=True), "Cancel": lambda: None}
            self._ask(Choice(f"{error} Saving would replace it.", replace))

    def delete(self, name: str) -> None:
        question = f"Delete the pose {name}? Keyframes that were given it stay as they are."
        self._ask(Choice(question, {"Delete": lambda: self._library.delete(name), "Cancel": lambda: None}))

    def refresh(self) -> None:
        """Show the library as it is now."""
        if self._library.changed() or not self._shown:
            self._shown = True
            poses = self._library.poses()
            own = [name for name in poses if name not in self._library.built_in]
            self._panel.show_poses(pose_buttons(poses, own, self._figure))
