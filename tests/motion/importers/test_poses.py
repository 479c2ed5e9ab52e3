"""Poses of this robot from CSV and NumPy files, and the checks that they pass."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride import geometry
from keystride.errors import FileError
from keystride.motion.clip import Clip, make_clip, save_clip
from keystride.motion.importers.poses import (
    ImportProblem,
    PoseTable,
    at_clip_rate,
    checked,
    in_leg_order,
    parse_leg_order,
    read_csv,
    read_npz,
)
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2


def swaying() -> Clip:
    """The base sways and turns, and the joints swing about the stance."""
    time = np.arange(101) / 50
    position = np.stack([0.03 * np.sin(2 * time), 0.02 * np.cos(3 * time), 0.30 + 0.01 * np.sin(4 * time)], axis=1)
    angles = np.stack([0.05 * np.sin(time), 0.06 * np.sin(1.5 * time), 0.2 * np.sin(time)], axis=1)
    joints = GO2.stance + 0.1 * np.sin(time)[:, None] * np.arange(1, 13) / 12
    return make_clip("sway", GO2, position, geometry.from_roll_pitch_yaw(angles), joints)


def xyzw(orientation: Floats) -> Floats:
    return orientation[:, [1, 2, 3, 0]]


def write_csv(clip: Clip, path: Path, header: bool = False) -> None:
    table = np.concatenate([clip.base_position, xyzw(clip.base_orientation), clip.joint_angles], axis=1)
    lines = [",".join(f"{value:.10f}" for value in row) for row in table]
    path.write_text("\n".join(["x,y,z,qx,qy,qz,qw," + ",".join(clip.joint_names)] * header + lines) + "\n")


def write_tracking_npz(clip: Clip, path: Path) -> None:
    """As mjlab and BeyondMimic do: links in the model's order, the base first."""
    bodies = np.zeros((len(clip), 13, 3))
    bodies[:, 0] = clip.base_position
    turns = np.tile([1.0, 0, 0, 0], (len(clip), 13, 1))
    turns[:, 0] = clip.base_orientation
    np.savez(
        path,
        fps=np.array([50]),
        joint_pos=clip.joint_angles,
        joint_vel=clip.joint_velocities,
        body_pos_w=bodies,
        body_quat_w=turns,
        body_lin_vel_w=np.zeros_like(bodies),
        body_ang_vel_w=np.zeros_like(bodies),
    )


SWAY = swaying()


def assert_same_motion(clip, atol: float = 1e-8):
    np.testing.assert_allclose(clip.base_position, SWAY.base_position, atol=atol)
    np.testing.assert_allclose(clip.base_orientation, SWAY.base_orientation, atol=atol)
    np.testing.assert_allclose(clip.joint_angles, SWAY.joint_angles, atol=atol)
    np.testing.assert_allclose(clip.joint_velocities, SWAY.joint_velocities, atol=100 * atol)


def test_the_same_motion_through_three_formats_agrees(tmp_path: Path):
    write_csv(SWAY, tmp_path / "a.csv")
    write_csv(SWAY, tmp_path / "b.csv", header=True)
    write_tracking_npz(SWAY, tmp_path / "c.npz")
    save_clip(SWAY, tmp_path / "d.npz")
    for take in (
        *read_csv(tmp_path / "a.csv", "sway", GO2),
        *read_csv(tmp_path / "b.csv", "sway", GO2),
        *read_npz(tmp_path / "c.npz", "sway", GO2),
        *read_npz(tmp_path / "d.npz", "sway", GO2),
    ):
        assert_same_motion(take.clip)


def test_leg_orders():
    assert parse_leg_order("fr,fl,hr,hl") == ("FR", "FL", "RR", "RL")
    with pytest.raises(ImportProblem, match="joint order"):
        parse_leg_order("FL FR RL")
    columns = np.arange(12.0)[None]  # FR FL RR RL
    np.testing.assert_array_equal(
        in_leg_order(columns, ("FR", "FL", "RR", "RL"))[0], [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
    )


def test_a_faster_file_is_resampled_to_the_same_motion():
    time = np.arange(241) / 120
    turn = geometry.from_yaw(0.5 * time)
    poses = PoseTable(
        "turn", 120.0, np.stack([time, 0 * time, 0.3 + 0 * time], axis=1), turn, np.tile(GO2.stance, (241, 1))
    )
    slower = at_clip_rate(poses)
    assert len(slower) == 101
    np.testing.assert_allclose(slower.position[:, 0], np.arange(101) / 50, atol=1e-12)
    np.testing.assert_allclose(geometry.yaw_of(slower.orientation), 0.5 * np.arange(101) / 50, atol=1e-6)


GOOD = PoseTable("good", 50.0, SWAY.base_position, SWAY.base_orientation, SWAY.joint_angles)


@pytest.mark.parametrize(
    ("poses", "message"),
    [
        (replace(GOOD, position=GOOD.position * 100), "wrong unit: the base is 30"),
        (replace(GOOD, joints=np.degrees(GOOD.joints)), "wrong unit: a joint angle"),
        (replace(GOOD, orientation=GOOD.orientation * 2), "unit length"),
        (
            replace(GOOD, joints=np.where(np.arange(101)[:, None] == 7, np.nan, GOOD.joints)),
            "non-finite joints.*frame 7",
        ),
        (replace(GOOD, fps=0.0), "frame rate"),
        (PoseTable("short", 50.0, GOOD.position[:1], GOOD.orientation[:1], GOOD.joints[:1]), "1 frames"),
    ],
)
def test_poses_that_cannot_be_right_are_refused(poses: PoseTable, message: str):
    with pytest.raises(ImportProblem, match=message):
        checked(poses)


def test_other_layouts_are_named(tmp_path: Path):
    (tmp_path / "short.csv").write_text("1,2,3\n")
    with pytest.raises(ImportProblem, match="3 values in row 0, 19 expected"):
        read_csv(tmp_path / "short.csv", "short", GO2)
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ImportProblem, match="wrong layout: keys a"):
        read_npz(tmp_path / "other.npz", "other", GO2)
    (tmp_path / "not.npz").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(FileError, match="truncated"):
        read_npz(tmp_path / "not.npz", "not", GO2)


def test_an_archive_of_another_robot_is_refused(tmp_path: Path):
    save_clip(replace(SWAY, joint_names=tuple(f"joint_{n}" for n in range(12))), tmp_path / "other.npz")
    with pytest.raises(ImportProblem, match="wrong skeleton: joints joint_0"):
        read_npz(tmp_path / "other.npz", "other", GO2)
