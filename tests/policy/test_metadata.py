import hashlib

import pytest

from keystride import __version__
from keystride.keyframes.goals import COMPONENTS
from keystride.policy.interface import INPUTS
from keystride.policy.loading import fingerprint
from keystride.policy.metadata import MARK, ZEROS, PolicyError, file_checksum, from_strings, sealed
from keystride.policy.runtime import Policy
from keystride.policy.trained import Trained
from keystride.robot.go2 import GO2


def test_a_file_tells_what_it_is(policy: Policy, trained: Trained) -> None:
    told = policy.metadata
    assert (told.robot, told.joint_names) == ("unitree_go2", GO2.joint_names)
    assert (told.joint_stiffness, told.joint_damping) == ((40.0,) * 12, (1.0,) * 12)
    assert (told.default_joint_pos, told.action_scale) == ((0.0, 0.8, -1.5) * 4, (0.5,) * 12)
    assert (told.observation_names, told.control_dt) == (tuple(INPUTS), 0.02)
    assert (told.goals, told.goal_components, told.max_keyframes, told.see) == ("any", COMPONENTS, 5, "all")
    assert (told.training_steps, told.licence) == (123_456, "Apache-2.0")
    assert (told.keystride_version, told.weights_sha256) == (__version__, fingerprint(trained.weights.actor))


def test_strings_and_back(policy: Policy) -> None:
    strings = policy.metadata.as_strings()
    assert strings["joint_names"].startswith("FL_hip_joint,FL_thigh_joint,")
    assert from_strings(strings) == policy.metadata


def test_the_seal_is_the_sha256_of_the_file_with_zeros_in_its_place() -> None:
    content = b"before" + MARK + ZEROS.encode() + b"after"
    digest = hashlib.sha256(content).hexdigest()
    assert sealed(content) == b"before" + MARK + digest.encode() + b"after"
    assert file_checksum(sealed(content)) == digest
    assert file_checksum(sealed(content) + b"!") != digest


def test_without_a_place_there_is_no_seal() -> None:
    with pytest.raises(PolicyError, match="no checksum"):
        file_checksum(b"something else")
