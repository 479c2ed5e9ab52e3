from pathlib import Path

import numpy as np
import pytest

from keystride.motion.clip import mirror_clip
from keystride.motion.importers.catalogue import ImportOptions
from keystride.motion.importers.importing import (
    INTERNAL,
    Imported,
    RefusedFile,
    clip_name,
    find_files,
    import_files,
    median_residual,
)
from keystride.robot.go2 import GO2


def write_standing(path: Path, scale: float = 1.0, frames: int = 60) -> None:
    row = np.concatenate([np.array([0.0, 0.0, 0.333]) * scale, [0.0, 0.0, 0.0, 1.0], GO2.stance])
    path.write_text("\n".join(",".join(map(str, row)) for _ in range(frames)))


def test_one_bad_file_does_not_keep_the_others_out(tmp_path: Path):
    write_standing(tmp_path / "a.csv")
    write_standing(tmp_path / "b.csv", scale=1000.0)
    (tmp_path / "c.csv").write_text("1,2\n")
    write_standing(tmp_path / "d.csv")
    results = list(import_files("csv", find_files("csv", tmp_path), GO2, ImportOptions()))
    assert [isinstance(result, RefusedFile) for result in results] == [False, True, True, False]
    assert isinstance(results[1], RefusedFile)
    assert results[1].file == "b.csv"
    assert "wrong unit" in results[1].reason


@pytest.mark.parametrize(
    "text",
    [
        '{"FrameDuration": 0.02, "Frames": 3}',
        '{"FrameDuration": 0.02, "LegOrder": 7, "Frames": [' + ",".join(["[" + "0.3," * 18 + "0.3]"] * 9) + "]}",
        '{"FrameDuration": 0.02, "Frames": [1, 2, 3]}',
        '{"FrameDuration": 1e-300, "Frames": [[], []]}',
        '{"FrameDuration": "1", "Frames": [[], []]}',
        "[" * 100_000,
    ],
)
def test_whatever_is_wrong_with_a_file_the_next_is_read(text: str, tmp_path: Path):
    """Once, a TypeError lost the whole library."""
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text("{}")
    results = list(import_files("lifelike", find_files("lifelike", tmp_path), GO2, ImportOptions()))
    assert [type(result) for result in results] == [RefusedFile, RefusedFile]
    assert not any(result.reason.startswith(INTERNAL) for result in results if isinstance(result, RefusedFile))


def test_what_is_imported_says_where_it_is_from_and_what_it_is(tmp_path: Path):
    write_standing(tmp_path / "a.csv")
    (result,) = import_files("csv", [tmp_path / "a.csv"], GO2, ImportOptions(licence="CC0"))
    assert isinstance(result, list)
    clip = result[0].clip
    assert clip.metadata["source"] == "a.csv"
    assert clip.metadata["licence"] == "CC0"
    assert clip.tags == ("stand",)
    assert result[0].figures.slide == pytest.approx(0.0)
    assert np.isnan(median_residual(result))


def test_mirrored_on_request(tmp_path: Path):
    write_standing(tmp_path / "a.csv")
    (result,) = import_files("csv", [tmp_path / "a.csv"], GO2, ImportOptions(mirrored=True))
    assert isinstance(result, list)
    one, other = (imported.clip for imported in result)
    assert other.name == "a_mirrored"
    np.testing.assert_allclose(mirror_clip(other, GO2).joint_angles, one.joint_angles)


def test_files_are_found_by_their_kind(tmp_path: Path):
    for name in ("b.bvh.gz", "a.BVH", "notes.txt", "c.csv"):
        (tmp_path / name).touch()
    assert [path.name for path in find_files("mann", tmp_path)] == ["a.BVH", "b.bvh.gz"]
    assert find_files("mann", tmp_path / "c.csv") == [tmp_path / "c.csv"]
    assert clip_name(Path("x/D1_001.bvh.gz")) == "D1_001"


def test_the_residual_is_the_median_over_all_clips(tmp_path: Path):
    write_standing(tmp_path / "a.csv")
    (result,) = import_files("csv", [tmp_path / "a.csv"], GO2, ImportOptions())
    assert isinstance(result, list)
    some = [
        Imported(one.clip, one.frames, one.figures, np.array(rows)) for one in result for rows in ([1.0, 2.0], [9.0])
    ]
    assert median_residual(some) == 2.0
