"""Ghosts stand where the script says, on the ground where it does not say."""

import numpy as np
import pytest

from keystride import geometry
from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import Keyframe, Script
from keystride.keyframes.stage import Stage
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints
from keystride.studio.document.draft import from_script
from keystride.studio.document.keyframe_poses import Ghost, ghost_warnings, ghosts, grounded, poses

POSTURES = named_postures(GO2)


def one(**fields: object) -> Ghost:
    return poses(Script(keyframes=(Keyframe.model_validate({"time": 1.0, **fields}),)), GO2)[0]


def lowest_point(ghost: Ghost) -> float:
    feet = geometry.rotate(ghost.orientation, feet_from_joints(GO2, ghost.joints))
    return float(ghost.position[2] + feet[:, 2].min() - GO2.foot_radius)


def test_a_full_keyframe_is_shown_as_it_is_written():
    angles = np.degrees(GO2.stance) + 5.0
    ghost = one(position=(1.0, -2.0, 0.4), roll=10.0, pitch=-20.0, yaw=30.0, posture=tuple(angles.tolist()))
    np.testing.assert_allclose(ghost.position, [1.0, -2.0, 0.4])
    np.testing.assert_allclose(np.degrees(ghost.angles), [10.0, -20.0, 30.0])
    np.testing.assert_allclose(np.degrees(ghost.joints), angles)
    assert ghost.posed
    assert ghost.placed


@pytest.mark.parametrize("name", [name for name, posture in POSTURES.items() if not posture.airborne])
def test_a_posture_alone_stands_on_the_ground(name: str):
    assert lowest_point(one(posture=name)) == pytest.approx(0.0, abs=1e-9)


def test_a_leap_is_in_the_air():
    assert lowest_point(one(posture="tuck")) > 0.1


def test_without_a_posture_it_is_the_stance():
    ghost = one(position=(1.0, 0.0))
    np.testing.assert_allclose(ghost.joints, GO2.stance)
    assert not ghost.posed
    assert lowest_point(ghost) == pytest.approx(0.0, abs=1e-9)


def test_without_a_position_it_is_on_the_way():
    script = Script(
        keyframes=(
            Keyframe(time=1.0, position=(1.0, 0.0)),
            Keyframe(time=1.5, yaw=0.0),
            Keyframe(time=2.0, position=(3.0, 2.0)),
            Keyframe(time=3.0, posture="sit"),
        )
    )
    np.testing.assert_allclose([pose.position[:2] for pose in poses(script, GO2)], [[1, 0], [2, 1], [3, 2], [3, 2]])


def test_an_open_yaw_looks_along_the_path():
    script = Script(
        keyframes=(Keyframe(time=1.0, position=(1.0, 0.0)), Keyframe(time=2.0, position=(1.0, 1.0), relative=True))
    )
    np.testing.assert_allclose([pose.angles[2] for pose in poses(script, GO2)], [0.0, np.pi / 4])


def test_the_ground_is_where_the_lowest_foot_is():
    assert grounded(GO2, GO2.stance, 0.0, 0.0) == pytest.approx(POSTURES["stand"].height)


def test_feet_below_the_ground_are_told_of():
    script = Script(
        keyframes=(
            Keyframe(time=1.0, position=(0.1, 0.0, 0.32), posture="stand"),
            Keyframe(time=2.0, position=(0.2, 0.0, 0.2), posture="tall"),
        )
    )
    doubts = ghost_warnings(from_script(script, GO2))
    assert list(doubts) == [2]
    assert "into the ground" in doubts[2][0]


def test_ghosts_go_by_key():
    draft = from_script(Script(keyframes=(Keyframe(time=1.0, yaw=0.0), Keyframe(time=2.0, yaw=90.0))), GO2)
    assert list(ghosts(draft)) == [1, 2]
    assert ghosts(draft)[2].angles[2] == pytest.approx(np.pi / 2)


def test_a_path_off_the_stage_is_doubtful_at_the_keyframe_it_leads_to():
    stage = Stage(floor=((-1.0, -1.0), (2.0, -1.0), (2.0, 1.0), (-1.0, 1.0)))
    keyframes = (Keyframe(time=1.0, position=(0.5, 0.0)), Keyframe(time=4.0, position=(0.5, 2.0)))
    draft = from_script(Script(stage=stage, keyframes=keyframes), GO2)
    assert ghost_warnings(draft) == {2: ["the path to it leaves the floor"]}
