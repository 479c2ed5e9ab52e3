import hashlib
import shutil
from pathlib import Path

import pytest

from keystride import __version__
from keystride.keyframes.goals import COMPONENTS
from keystride.policy.bundle import (
    MARK,
    POLICY_FILE,
    ZEROS,
    PolicyError,
    file_checksum,
    find,
    from_strings,
    home,
    is_bundle,
    known,
    onnx_file,
    run_checkpoint,
    sealed,
)
from keystride.policy.export import Trained
from keystride.policy.interface import INPUTS
from keystride.policy.loading import Weights, fingerprint, load_weights, open_policy, policy_content, save_weights
from keystride.policy.packing import check_bundle
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


def test_every_kind_of_policy_is_found(bundle: Path, run_folder: Path) -> None:
    checkpoint = run_checkpoint(run_folder)
    assert checkpoint is not None
    for place in (bundle, bundle / POLICY_FILE, run_folder, checkpoint):
        assert find(str(place)) == place


def test_an_unknown_policy_is_one_line_that_helps(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"no policy 'go3': .*a bundle folder, an \.onnx file or a run") as caught:
        find("go3")
    assert all(name in str(caught.value) for name in known())
    with pytest.raises(PolicyError, match="is neither a bundle nor a run"):
        find(tmp_path)


def test_a_run_opens_with_its_file_while_that_is_of_its_best_weights(
    run_folder: Path, bundle: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_folder, run)
    (run / POLICY_FILE).write_bytes((bundle / POLICY_FILE).read_bytes())
    assert policy_content(run, GO2) == (bundle / POLICY_FILE).read_bytes()
    assert not is_bundle(run)
    weights = load_weights(run)
    better = {name: values + 1 for name, values in weights.actor.items()}
    (run / "best").mkdir()
    save_weights(Weights(better, weights.critics, {}), run / "best" / "learner.safetensors")
    shutil.copy(run / "checkpoints" / "00000007" / "learner.json", run / "best")
    assert open_policy(run, robot=GO2).metadata.weights_sha256 == fingerprint(better)


def test_a_run_without_a_file_says_how_to_get_one(run_folder: Path) -> None:
    with pytest.raises(PolicyError, match=r"keystride export .*tiny --out FILE.onnx"):
        onnx_file(run_folder)


def test_a_runs_best_goes_before_its_latest_unless_that_is_asked_for(run_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_folder, run)
    assert run_checkpoint(run) == run / "checkpoints" / "00000007"
    shutil.copytree(run / "checkpoints" / "00000007", run / "best")
    assert run_checkpoint(run) == run / "best"
    assert run_checkpoint(run, newest=True) == run / "checkpoints" / "00000007"
    assert home(run / "best") == home(run / "checkpoints" / "00000007") == run


def test_what_is_exported_is_handed_on_as_it_is(bundle: Path) -> None:
    assert (
        policy_content(bundle, GO2) == policy_content(bundle / POLICY_FILE, GO2) == (bundle / POLICY_FILE).read_bytes()
    )
    assert open_policy(bundle, robot=GO2).metadata.robot == "unitree_go2"


@pytest.mark.parametrize("name", known())
def test_shipped_bundles_are_whole(name: str) -> None:
    check_bundle(find(name), GO2)


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
