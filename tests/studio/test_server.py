"""What the server opens for a browser."""

from pathlib import Path

import pytest

from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import STAND_STILL
from keystride.studio.server import opening

SCRIPT = "version: 1\nkeyframes:\n  - time: 1.0\n    yaw: 20\n"


def test_a_script_with_the_name_of_new_ones_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    new = opening(None, GO2, STAND_STILL)
    assert (new.read().name, new.read().draft.keys) == ("untitled.yaml", ())
    script = tmp_path / "untitled.yaml"
    script.write_text(SCRIPT)  # as the quick start saves it
    for start in (new, opening(None, GO2, STAND_STILL), opening(script, GO2, STAND_STILL)):
        document = start.read()
        assert document.draft.keyframe(1).yaw == 20
        assert document.files["untitled.yaml"].digest is not None
    script.unlink()
    other = tmp_path / "other.yaml"
    other.write_text(SCRIPT)
    start = opening(other, GO2, STAND_STILL)
    other.unlink()
    with pytest.raises(FileNotFoundError):
        start.read()


def test_an_example_is_opened_by_its_name_and_saved_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    start = opening(Path("walk"), GO2, STAND_STILL)
    assert (start.folder, start.read().name) == (tmp_path, "walk.yaml")
    assert start.read().draft.keys
    with pytest.raises(FileNotFoundError, match="the examples are course"):
        opening(Path("wlak"), GO2, STAND_STILL)
