"""Clips: velocities that integrate back, mirrors, and files that hold what a clip needs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keystride import geometry
from keystride.errors import FileError
from keystride.motion.clip import (
    CLIP_ARRAYS,
    Clip,
    angular_difference,
    continuous,
    difference,
    load_clip,
    make_clip,
    mirror_clip,
    save_clip,
)
from keystride.robot.go2 import GO2


def walking(frames: int = 51) -> Clip:
    """1 m/s along x while turning to the left at 1 rad/s, with the left legs lifted."""
    time = np.arange(frames) / 50
    position = np.stack([time, 0.1 * time, 0.3 + 0 * time], axis=1)
    joints = np.tile(GO2.stance, (frames, 1))
    joints[:, [1, 7]] += 0.2 * np.sin(3 * time)[:, None]
    return make_clip("walk", GO2, position, geometry.from_yaw(time), joints, {"tags": ["walk"], "licence": "CC0"})


def test_velocities_are_backward_differences_by_hand() -> None:
    np.testing.assert_allclose(difference(np.array([[0.0], [0.02], [0.06]])), [[1.0], [1.0], [2.0]])
    clip = walking()
    np.testing.assert_allclose(clip.base_linear_velocity, np.tile([1.0, 0.1, 0.0], (51, 1)), atol=1e-12)
    np.testing.assert_allclose(clip.base_angular_velocity, np.tile([0.0, 0.0, 1.0], (51, 1)), atol=1e-9)
    assert (len(clip), clip.seconds, clip.tags) == (51, 1.0, ("walk",))


def test_signs_of_quaternions_are_continuous_and_change_no_rotation() -> None:
    turns = geometry.from_yaw(np.linspace(0.0, 6.0, 30))
    flipped = turns * np.where(np.arange(30) % 3 == 1, -1.0, 1.0)[:, None]
    smooth = continuous(flipped)
    assert (np.sum(smooth[1:] * smooth[:-1], axis=1) > 0).all()
    np.testing.assert_allclose(angular_difference(smooth), angular_difference(turns), atol=1e-9)


def test_a_mirror_swaps_sides_and_twice_is_the_same() -> None:
    clip = walking()
    mirrored = mirror_clip(clip, GO2)
    assert mirrored.name == "walk_mirrored"
    np.testing.assert_allclose(geometry.yaw_of(mirrored.base_orientation), -geometry.yaw_of(clip.base_orientation))
    np.testing.assert_allclose(mirrored.base_position[:, 1], -clip.base_position[:, 1])
    np.testing.assert_allclose(mirrored.joint_angles[:, 4], clip.joint_angles[:, 1])  # thighs of FR and FL
    twice = mirror_clip(mirrored, GO2)
    for name in CLIP_ARRAYS:
        np.testing.assert_array_equal(getattr(twice, name), getattr(clip, name))


def test_a_mirrored_clip_has_the_velocities_of_its_poses() -> None:
    one = mirror_clip(walking(), GO2)
    again = make_clip("x", GO2, one.base_position, one.base_orientation, one.joint_angles)
    for name in CLIP_ARRAYS:
        np.testing.assert_allclose(getattr(again, name), getattr(one, name), atol=1e-9)


def test_a_clip_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    clip = walking()
    save_clip(clip, tmp_path / "walk.npz")
    back = load_clip(tmp_path / "walk.npz")
    assert (back.name, back.joint_names, back.fps, back.metadata) == (clip.name, clip.joint_names, 50.0, clip.metadata)
    for name in CLIP_ARRAYS:
        np.testing.assert_array_equal(getattr(back, name), getattr(clip, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_position": None}, r"no array 'base_position'; a clip has"),
        ({"joint_angles": np.zeros((51, 11))}, r"array 'joint_angles' is \(51, 11\), \(51, 12\) expected"),
        ({"base_linear_velocity": np.full((51, 3), np.inf)}, "frame 0 holds values that are not finite"),
        ({"fps": np.array(0.5)}, "51 frames at 0.5 per second"),
        ({"joint_names": np.arange(12)}, "allowed: 1-d text"),
        ({"metadata": np.array(json.dumps({"weight": -1}))}, "weight: input should be greater than or equal to 0"),
        ({"metadata": np.array("{")}, "not JSON"),
    ],
)
def test_a_file_without_what_a_clip_needs_is_named(
    change: dict[str, np.ndarray | None], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "walk.npz"
    save_clip(walking(), path)
    with np.load(path) as saved:
        arrays = {**saved, **change}
    kept: dict[str, Any] = {name: values for name, values in arrays.items() if values is not None}
    np.savez(path, **kept)
    with pytest.raises(FileError, match=rf"walk\.npz: .*{message}"):
        load_clip(path)


def test_writing_fails_whole(tmp_path: Path) -> None:
    save_clip(walking(), tmp_path / "walk.npz")
    before = (tmp_path / "walk.npz").read_bytes()
    with pytest.raises(TypeError):
        save_clip(replace(walking(), metadata={"tags": {1}}), tmp_path / "walk.npz")  # a set is not JSON
    assert (tmp_path / "walk.npz").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
