from pathlib import Path

import numpy as np
import pytest

from keystride.deploy.players import MeasuredState, PolicyPlayer
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.preflight import Refused, open_player, try_player
from keystride.keyframes.goals import empty_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.policy.bundle import Metadata, PolicyError, sealed
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2

INPUTS = {
    "base_position": 3,
    "base_orientation": 4,
    "base_linear_velocity": 3,
    "base_angular_velocity": 3,
    "joint_angles": 12,
    "joint_velocities": 12,
    "previous_action": 12,
}
GOALS = {"goal_position": 3, "goal_angles": 3, "goal_posture": 12, "goal_time": 0, "goal_presence": 5, "goal_height": 0}


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy.load(write_policy(tmp_path / "hand.onnx"), robot=GO2)


def write_policy(path: Path, stiffness: float = 33.0, outputs: tuple[str, ...] = ("joint_targets", "action")) -> Path:
    """A graph by hand: the target is joint angles plus the previous action, the action is its half."""
    onnx = pytest.importorskip("onnx", reason="onnx comes with the extra train")
    helper, kinds = onnx.helper, onnx.TensorProto
    inputs = [helper.make_tensor_value_info(name, kinds.FLOAT, ["B", size]) for name, size in INPUTS.items()]
    for name, size in GOALS.items() | {("goal_visible", 0)}:
        bits = name in ("goal_presence", "goal_height", "goal_visible")
        shape = ["B", "K", size] if size else ["B", "K"]
        inputs.append(helper.make_tensor_value_info(name, kinds.BOOL if bits else kinds.FLOAT, shape))
    shapes = [helper.make_tensor_value_info(name, kinds.FLOAT, ["B", 12]) for name in outputs]
    half = helper.make_tensor("half", kinds.FLOAT, [1], [0.5 if outputs[0] == "joint_targets" else np.nan])
    nodes = [
        helper.make_node("Add", ["joint_angles", "previous_action"], ["joint_targets"]),
        helper.make_node("Mul", ["previous_action", "half"], ["action"]),
    ]
    graph = helper.make_graph(nodes, "by_hand", inputs, shapes, [half])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    for name, text in metadata(stiffness).as_strings().items():
        model.metadata_props.add(key=name, value=text)
    path.write_bytes(sealed(model.SerializeToString()))
    return path


def metadata(stiffness: float) -> Metadata:
    return Metadata(
        joint_names=GO2.joint_names,
        joint_stiffness=(stiffness,) * 12,
        joint_damping=(0.75,) * 12,
        default_joint_pos=tuple(GO2.stance),
        action_scale=(0.25,) * 12,
        observation_names=tuple(INPUTS),
        robot=GO2.name,
        control_dt=0.02,
        goals="position",
        goal_components=("position",),
        max_keyframes=5,
        see="all",
        value_names=(),
        training_steps=0,
        training_data="none",
        licence="Apache-2.0",
        keystride_version="0",
        weights_sha256="0" * 64,
    )


def state(joints: np.ndarray) -> MeasuredState:
    base = BaseState(np.array([1.0, 2.0, 0.3]), np.array([1.0, 0, 0, 0]), np.zeros(3), np.zeros(3))
    return MeasuredState(base, joints, np.zeros(12))


def test_gains_are_the_policys_own(policy):
    gains = PolicyPlayer(policy, GO2).gains
    assert (gains.stiffness == 33.0).all()
    assert (gains.damping == 0.75).all()


def test_the_previous_action_is_handed_on_and_forgotten_at_a_new_start(policy):
    player, goals = PolicyPlayer(policy, GO2), empty_goals(1, 2)
    joints = GO2.stance + 0.1  # what asks for these is 0.1 rad / 0.25 = 0.4
    first, second, third = (player.step(state(joints), goals, step) - joints for step in range(3))
    assert np.allclose([first[0], second[0], third[0]], [0.4, 0.2, 0.1], atol=1e-6)
    player.reset()
    assert np.allclose(player.step(state(joints), goals, 0) - joints, 0.4, atol=1e-6)


def test_a_script_longer_than_the_policy_can_hold(policy):
    goals = empty_goals(1, 9)
    goals.step[0] = np.arange(9) * 50
    goals.presence[..., 0] = True
    assert PolicyPlayer(policy, GO2).step(state(GO2.stance.copy()), goals, 100).shape == (12,)


@pytest.mark.parametrize("stiffness", [0.0, 500.0])
def test_gains_that_the_motors_should_not_have_are_refused(tmp_path, stiffness):
    path = write_policy(tmp_path / "hand.onnx", stiffness)
    with pytest.raises(Refused, match=f"stiffness {stiffness:g} to {stiffness:g} is outside the range 1 to 150"):
        open_player(str(path), GO2, "eth0")


def test_good_gains_are_taken(tmp_path):
    player = open_player(str(write_policy(tmp_path / "hand.onnx")), GO2, "eth0")
    assert isinstance(player, PolicyPlayer)


WALK = Script(keyframes=(Keyframe(time=1.0, position=(0.3, 0.0)),))


def test_a_policy_is_tried_before_anything_moves(tmp_path):
    path = str(write_policy(tmp_path / "hand.onnx"))
    assert try_player(path, open_player(path, GO2, "eth0"), WALK, GO2) > 0.0


@pytest.mark.parametrize("outputs", [("joint_targets",), ("action", "joint_targets")])
def test_a_policy_without_its_outputs_is_refused(tmp_path, outputs):
    """One output is missing, or they come in another order: the action is NaN here."""
    path = str(write_policy(tmp_path / "hand.onnx", outputs=outputs))
    with pytest.raises((Refused, PolicyError), match=r"lacks the output|not finite"):
        try_player(path, open_player(path, GO2, "eth0"), WALK, GO2)
