"""Scripts by name, in one folder and nowhere else, and never over what was not seen."""

import dataclasses
import os
from pathlib import Path

import pytest

from keystride.keyframes.document import ScriptError
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import from_script
from keystride.studio.document.history import SavedFile
from keystride.studio.script_folder import BadName, Conflict, ScriptFolder

SCRIPT = Script(keyframes=(Keyframe(time=1.0, yaw=30.0),))
DRAFT = from_script(SCRIPT, GO2)


@pytest.mark.parametrize("name", ["a.yaml", "b.json", "c.yml", "with space.yaml", "ü.yaml"])
def test_what_is_saved_can_be_loaded(tmp_path: Path, name: str):
    folder = ScriptFolder(tmp_path, GO2)
    digest = folder.save(name, DRAFT, None).digest
    assert folder.load(name).script == SCRIPT
    assert folder.load(name).digest == digest == folder.digest(name)
    assert folder.names() == (name,)


def test_scripts_are_read_and_saved_within_the_limits_of_the_robot(tmp_path: Path):
    legs = tuple(dataclasses.replace(leg, lower=(*leg.lower[:2], -3.0)) for leg in GO2.legs)
    folding = dataclasses.replace(GO2, name="folding", legs=legs)
    text = "version: 1\nkeyframes:\n  - time: 1.0  # fold\n    posture: {FL_calf_joint: -170}\n"
    (tmp_path / "fold.yaml").write_text(text)
    folder = ScriptFolder(tmp_path, folding)
    loaded = folder.load("fold.yaml")
    draft = from_script(loaded.script, folding)
    folder.save("fold.yaml", drafts.change(draft, 1, yaw=5.0), SavedFile(draft, loaded.digest))
    assert (tmp_path / "fold.yaml").read_text() == text + "    yaw: 5.0\n"
    with pytest.raises(ScriptError, match=r"fold\.yaml.*beyond its limit"):
        ScriptFolder(tmp_path, GO2).load("fold.yaml")


def test_a_name_without_a_kind_becomes_yaml(tmp_path: Path):
    assert ScriptFolder(tmp_path, GO2).complete("walk") == "walk.yaml"


@pytest.mark.parametrize(
    "name", ["../a.yaml", "/tmp/a.yaml", "a/b.yaml", "a\\b.yaml", ".a.yaml", "c:\\a.yaml", "a\n.yaml"]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str):
    folder = tmp_path / "scripts"
    folder.mkdir()
    with pytest.raises(BadName):
        ScriptFolder(folder, GO2).save(name, DRAFT, None)
    with pytest.raises(BadName):
        ScriptFolder(folder, GO2).load(name)
    assert list(tmp_path.rglob("*.yaml")) == []


def test_only_scripts_are_listed(tmp_path: Path):
    for name in ("b.yaml", "a.json", "notes.txt", ".hidden.yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.yaml").mkdir()
    assert ScriptFolder(tmp_path, GO2).names() == ("a.json", "b.yaml")


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_what_was_not_read_is_not_overwritten(tmp_path: Path, name: str):
    folder = ScriptFolder(tmp_path, GO2)
    digest = folder.save(name, DRAFT, None).digest
    with pytest.raises(Conflict, match="already exists"):
        folder.save(name, DRAFT, None)
    changed = drafts.change(DRAFT, 1, yaw=40.0)
    folder.save(name, changed, SavedFile(DRAFT, digest))
    with pytest.raises(Conflict, match="changed on disk"):
        folder.save(name, DRAFT, SavedFile(DRAFT, digest))
    assert from_script(folder.load(name).script, GO2) == changed
    folder.save(name, DRAFT, SavedFile(DRAFT, digest), replace=True)
    assert folder.load(name).script == SCRIPT


def test_comments_go_along_to_another_name_and_over_another_version(tmp_path: Path):
    text = "# my show\r\nversion: 1\r\nkeyframes:\r\n  - {time: 1.0, yaw: 30}  # first\r\n"
    (tmp_path / "a.yaml").write_bytes(text.encode())
    folder = ScriptFolder(tmp_path, GO2)
    loaded = folder.load("a.yaml")
    draft = from_script(loaded.script, GO2)
    read = SavedFile(draft, loaded.digest, loaded.text)
    changed, expected = drafts.change(draft, 1, yaw=40.0), text.replace("30", "40.0").encode()
    folder.save("copy.yaml", changed, None, read)
    assert (tmp_path / "copy.yaml").read_bytes() == expected
    (tmp_path / "a.yaml").write_text("version: 1\nkeyframes:\n  - {time: 2.0, yaw: 0}\n")
    folder.save("a.yaml", changed, read, replace=True)
    assert (tmp_path / "a.yaml").read_bytes() == expected
    written = folder.save("copy.json", changed, None, read)
    assert (written.script, written.text) == (changed.script(), None)


def test_what_took_the_place_of_a_script_is_a_change(tmp_path: Path):
    folder = ScriptFolder(tmp_path / "scripts", GO2)
    digest = folder.save("a.yaml", DRAFT, None).digest
    (tmp_path / "scripts" / "a.yaml").unlink()
    (tmp_path / "scripts" / "a.yaml").mkdir()
    assert folder.digest("a.yaml") not in (None, digest)
    with pytest.raises(BadName, match="is not replaced"):
        folder.save("a.yaml", DRAFT, SavedFile(DRAFT, digest), replace=True)
    (tmp_path / "scripts").rename(tmp_path / "elsewhere")
    assert (folder.names(), folder.digest("a.yaml")) == ((), None)


def test_a_file_that_was_deleted_is_written_again(tmp_path: Path):
    folder = ScriptFolder(tmp_path, GO2)
    digest = folder.save("a.yaml", DRAFT, None).digest
    (tmp_path / "a.yaml").unlink()
    assert folder.save("a.yaml", DRAFT, SavedFile(DRAFT, digest)).digest == digest


@pytest.mark.parametrize("content", ['{"name": "a page", "version": "1.0.0"}', "", "version: 1\nkeyframes: 3\n", "\0"])
def test_what_is_not_a_script_is_not_replaced(tmp_path: Path, content: str):
    (tmp_path / "package.json").write_text(content)
    for replace in (False, True):
        with pytest.raises(BadName, match=r"package\.json exists and is not a valid keyframe script"):
            ScriptFolder(tmp_path, GO2).save("package.json", DRAFT, None, replace=replace)
    assert (tmp_path / "package.json").read_text() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in its file system")
def test_a_pipe_or_a_large_file_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (2 << 20))
    folder = ScriptFolder(tmp_path, GO2)
    for name, message in (("pipe.yaml", "not a regular file"), ("large.yaml", "too large")):
        with pytest.raises(ScriptError, match=rf"{name}.*{message}"):
            folder.load(name)
        with pytest.raises(BadName, match="is not replaced"):
            folder.save(name, DRAFT, None, replace=True)
