"""Poses of the user's own are kept beside the built-in ones, and go into keyframes as they were saved."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from keystride.keyframes.postures import Posture, named_postures
from keystride.keyframes.script import Keyframe
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document import posing
from keystride.studio.document.draft import Draft
from keystride.studio.document.keyframe_poses import ghosts
from keystride.studio.document.pose_library import FILE, PoseExists, PoseLibrary

POSTURES = named_postures(GO2)

PAW_UP = Posture(POSTURES["sit"].joints, 0.3, roll=np.radians(5.0), pitch=np.radians(-20.0))


def test_a_saved_pose_is_there_for_the_next_session(tmp_path: Path):
    PoseLibrary(tmp_path, GO2).save("paw up", PAW_UP)
    library = PoseLibrary(tmp_path, GO2)
    assert list(library.own()) == ["paw up"]
    assert list(library.poses()) == [*POSTURES, "paw up"]
    kept = library.own()["paw up"]
    assert kept.joints == pytest.approx(PAW_UP.joints, abs=np.radians(0.051))
    assert (kept.height, kept.roll, kept.pitch) == pytest.approx((0.3, PAW_UP.roll, PAW_UP.pitch))


def test_nothing_is_replaced_unasked(tmp_path: Path):
    library = PoseLibrary(tmp_path, GO2)
    library.save("mine", PAW_UP)
    with pytest.raises(PoseExists):
        library.save("mine", POSTURES["bow"])
    library.save("mine", POSTURES["bow"], replace=True)
    assert library.own()["mine"].height == pytest.approx(POSTURES["bow"].height, abs=1e-3)
    with pytest.raises(ValueError, match="built-in"):
        library.save("sit", PAW_UP)
    library.delete("mine")
    assert library.own() == {}


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "two\nlines"])
def test_a_name_that_is_not_one_is_refused(tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="needs a name"):
        PoseLibrary(tmp_path, GO2).save(name, PAW_UP)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"version": 2, "poses": {}}',
        '{"version": 1, "poses": {"a": {"height": 0.3, "roll": 0, "pitch": 0, "airborne": false, "joints": [1]}}}',
        json.dumps({"version": 1, "poses": {"a": {"height": 1e9, "roll": 0, "pitch": 0, "joints": [0] * 12}}}),
    ],
)
def test_a_file_that_is_no_library_is_not_overwritten(tmp_path: Path, content: str):
    (tmp_path / FILE).write_text(content)
    library = PoseLibrary(tmp_path, GO2)
    assert library.poses() == POSTURES
    with pytest.raises(ValueError, match="not a pose library"):
        library.save("mine", PAW_UP)
    assert (tmp_path / FILE).read_text() == content


def test_changes_of_another_session_are_noticed_once(tmp_path: Path):
    library = PoseLibrary(tmp_path, GO2)
    assert not library.changed()
    PoseLibrary(tmp_path, GO2).save("mine", PAW_UP)
    assert [library.changed(), library.changed()] == [True, False]


@pytest.mark.parametrize("angles", ["degrees", "radians"])
def test_a_pose_taken_from_one_ghost_makes_the_other_one_alike(angles: str):
    draft = Draft(GO2, angles=angles)  # type: ignore[arg-type]
    draft = drafts.add(draft, Keyframe(time=1.0, position=(0.0, 0.0, 0.3), posture="sit"))
    draft = drafts.add(draft, Keyframe(time=2.0, position=(1.0, 0.0, 0.3)))
    joints = ghosts(draft)[1].joints.copy()
    joints[0] += 0.1
    draft = posing.set_joints(draft, 1, joints)
    draft = posing.set_pose(draft, 2, posing.pose_of(ghosts(draft)[1]))
    first, second = ghosts(draft)[1], ghosts(draft)[2]
    assert second.joints == pytest.approx(first.joints, abs=1e-3)
    assert second.angles == pytest.approx(first.angles, abs=1e-3)
    assert second.position == pytest.approx(first.position + np.array([1.0, 0.0, 0.0]), abs=1e-3)
    assert (second.joints >= GO2.lower).all()


NUMBERS = {"height": 0.3, "roll": 0, "pitch": 0, "airborne": False, "joints": [0] * 12}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        json.dumps({"version": 1, "poses": {"a": NUMBERS}}).replace("0.3", "9" * 400),
        '{"version": 1, "poses": 3}',
    ],
    ids=["deep", "digits", "kind"],
)
def test_a_file_that_is_no_library_counts_as_empty(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    library = PoseLibrary(tmp_path, GO2)
    assert library.poses() == library.built_in
    with pytest.raises(ValueError, match=FILE):
        library.own()


def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / FILE)
    library = PoseLibrary(tmp_path, GO2)
    assert library.poses() == library.built_in
