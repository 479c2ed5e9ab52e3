"""A policy that stands, as a real file: the smallest graph that the runtime takes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from keystride.evaluation.episodes import Controller
from keystride.evaluation.setting import Libraries
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals, empty_goals
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.library import Library
from keystride.policy.bundle import Metadata, sealed
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height

STATE = {
    "base_position": [3],
    "base_orientation": [4],
    "base_linear_velocity": [3],
    "base_angular_velocity": [3],
    "joint_angles": [12],
    "joint_velocities": [12],
    "previous_action": [12],
}
GOALS = {"goal_position": [3], "goal_angles": [3], "goal_posture": [12], "goal_time": []}
BITS = {"goal_presence": [5], "goal_height": [], "goal_visible": []}


def standing_file(components: tuple[str, ...] = COMPONENTS, see: str = "all") -> bytes:
    """Joint targets are the stance, whatever is asked."""
    inputs = [
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", *size]) for name, size in STATE.items()),
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "K", *size]) for name, size in GOALS.items()),
        *(helper.make_tensor_value_info(name, TensorProto.BOOL, ["B", "K", *size]) for name, size in BITS.items()),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 12]) for name in ("joint_targets", "action")
    ]
    constants = {"stance": GO2.stance.astype(np.float32), "nothing": np.zeros(1, np.float32)}
    nodes = [
        helper.make_node("Mul", ["previous_action", "nothing"], ["action"]),
        helper.make_node("Add", ["action", "stance"], ["joint_targets"]),
    ]
    tensors = [numpy_helper.from_array(values, name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "standing", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.helper.set_model_props(model, _metadata(components, see).as_strings())
    return sealed(model.SerializeToString(deterministic=True))


def _metadata(components: tuple[str, ...], see: str) -> Metadata:
    return Metadata(
        joint_names=GO2.joint_names,
        joint_stiffness=(GO2.stiffness,) * 12,
        joint_damping=(GO2.damping,) * 12,
        default_joint_pos=tuple(map(float, GO2.stance)),
        action_scale=(GO2.action_scale,) * 12,
        observation_names=(*STATE, *GOALS, *BITS),
        robot=GO2.name,
        control_dt=CONTROL_DT,
        goals="any" if len(components) > 1 else "position",
        goal_components=components,
        max_keyframes=5,
        see=see,
        value_names=(),
        training_steps=0,
        training_data="none",
        licence="Apache-2.0",
        keystride_version="0",
        weights_sha256="0" * 64,
    )


@pytest.fixture(scope="session")
def standing_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policies") / "standing.onnx"
    path.write_bytes(standing_file())
    return path


@pytest.fixture(scope="session")
def standing(standing_path: Path) -> Policy:
    return Policy.load(standing_path, robot=GO2)


@pytest.fixture(scope="session")
def position_standing_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, for a policy that knows positions alone and sees the next goal only."""
    path = tmp_path_factory.mktemp("policies") / "position.onnx"
    path.write_bytes(standing_file(("position",), "next"))
    return path


@pytest.fixture(scope="session")
def position_standing(position_standing_path: Path) -> Policy:
    return Policy.load(position_standing_path, robot=GO2)


class Collapsing:
    """Stands, and from a control step on folds its legs as far as they go."""

    def __init__(self, when: int) -> None:
        self.when = when

    def step(
        self, state: object, goals: Goals, now: np.ndarray, previous_action: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        folded = np.tile([0.0, 2.4, -2.7], 4)
        targets = np.where((now >= self.when)[:, None], folded, GO2.stance)
        return targets, self.resting_action(targets)

    def resting_action(self, joint_angles: np.ndarray) -> np.ndarray:
        return (joint_angles - GO2.stance) / GO2.action_scale


@pytest.fixture
def collapsing() -> type[Controller]:
    return Collapsing


@pytest.fixture
def standing_goals() -> Goals:
    """(2, 2) the stance's own pose, at 0.5 s and 1 s, for two robots."""
    goals = empty_goals(2, 2)
    goals.step[:] = [25, 50]
    goals.position[..., 2] = standing_height(GO2, GO2.stance)
    goals.posture[:] = GO2.stance
    goals.presence[:], goals.height[:] = True, True
    return goals


@pytest.fixture(scope="session")
def libraries() -> Libraries:
    """A walk and a sitting dog: enough to draw from."""
    clips = [as_clip(GO2, name, CATALOGUE[name](GO2)) for name in ("walk_slow", "trot_slow", "sit_quick")]
    return Libraries(Library(GO2, clips), held_out=Library(GO2, clips[:1]))
