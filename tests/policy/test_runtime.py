import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from keystride.keyframes.goals import Goals, empty_goals
from keystride.keyframes.resolve import stack, window
from keystride.learner.config import WITH_DEMONSTRATIONS
from keystride.physics.simulator import State
from keystride.policy.bundle import CRITIC, POLICY_FILE, ZEROS, PolicyError, sealed
from keystride.policy.runtime import ExportedCritics, Network, Policy
from keystride.robot.go2 import GO2

NOW = np.array([60, 0, 30])
random = np.random.default_rng(1)


def some_state() -> State:
    orientation = random.normal(size=(3, 4))
    return State(
        position=random.normal(size=(3, 3)),
        orientation=orientation / np.linalg.norm(orientation, axis=1, keepdims=True),
        linear_velocity=random.normal(size=(3, 3)),
        angular_velocity=random.normal(size=(3, 3)),
        joint_angles=GO2.stance + 0.3 * random.normal(size=(3, 12)),
        joint_velocities=random.normal(size=(3, 12)),
        feet=np.zeros((3, 4, 3)),
        contact=np.zeros((3, 4)),
        torque=np.zeros((3, 12)),
        diverged=np.zeros(3, dtype=bool),
    )


def some_goals(keyframes: int) -> Goals:
    goals = empty_goals(3, keyframes)
    goals.step[:] = 40 + 30 * np.arange(keyframes)
    for field in (goals.position, goals.angles, goals.posture):
        field[:] = random.normal(size=field.shape)
    goals.presence[:] = random.random(goals.presence.shape) < 0.7
    goals.presence[..., 0] = True
    goals.height[:] = random.random(goals.height.shape) < 0.5
    return goals


@pytest.fixture
def scene() -> tuple[State, np.ndarray]:
    return some_state(), random.normal(size=(3, 12))


def rows_of(state: State, rows: slice) -> State:
    return State(*(getattr(state, field.name)[rows] for field in fields(State)))


def test_garbage_in_rows_and_components_that_are_not_there_changes_nothing(policy: Policy, scene) -> None:
    state, previous = scene
    goals = stack([some_goals(5)])
    goals.presence[:, 3] = False
    goals.step[:, 0] = NOW - 51  # expired: out of sight for a step
    before = policy.step(state, goals, NOW, previous)[1]
    for rubbish in (np.nan, np.inf, -1e30):
        spoilt = Goals(*(getattr(goals, field.name).copy() for field in fields(Goals)))
        for row in (0, 3):
            for values in (spoilt.position, spoilt.angles, spoilt.posture):
                values[:, row] = rubbish
            spoilt.height[:, row] = True
        absent = ~spoilt.presence
        spoilt.posture[absent[..., 4]] = rubbish
        spoilt.angles[absent[..., 1:4]] = rubbish
        np.testing.assert_array_equal(policy.step(state, spoilt, NOW, previous)[1], before)


def test_what_is_there_matters(policy: Policy, scene) -> None:
    state, previous = scene
    goals = some_goals(3)
    goals.presence[:] = True
    before = policy.step(state, goals, NOW, previous)[1]
    for values in (goals.position, goals.angles, goals.posture):
        values[:, 1, 0] += 0.3
        after = policy.step(state, goals, NOW, previous)[1]
        assert (np.abs(after - before).max(axis=1) > 1e-4).all()  # rounding is 1e-6
        before = after
    later = policy.step(state, replace(goals, step=goals.step + 5), NOW, previous)[1]
    assert (np.abs(later - before).max(axis=1) > 1e-4).all()  # rounding is 1e-6


def test_no_keyframe_is_as_one_that_is_not_used(policy: Policy, scene) -> None:
    state, previous = scene
    none = policy.step(state, empty_goals(3, 0), NOW, previous)
    np.testing.assert_array_equal(none, policy.step(state, empty_goals(3, 1), NOW, previous))
    assert np.isfinite(none).all()


def test_of_many_keyframes_the_next_are_shown(policy: Policy, scene) -> None:
    state, previous = scene
    goals = some_goals(12)
    shown = policy.step(state, goals, NOW, previous)
    np.testing.assert_array_equal(shown, policy.step(state, window(goals, NOW, 5), NOW, previous))


