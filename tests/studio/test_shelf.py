"""Scripts by name, in one folder and nowhere else."""

from pathlib import Path

import pytest

from keystride.keyframes.script import Keyframe, Script
from keystride.studio.shelf import BadName, Shelf

SCRIPT = Script(keyframes=(Keyframe(time=1.0, yaw=30.0),))


@pytest.mark.parametrize("name", ["a.yaml", "b.json", "c.yml", "with space.yaml", "ü.yaml"])
def test_what_is_saved_can_be_loaded(tmp_path: Path, name: str):
    shelf = Shelf(tmp_path)
    assert shelf.save(name, SCRIPT) == name
    assert shelf.load(name) == SCRIPT
    assert shelf.names() == (name,)


def test_a_name_without_a_kind_becomes_yaml(tmp_path: Path):
    assert Shelf(tmp_path).save("walk", SCRIPT) == "walk.yaml"


@pytest.mark.parametrize(
    "name", ["../a.yaml", "/tmp/a.yaml", "a/b.yaml", "a\\b.yaml", ".a.yaml", "c:\\a.yaml", "a\n.yaml"]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str):
    folder = tmp_path / "scripts"
    folder.mkdir()
    with pytest.raises(BadName):
        Shelf(folder).save(name, SCRIPT)
    with pytest.raises(BadName):
        Shelf(folder).load(name)
    assert list(tmp_path.rglob("*.yaml")) == []


def test_only_scripts_are_listed(tmp_path: Path):
    for name in ("b.yaml", "a.json", "notes.txt", ".hidden.yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.yaml").mkdir()
    assert Shelf(tmp_path).names() == ("a.json", "b.yaml")
