from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride.motion.clip import Clip, make_clip
from keystride.motion.library import load_library_clips, read_index, save_library
from keystride.robot.go2 import GO2


def still(name: str, frames: int = 51) -> Clip:
    position = np.tile([0.0, 0.0, 0.33], (frames, 1))
    turn = np.tile([1.0, 0, 0, 0], (frames, 1))
    joints = np.tile(GO2.stance, (frames, 1))
    return make_clip(name, GO2, position, turn, joints, {"tags": ["stand"], "licence": "CC0", "source": "x"})


def test_a_library_comes_back_as_it_went(tmp_path: Path):
    folder = tmp_path / "library"
    save_library([still("a"), still("b", 101)], folder, GO2.name, held_out=["b"], weights={"a": 2.0})
    index = read_index(folder)
    assert index["robot"] == GO2.name
    assert [(entry["file"], entry["split"], entry["weight"], entry["seconds"]) for entry in index["clips"]] == [
        ("a.npz", "train", 2.0, 1.0),
        ("b.npz", "held_out", 1.0, 2.0),
    ]
    assert index["clips"][0]["tags"] == ["stand"]
    assert index["clips"][0]["licence"] == "CC0"
    assert [clip.name for clip in load_library_clips(folder)] == ["a", "b"]
    assert [clip.name for clip in load_library_clips(folder, split="train")] == ["a"]


def test_a_new_library_replaces_the_old_one_whole(tmp_path: Path):
    folder = tmp_path / "library"
    save_library([still("a")], folder, GO2.name)
    save_library([still("b")], folder, GO2.name)
    assert sorted(path.name for path in folder.iterdir()) == ["b.npz", "index.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_a_failure_leaves_the_old_library_and_no_rest(tmp_path: Path):
    folder = tmp_path / "library"
    save_library([still("a")], folder, GO2.name)
    bad = replace(still("b"), metadata={"tags": {1, 2}})  # a set is not JSON
    with pytest.raises(TypeError):
        save_library([still("c"), bad], folder, GO2.name)
    assert [clip.name for clip in load_library_clips(folder)] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["library"]


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="not a library"):
        save_library([still("a")], tmp_path, GO2.name)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_is_not_a_library_is_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"no index\.json"):
        read_index(tmp_path)
    (tmp_path / "index.json").write_text('{"version": 7}')
    with pytest.raises(ValueError, match="version: input should be 1, found 7"):
        read_index(tmp_path)