def test_the_order_of_keyframes_means_nothing(policy: Policy, scene) -> None:
    state, previous = scene
    goals = some_goals(4)
    other = Goals(*(getattr(goals, field.name)[:, ::-1] for field in fields(Goals)))
    np.testing.assert_allclose(
        policy.step(state, goals, NOW, previous), policy.step(state, other, NOW, previous), atol=1e-5
    )


def test_a_batch_is_its_robots_one_by_one(policy: Policy, scene) -> None:
    state, previous = scene
    goals = some_goals(3)
    together = policy.step(state, goals, NOW, previous)
    for i in range(3):
        row = slice(i, i + 1)
        alone = policy.step(rows_of(state, row), goals[row], NOW[row], previous[row])
        np.testing.assert_allclose([part[row] for part in together], alone, atol=1e-5)


def test_far_from_the_origin_nothing_changes(policy: Policy, scene) -> None:
    state, previous = scene
    goals, far = some_goals(3), np.array([1e5, -3e5, 0.0])
    moved = replace(goals, position=goals.position + far)
    there = policy.step(replace(state, position=state.position + far), moved, NOW, previous)
    np.testing.assert_allclose(there, policy.step(state, goals, NOW, previous), atol=1e-5)


def test_targets_stay_inside_the_joint_limits(policy: Policy, scene) -> None:
    state, previous = scene
    targets, action = policy.step(state, some_goals(2), NOW, 1e3 * previous)
    asked = GO2.stance + GO2.action_scale * action
    np.testing.assert_allclose(targets, np.clip(asked, GO2.lower, GO2.upper), atol=1e-5)


def test_resting_action_asks_for_the_angles(policy: Policy) -> None:
    angles = GO2.stance + np.linspace(-0.2, 0.2, 12)
    action = policy.resting_action(angles[None])
    np.testing.assert_allclose(GO2.stance + GO2.action_scale * action[0], angles)


def test_values_are_named_and_in_reward_units(bundle: Path, trained, scene) -> None:
    state, previous = scene
    critics = ExportedCritics.load(bundle, robot=GO2)
    values = critics.values(state, some_goals(2), NOW, previous)
    assert critics.metadata.value_names == tuple(group.name for group in WITH_DEMONSTRATIONS)
    assert values.shape == (3, len(WITH_DEMONSTRATIONS))


# Files that are not what they should be.


@pytest.fixture
def content(bundle: Path) -> bytes:
    return (bundle / POLICY_FILE).read_bytes()


def telling(content: bytes, **changes: str | None) -> bytes:
    """The same graph with other metadata, properly sealed; None leaves an entry out."""
    model = onnx.load_from_string(content)
    told = {entry.key: entry.value for entry in model.metadata_props} | {"file_sha256": ZEROS} | changes
    onnx.helper.set_model_props(model, {key: value for key, value in told.items() if value is not None})
    return sealed(model.SerializeToString())


def without_metadata(content: bytes) -> bytes:
    model = onnx.load_from_string(content)
    del model.metadata_props[:]
    return model.SerializeToString()


def with_other_weights(content: bytes) -> bytes:
    model = onnx.load_from_string(content)
    largest = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    largest.raw_data = largest.raw_data[:-1] + bytes([largest.raw_data[-1] ^ 1])
    return model.SerializeToString()


def joints_reversed(content: bytes) -> bytes:
    return telling(content, joint_names=",".join(reversed(GO2.joint_names)))


def asking_for_memory(content: bytes, kind: str, size: int = 20_000) -> bytes:
    """The same policy, with a branch that computes on size * size values."""
    model, make = onnx.load_from_string(content), onnx.helper.make_node
    shape = make("Constant", [], ["shape"], value_ints=[size, size])
    parts = onnx.helper.make_tensor("part", onnx.TensorProto.INT64, [1], [size])
    one = onnx.helper.make_tensor("one", onnx.TensorProto.FLOAT, [1], [1.0])
    model.graph.initializer.extend([parts, one])
    first = {
        "constant shape": [shape, make("ConstantOfShape", ["shape"], ["big"])],
        "expanded": [shape, make("Expand", ["one", "shape"], ["big"])],
        "shape in parts": [
            make("Concat", ["part", "part"], ["shape"], axis=0),
            make("Expand", ["one", "shape"], ["big"]),
        ],
        "random": [make("RandomUniform", [], ["big"], shape=[size, size])],
    }[kind]
    rest = [make("Exp", ["big"], ["bigger"]), make("ReduceMax", ["bigger"], ["least"], keepdims=0)]
    last = make("Mul", ["before", "least"], ["joint_targets"])
    for node in model.graph.node:
        node.output[:] = ["before" if name == "joint_targets" else name for name in node.output]
    model.graph.node.extend([*first, *rest, last])
    return telling(model.SerializeToString())


REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no metadata": (without_metadata, "no keystride metadata"),
    "an entry missing": (lambda content: telling(content, control_dt=None), "metadata lacks control_dt"),
    "an entry damaged": (lambda content: telling(content, max_keyframes="many"), "max_keyframes is 'many'"),
    "another robot": (lambda content: telling(content, robot="anymal_d"), "policy for anymal_d, not for unitree_go2"),
    "other joints": (joints_reversed, "joints are not those of unitree_go2"),
    "another step": (lambda content: telling(content, control_dt="0.01"), "control step is 0.01 s"),
    "a large constant": (
        lambda content: asking_for_memory(content, "constant shape", 99),
        "operator 'ConstantOfShape'",
    ),
    "a large expansion": (lambda content: asking_for_memory(content, "expanded"), "integers up to 20000"),
    "a large shape in parts": (
        lambda content: asking_for_memory(content, "shape in parts"),
        "cannot be run|broken one",
    ),
    "large random values": (lambda content: asking_for_memory(content, "random"), "operator 'RandomUniform'"),
    "other weights": (with_other_weights, "checksum is wrong"),
    "cut off": (lambda content: content[: len(content) // 2], "not an ONNX file, or a broken one"),
    "empty": (lambda content: b"", "not an ONNX file, or a broken one"),
    "another kind": (lambda content: b"joints: [1, 2, 3]\n" * 100, "not an ONNX file, or a broken one"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_refused_with_the_reason(fault: str, content: bytes, tmp_path: Path) -> None:
    spoil, reason = REFUSED[fault]
    file = tmp_path / "bad.onnx"
    file.write_bytes(spoil(content))
    with pytest.raises(PolicyError, match=reason) as caught:
        Policy.load(file, robot=GO2)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_changed_metadata_without_effect_is_accepted(content: bytes) -> None:
    assert Policy(Network(telling(content, licence="MIT"), robot=GO2)).metadata.licence == "MIT"


def test_critics_are_no_policy_and_a_policy_no_critics(bundle: Path) -> None:
    with pytest.raises(PolicyError, match="critics, not a policy"):
        Policy.load(bundle / CRITIC, robot=GO2)
    with pytest.raises(PolicyError, match="policy, not critics"):
        ExportedCritics.load(bundle / POLICY_FILE, robot=GO2)


def test_a_policy_aware_of_the_next_keyframe_sees_no_other(content: bytes, policy: Policy, scene) -> None:
    state, previous = scene
    goals = some_goals(3)  # due at 40, 70 and 100; it is 60, 0 and 30
    following = Policy(Network(telling(content, see="next"), robot=GO2))
    alone = Goals(*(getattr(goals, field.name)[[0, 1, 2], [1, 0, 0]][:, None] for field in fields(Goals)))
    np.testing.assert_allclose(
        following.step(state, goals, NOW, previous), policy.step(state, alone, NOW, previous), atol=1e-5
    )


def test_runs_without_torch(bundle: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['onnx'] = None\n"
        "from keystride.policy.runtime import Policy\n"
        "from keystride.robot.go2 import GO2\n"
        f"print(Policy.load({str(bundle)!r}, robot=GO2).metadata.robot)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "unitree_go2\n"


def test_onnxruntime_reports_to_nobody(tmp_path: Path) -> None:
    """Its reports begin with an identifier and a database in the user's cache."""
    hidden = {"CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | {"HOME": str(tmp_path)}
    command = "import keystride; keystride.load_policy('go2')"
    subprocess.run([sys.executable, "-c", command], env=environment, check=True)
    assert list(tmp_path.rglob("*onnxruntime*")) == []
