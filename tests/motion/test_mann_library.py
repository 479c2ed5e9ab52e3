"""The library that anyone with the MANN files gets, held to its targets."""

import os
from pathlib import Path

import numpy as np
import pytest

from keystride.geometry import GRAVITY
from keystride.motion.clip import mirror_clip
from keystride.motion.importers.catalogue import ImportOptions
from keystride.motion.importers.importing import Imported, find_files, import_files, median_residual
from keystride.motion.importers.poses import LEGS
from keystride.motion.importers.relatives import A1, AMP_COLUMNS, frame_table, read_amp, read_motion, toe_error
from keystride.motion.quality import Targets, figures, pool
from keystride.motion.signals import clip_feet
from keystride.robot.go2 import GO2

DATA = os.environ.get("KEYSTRIDE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="KEYSTRIDE_DATA does not point to the motion capture")
FOLDER = Path(DATA or ".")


def imported(kind: str, folder: str) -> list[Imported]:
    results = list(import_files(kind, find_files(kind, FOLDER / folder), GO2, ImportOptions()))
    assert all(isinstance(result, list) for result in results), results
    return [one for result in results if isinstance(result, list) for one in result]


@pytest.fixture(scope="module")
def mann() -> list[Imported]:
    return imported("mann", "mann_bvh")


def test_the_quality_table_holds(mann: list[Imported]):
    whole = figures(pool(one.frames for one in mann))
    assert Targets().misses(whole) == []
    assert median_residual(mann) < 0.010
    assert 17 * 60 < whole.seconds < 22 * 60


def test_every_kind_of_motion_is_in_it(mann: list[Imported]):
    seconds: dict[str, float] = {}
    for one in mann:
        for first, last, tag in one.clip.metadata["segments"]:
            seconds[tag] = seconds.get(tag, 0.0) + (last - first) / 50
    least = {"stand": 200, "walk": 150, "trot": 80, "canter": 15, "turn": 80, "sit": 150, "lie": 60, "rear": 20}
    assert all(seconds[tag] > value for tag, value in least.items()), seconds
    assert seconds["paw_up"] > 8
    assert seconds["jump"] > 4


@pytest.mark.parametrize(("clip", "frame"), [("D1_057_KAN01_001", 743), ("D1_058_KAN01_001", 1172)])
def test_jumps_fall_freely(mann: list[Imported], clip: str, frame: int):
    one = next(one.clip for one in mann if one.clip.name == clip)
    middle = frame - int(one.metadata["edits"]["first_frame"])
    heights = one.base_position[middle - 8 : middle + 9, 2]
    fall = -2 * np.polyfit(np.arange(17) / 50, heights, 2)[0]
    assert fall == pytest.approx(GRAVITY, rel=0.15)


def test_velocities_integrate_back_and_mirroring_twice_is_the_identity(mann: list[Imported]):
    for one in mann[::15]:
        clip = one.clip
        back = clip.base_position[0] + np.cumsum(clip.base_linear_velocity[1:], axis=0) / clip.fps
        np.testing.assert_allclose(back, clip.base_position[1:], atol=1e-9)
        twice = mirror_clip(mirror_clip(clip, GO2), GO2)
        np.testing.assert_array_equal(twice.joint_angles, clip.joint_angles)
        np.testing.assert_array_equal(twice.base_orientation, clip.base_orientation)


def test_the_standing_dog_stands_as_high_as_the_robot_does(mann: list[Imported]):
    stand = next(one.clip for one in mann if one.clip.name == "D1_001_KAN01_001")
    assert 0.29 < np.median(stand.base_position[:, 2]) < 0.32


def test_the_unseen_set_imports_well():
    clips = imported("lifelike", "lifelike")
    assert len(clips) == 6
    assert Targets().misses(figures(pool(one.frames for one in clips))) == []


def test_the_toe_columns_of_the_a1_are_where_its_feet_are():
    for path in sorted((FOLDER / "amp_a1").glob("*.txt")):
        assert toe_error(frame_table(read_motion(path), AMP_COLUMNS), LEGS, A1) < 1e-4
    (take,) = read_amp(FOLDER / "amp_a1" / "right_turn1.txt", "turn", GO2)
    assert np.abs(take.clip.base_angular_velocity).max() < 6.0  # the file's own column holds a spike
    assert clip_feet(take.clip, GO2)[..., 2].min() > GO2.foot_radius - 1e-9
