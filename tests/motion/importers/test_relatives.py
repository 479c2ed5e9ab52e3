"""Motions of other quadruped robots: their feet become the feet of ours."""

import json
from pathlib import Path

import numpy as np
import pytest

from keystride import geometry
from keystride.errors import FileError
from keystride.motion.clip import Clip, make_clip
from keystride.motion.importers.poses import (
    ImportProblem,
    in_leg_order,
)
from keystride.motion.importers.relatives import A1, MAX, read_amp, read_lifelike
from keystride.motion.signals import clip_feet, foot_clearance
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, joints_from_feet


def swaying(frames: int = 101, name: str = "sway") -> Clip:
    """All feet stand still while the base sways and turns above them."""
    time = np.arange(frames) / 50
    position = np.stack([0.03 * np.sin(2 * time), 0.02 * np.cos(3 * time), 0.30 + 0.01 * np.sin(4 * time)], axis=1)
    angles = np.stack([0.05 * np.sin(time), 0.06 * np.sin(1.5 * time), 0.2 * np.sin(time)], axis=1)
    orientation = geometry.from_roll_pitch_yaw(angles)
    stance = feet_from_joints(GO2, GO2.stance) * [1, 1, 0] + [0, 0, GO2.foot_radius]
    local = geometry.rotate_inverse(orientation[:, None], stance[None] - position[:, None])
    joints, miss = joints_from_feet(GO2, local)
    assert miss.max() < 1e-9
    return make_clip(name, GO2, position, orientation, joints)


def xyzw(orientation: Floats) -> Floats:
    return orientation[:, [1, 2, 3, 0]]


def write_json(path: Path, rows: Floats, **facts: object) -> None:
    path.write_text(json.dumps({"FrameDuration": 0.02, **facts, "Frames": rows.tolist()}))


SWAY = swaying()


def relative_joints(robot: Robot) -> Floats:
    """Joints with which another robot holds its soles where the Go2 does."""
    world = clip_feet(SWAY, GO2) + np.array([0, 0, robot.foot_radius - GO2.foot_radius])
    local = geometry.rotate_inverse(SWAY.base_orientation[:, None], world - SWAY.base_position[:, None])
    joints, miss = joints_from_feet(robot, local)
    assert miss.max() < 1e-9
    return joints


def amp_rows(order: tuple[str, ...] = ("FL", "FR", "RL", "RR")) -> Floats:
    """The 61 columns, joints and toes in a leg order; velocities are left at zero."""
    joints = relative_joints(A1)
    toes = feet_from_joints(A1, joints).reshape(len(SWAY), 12)
    back = tuple(("FL", "FR", "RL", "RR")[order.index(leg)] for leg in ("FL", "FR", "RL", "RR"))
    parts = [SWAY.base_position, xyzw(SWAY.base_orientation), in_leg_order(joints, back), in_leg_order(toes, back)]
    return np.concatenate([*parts, np.zeros((len(SWAY), 30))], axis=1)


def test_the_feet_of_a_relative_become_the_feet_of_the_robot(tmp_path: Path):
    """The soles stand still on the ground; ours do at the same places, with our own legs."""
    write_json(tmp_path / "a1.txt", amp_rows())
    (take,) = read_amp(tmp_path / "a1.txt", "sway", GO2)
    feet = clip_feet(take.clip, GO2)
    np.testing.assert_allclose(feet, clip_feet(SWAY, GO2), atol=2e-3)
    np.testing.assert_allclose(foot_clearance(feet, GO2), 0.0, atol=1e-9)
    assert np.median(take.residual) < 1e-3


def test_max_turns_its_thighs_and_calves_the_other_way(tmp_path: Path):
    joints = relative_joints(MAX) * np.tile([1.0, -1.0, -1.0], 4)
    legs = joints.reshape(-1, 4, 3)[:, [1, 0, 3, 2]].reshape(-1, 12)  # FR FL HR HL
    rows = np.concatenate([SWAY.base_position, xyzw(SWAY.base_orientation), legs], axis=1)
    write_json(tmp_path / "max.txt", rows, LegOrder=["FR", "FL", "HR", "HL"])
    (take,) = read_lifelike(tmp_path / "max.txt", "sway", GO2)
    np.testing.assert_allclose(clip_feet(take.clip, GO2), clip_feet(SWAY, GO2)[3:], atol=2e-3)


def test_a_wrong_joint_order_is_seen_in_the_toes_and_the_right_one_named(tmp_path: Path):
    path = tmp_path / "a1.txt"
    write_json(path, amp_rows(order=("FR", "FL", "RR", "RL")))
    with pytest.raises(ImportProblem, match="joint order FR FL RR RL fits"):
        read_amp(path, "sway", GO2)
    (take,) = read_amp(path, "sway", GO2, order=("FR", "FL", "RR", "RL"))
    np.testing.assert_allclose(clip_feet(take.clip, GO2), clip_feet(SWAY, GO2), atol=2e-3)


def test_files_of_another_layout_are_named(tmp_path: Path):
    write_json(tmp_path / "rows.txt", np.zeros((5, 30)))
    with pytest.raises(ImportProblem, match="30 values in frame 0, 61 expected"):
        read_amp(tmp_path / "rows.txt", "rows", GO2)
    (tmp_path / "cut.txt").write_text('{"FrameDuration": 0.02, "Frames": [[1, 2')
    with pytest.raises(FileError, match="truncated or not JSON"):
        read_lifelike(tmp_path / "cut.txt", "cut", GO2)
    (tmp_path / "bare.txt").write_text("{}")
    with pytest.raises(ImportProblem, match="no Frames"):
        read_lifelike(tmp_path / "bare.txt", "bare", GO2)
    write_json(tmp_path / "short.txt", np.zeros((4, 19)))  # the first three are dropped
    with pytest.raises(ImportProblem, match="truncated: 4 frames, at least 5 are needed"):
        read_lifelike(tmp_path / "short.txt", "short", GO2)
