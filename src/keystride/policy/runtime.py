"""A policy at work: robot state and keyframes in, joint targets out. Needs neither torch nor training code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime

from keystride.keyframes.goals import CONTROL_DT, Goals, next_only, visible
from keystride.keyframes.resolve import window
from keystride.policy.bundle import CRITIC, onnx_file
from keystride.policy.metadata import Metadata, PolicyError, checksum, from_strings
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2


class RobotState(Protocol):
    """What a policy needs to know of B robots; the simulator's State is one."""

    @property
    def position(self) -> Floats: ...  # (B, 3) world, m

    @property
    def orientation(self) -> Floats: ...  # (B, 4) w x y z, world from base

    @property
    def base_velocity(self) -> Floats: ...  # (B, 3) base frame, m/s

    @property
    def angular_velocity(self) -> Floats: ...  # (B, 3) base frame, rad/s

    @property
    def joint_angles(self) -> Floats: ...  # (B, 12) rad

    @property
    def joint_velocities(self) -> Floats: ...  # (B, 12) rad/s


class Network:
    """An exported graph and what it says of itself."""

    def __init__(self, content: bytes, *, robot: Robot = GO2, threads: int = 1) -> None:
        self._session = _session(content, threads)
        self.metadata = from_strings(self._session.get_modelmeta().custom_metadata_map)
        _check(self.metadata, content, robot)
        self._sight = visible if self.metadata.see == "all" else next_only

    @classmethod
    def read(cls, path: Path, *, robot: Robot = GO2, threads: int = 1) -> "Network":
        try:
            return cls(path.read_bytes(), robot=robot, threads=threads)
        except PolicyError as error:
            raise PolicyError(f"{path}: {error}") from error

    def run(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> Sequence[Floats]:
        keyframes = self.metadata.max_keyframes
        if not 1 <= goals.step.shape[1] <= keyframes:
            goals = window(goals, now, keyframes)
        outputs = self._session.run(None, self._inputs(state, goals, now, previous_action))
        return [np.asarray(output, dtype=np.float64) for output in outputs]

    def _inputs(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> dict[str, np.ndarray]:
        # Single precision is coarse far from the origin: the place under the robot serves as one.
        here = state.position * [1.0, 1.0, 0.0]  # (B, 3)
        wait = (goals.step - now[:, None]) * CONTROL_DT  # (B, K) s
        floats = {
            "base_position": state.position - here,
            "base_orientation": state.orientation,
            "base_linear_velocity": state.base_velocity,
            "base_angular_velocity": state.angular_velocity,
            "joint_angles": state.joint_angles,
            "joint_velocities": state.joint_velocities,
            "previous_action": previous_action,
            "goal_position": goals.position - here[:, None],
            "goal_angles": goals.angles,
            "goal_posture": goals.posture,
            "goal_time": wait,
        }
        bits = {
            "goal_presence": goals.presence,
            "goal_height": goals.height,
            "goal_visible": self._sight(goals, now),
        }
        return {name: values.astype(np.float32) for name, values in floats.items()} | bits


class Policy:
    """Joint targets for a batch of robots, each with its own keyframes."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.metadata = network.metadata
        if self.metadata.value_names:
            raise PolicyError("it holds critics, not a policy")

    @classmethod
    def load(cls, name_or_path: str | Path, *, robot: Robot = GO2, threads: int = 1) -> "Policy":
        """A shipped policy by its name, a bundle folder or an ONNX file; PolicyError says why it cannot be used."""
        return cls(Network.read(onnx_file(name_or_path), robot=robot, threads=threads))

    def step(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> tuple[Floats, Floats]:
        """Joint targets (B, 12) rad and the action (B, 12) that the next step is to be given; now (B,) control steps.

        Of more goals than max_keyframes the earliest that have not expired are shown.
        """
        targets, action = self._network.run(state, goals, now, previous_action)
        return targets, action

    def resting_action(self, joint_angles: Floats) -> Floats:
        """(B, 12) the action that asks for these angles: what stands for the previous one before the first step."""
        return (joint_angles - np.array(self.metadata.default_joint_pos)) / np.array(self.metadata.action_scale)


class Critics:
    """What a policy's critics expect of the future, in reward units."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.metadata = network.metadata
        if not self.metadata.value_names:
            raise PolicyError("it holds a policy, not critics")

    @classmethod
    def load(cls, name_or_path: str | Path, *, robot: Robot = GO2, threads: int = 1) -> "Critics":
        return cls(Network.read(onnx_file(name_or_path, CRITIC), robot=robot, threads=threads))

    def values(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> Floats:
        """(B, G) discounted sums of reward, in the order of metadata.value_names."""
        (values,) = self._network.run(state, goals, now, previous_action)
        return values


def _session(content: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised, in one line
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes share no base
        raise PolicyError("it is no ONNX file, or a broken one") from error


def _check(metadata: Metadata, content: bytes, robot: Robot) -> None:
    if metadata.file_sha256 != checksum(content):
        raise PolicyError("it is damaged: its checksum is wrong")
    if metadata.robot != robot.name:
        raise PolicyError(f"it is a policy for {metadata.robot}, not for {robot.name}")
    if metadata.joint_names != robot.joint_names:
        raise PolicyError(f"its joints are not those of {robot.name}, or in another order")
    if metadata.control_dt != CONTROL_DT:
        raise PolicyError(f"its control step is {metadata.control_dt} s, here it is {CONTROL_DT} s")
