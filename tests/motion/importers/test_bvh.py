import gzip
from pathlib import Path

import numpy as np
import pytest

from keystride.errors import FileError
from keystride.motion.importers.animal import Cut, Selection, load_skeleton, read_animal, read_capture
from keystride.motion.importers.bvh import node_positions, parse_bvh
from keystride.motion.importers.poses import ImportProblem
from keystride.reading import read_text
from keystride.robot.go2 import GO2

ARM = """HIERARCHY
ROOT Base
{
  OFFSET 9 9 9
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Elbow
  {
    OFFSET 1 0 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 2 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.02
1 2 3 0 0 0 0 0 0
1 2 3 90 0 0 0 90 0
"""


def test_positions_by_hand():
    bvh = parse_bvh(ARM)
    assert bvh.names == ("Base", "Elbow", "Elbow_end")
    positions = node_positions(bvh)
    np.testing.assert_allclose(positions[0], [[1, 2, 3], [2, 2, 3], [2, 4, 3]])  # position channels replace the offset
    # 90 degrees about z turns the arm's x to y; then 90 about the elbow's x turns its y to z.
    np.testing.assert_allclose(positions[1], [[1, 2, 3], [1, 3, 3], [1, 3, 5]], atol=1e-12)


def test_rotations_are_applied_in_the_order_of_the_channels():
    text = ARM.replace("1 2 3 90 0 0 0 90 0", "0 0 0 90 90 0 0 0 0")
    elbow, end = node_positions(parse_bvh(text))[1, 1:]
    np.testing.assert_allclose(elbow, [0, 1, 0], atol=1e-12)  # Rz Rx: x of the base, unmoved by Rx, goes to y
    np.testing.assert_allclose(end - elbow, [0, 0, 2], atol=1e-12)  # y, by Rx to z, stays there under Rz


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a BVH"),
        (ARM[: ARM.index("MOTION")], "no MOTION"),
        (ARM[: ARM.rindex("1 2 3") + 5], "truncated: 2 frames of 9 values announced, 12 values found"),
        (ARM.replace("90 0 0 0 90 0", "90 0 0 0 nan 0"), "non-finite channel values in 1 frames, the first is frame 1"),
        (ARM.replace("90 0 0 0 90 0", "90 0 0 0 foo 0"), "not a number"),
        (ARM.replace("}\n}\n", "}\n"), "not closed"),
        (ARM.replace("Frames: 2", "Frames:"), "no frame count"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str):
    with pytest.raises(ImportProblem, match=message):
        parse_bvh(text)


def test_gzip_is_read_and_a_cut_one_is_refused(tmp_path: Path):
    path = tmp_path / "arm.bvh.gz"
    path.write_bytes(gzip.compress(ARM.encode()))
    assert read_text(path) == ARM
    path.write_bytes(gzip.compress(ARM.encode())[:-20])
    with pytest.raises(FileError, match="truncated or damaged gzip"):
        read_text(path)


def dog_bvh(frames: int = 120, unit: float = 1.0) -> str:
    """A rigid MANN skeleton standing on straight legs, in centimetres times unit, y up, facing z."""
    places = {  # x left, y up, z ahead
        "LeftShoulder": (4.3, 40, 22),
        "RightShoulder": (-4.3, 40, 22),
        "LeftUpLeg": (4.8, 40, -22),
        "RightUpLeg": (-4.8, 40, -22),
    }
    ends = {
        "LeftShoulder": "LeftHand",
        "RightShoulder": "RightHand",
        "LeftUpLeg": "LeftFoot",
        "RightUpLeg": "RightFoot",
    }
    blocks = []
    for hip, (x, y, z) in places.items():
        place = " ".join(f"{value * unit:.4f}" for value in (x, y - 40, z))
        blocks.append(
            f"JOINT {hip}\n{{\nOFFSET {place}\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
            f"JOINT {ends[hip]}\n{{\nOFFSET 0 {-36 * unit} 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
            f"End Site\n{{\nOFFSET 0 {-2 * unit} 0\n}}\n}}\n}}\n"
        )
    channels = "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"
    head = f"HIERARCHY\nROOT Hips\n{{\nOFFSET 0 0 0\n{channels}\n"
    row = f"0 {40 * unit} 0" + " 0" * 27
    motion = f"MOTION\nFrames: {frames}\nFrame Time: 0.0166667\n" + "\n".join([row] * frames) + "\n"
    return head + "".join(blocks) + "}\n" + motion


def test_the_dog_stands_where_the_file_says(tmp_path: Path):
    path = tmp_path / "stand.bvh"
    path.write_text(dog_bvh())
    capture = read_capture(path, "stand", load_skeleton())
    np.testing.assert_allclose(capture.hips[0, 0], [0.22, 0.043, 0.40])  # ahead x, left y, up z, metres
    np.testing.assert_allclose(capture.toes[0, 3], [-0.22, -0.048, 0.02])
    (take,) = read_animal(path, "stand", GO2, load_skeleton(), Selection())
    assert take.clip.base_position[0, 2] == pytest.approx(0.31, abs=0.005)


def test_another_skeleton_and_another_unit_are_told_apart(tmp_path: Path):
    path = tmp_path / "stand.bvh"
    path.write_text(dog_bvh().replace("LeftHand", "LeftPaw"))
    with pytest.raises(ImportProblem, match="wrong skeleton: no node LeftHand_end"):
        read_capture(path, "stand", load_skeleton())
    path.write_text(dog_bvh(unit=0.01))
    with pytest.raises(ImportProblem, match="wrong unit"):
        read_capture(path, "stand", load_skeleton())


def test_a_skeleton_file_of_ones_own(tmp_path: Path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "name: own\nunit: 1.0\nup: y\nhips: [LeftShoulder, RightShoulder, LeftUpLeg, RightUpLeg]\n"
        "toes: [LeftHand_end, RightHand_end, LeftFoot_end, RightFoot_end]\n"
        "standing: {height: 0.4, pitch: 0.0, "
        "toes: [[0.22, 0.05, 0], [0.22, -0.05, 0], [-0.22, 0.05, 0], [-0.22, -0.05, 0]]}\n"
    )
    path = tmp_path / "stand.bvh"
    path.write_text(dog_bvh(unit=0.01))
    assert read_capture(path, "stand", load_skeleton(own)).hips[0, 0, 2] == pytest.approx(0.40)
    own.write_text("name: own\n")
    with pytest.raises(FileError, match=r"own.yaml:1: unit: field required"):
        load_skeleton(own)


def test_cuts_leave_parts(tmp_path: Path):
    path = tmp_path / "stand.bvh"
    path.write_text(dog_bvh(frames=300))
    cuts = (Cut(clip="stand", frames=(120, 140), reason="a test"),)
    takes = read_animal(path, "stand", GO2, load_skeleton(), Selection(cuts=cuts))
    assert [take.clip.name for take in takes] == ["stand-1", "stand-2"]
    assert takes[1].clip.metadata["edits"]["first_frame"] > len(takes[0].clip)
    whole = Selection(cuts=(Cut(clip="stand", reason="a test"),))
    assert read_animal(path, "stand", GO2, load_skeleton(), whole) == []
    with pytest.raises(ImportProblem, match=r"nothing is left: .* of 4\.4 s; allowed: parts of at least 1 s"):
        read_animal(path, "stand", GO2, load_skeleton(), Selection(ends=150))
