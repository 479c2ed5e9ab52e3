import json

import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.recording import Recording, ghost_poses, play_script, recording_summary
from keystride.keyframes.script import Keyframe, Script
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height

SCRIPT = Script(
    keyframes=(
        Keyframe(time=0.5, posture="stand", label="here"),
        Keyframe(time=1.0, position=(0.4, 0.0)),
        Keyframe(time=1.5, position=(0.0, 0.3, 0.3), yaw=90.0),
    )
)


@pytest.fixture(scope="module")
def recording(standing: Policy) -> Recording:
    return play_script(standing, GO2, SCRIPT, title="script", policy="standing")


def test_it_starts_in_the_stance_at_the_origin_and_faces_x(recording: Recording) -> None:
    height = float(standing_height(GO2, GO2.stance))
    assert recording.poses[0] == pytest.approx([0, 0, height, 1, 0, 0, 0, *GO2.stance])
    assert recording.times[-1] == pytest.approx(2.5)  # a second after the last keyframe
    assert len(recording.joint_targets) == len(recording.poses) - 1


def test_a_ghost_is_what_was_asked_and_for_the_rest_the_robot(recording: Recording) -> None:
    first, second, third = ghost_poses(recording)
    there = recording.poses[recording.steps]
    assert np.allclose(first[7:], GO2.stance)
    assert np.allclose(first[:7], there[0, :7])
    assert np.allclose(second[:2], [0.4, 0.0])
    assert np.allclose(second[2:], there[1, 2:])  # its height was left open too
    assert np.allclose(third[:3], [0.0, 0.3, 0.3])
    assert geometry.yaw_of(third[3:7]) == pytest.approx(np.pi / 2)
    assert np.allclose(geometry.roll_pitch_yaw(third[3:7])[:2], geometry.roll_pitch_yaw(there[2, 3:7])[:2])
    assert np.allclose(third[7:], there[2, 7:])


def test_the_summary_is_plain_json_with_the_errors_that_were_asked_for(recording: Recording) -> None:
    data = json.loads(json.dumps(recording_summary(recording), allow_nan=False))
    assert [list(k["errors"]) for k in data["keyframes"]] == [
        ["posture_deg"],
        ["distance_m"],
        ["distance_m", "yaw_deg", "height_m"],
    ]
    assert [k["met"] for k in data["keyframes"]] == [True, False, False]
    assert data["met"] == 1
    assert data["fell_at"] is None
    assert data["keyframes"][0]["label"] == "here"
    assert data["thresholds"]["distance_m"] == 0.15


def test_yaw_has_no_jumps(recording: Recording) -> None:
    turns = np.concatenate([np.linspace(0, 3.0, 50), np.linspace(3.1, 4.0, 20)])  # through half a turn
    poses = np.tile(recording.poses[0], (70, 1))
    poses[:, 3:7] = geometry.from_yaw(turns)
    turned = Recording(**{**recording.__dict__, "poses": poses})
    assert np.allclose(turned.angles[:, 2], turns)
