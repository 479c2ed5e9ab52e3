"""Run exported policies: robot state and keyframes in, joint targets out. Needs neither torch nor training code."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

# Otherwise onnxruntime collects telemetry about loaded models for Microsoft, on a thread of the process that controls the robot.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

from keystride.errors import FileError
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals, next_only, visible
from keystride.keyframes.resolve import window
from keystride.policy.bundle import CRITIC, Metadata, PolicyError, file_checksum, from_strings, onnx_file
from keystride.policy.interface import (
    BITS,
    BROKEN,
    INPUTS,
    MAX_POLICY_BYTES,
    OUTPUTS,
    VALUES,
    check_shapes,
    read_properties,
)
from keystride.reading import MIB, one_line, read_bytes
from keystride.robot.description import Floats, Robot

JOINT_VALUE_RANGES = (  # allowed values of the metadata for each joint
    ("joint_stiffness", 0.0, 1000.0),  # N m/rad
    ("joint_damping", 0.0, 100.0),  # N m s/rad
    ("default_joint_pos", -10.0, 10.0),  # rad
    ("action_scale", 1e-3, 10.0),  # rad
)
MOST_KEYFRAMES = 1000
TRIAL_BYTES = 512 * MIB  # memory that a graph may allocate for one robot


class RobotState(Protocol):
    """The state of B robots that a policy reads; the simulator's State implements it."""

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
    """An exported graph and its metadata."""

    def __init__(self, content: bytes, *, robot: Robot, threads: int = 1) -> None:
        self.metadata = from_strings(read_properties(content))
        _check(self.metadata, content, robot)
        self._sight = visible if self.metadata.see == "all" else next_only
        # A small file can request any amount of memory, even before it is run, so it is first tried with a bound.
        self._session = _session(content, 1, bounded=True)
        _check_session(self._session, self.metadata)
        self._try()
        self._session = _session(content, threads)

    @classmethod
    def read(cls, path: Path, *, robot: Robot, threads: int = 1) -> "Network":
        try:
            return cls(read_bytes(path, MAX_POLICY_BYTES), robot=robot, threads=threads)
        except FileError as error:
            raise PolicyError(f"{path}: {error}") from error

    def _try(self) -> None:
        """Run the graph once, so that a graph that cannot run fails now and not while a robot walks."""
        given = {
            name: np.zeros((1, *(1 if n == "K" else n for n in shape)), kind(name)) for name, shape in INPUTS.items()
        }
        given["base_orientation"][:, 0] = 1.0
        try:
            outputs = [np.asarray(output) for output in self._session.run(None, given)]
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise PolicyError(f"it cannot be run: {one_line(error)}") from error
        for name, output in zip(_outputs(self.metadata), outputs, strict=True):
            if not np.isfinite(output).all():
                raise PolicyError(f"its output {name} is not finite: its weights are damaged")

    def run(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> Sequence[Floats]:
        keyframes = self.metadata.max_keyframes
        if not 1 <= goals.step.shape[1] <= keyframes:
            goals = window(goals, now, keyframes)
        outputs = self._session.run(None, self._inputs(state, goals, now, previous_action))
        return [np.asarray(output, dtype=np.float64) for output in outputs]

    def _inputs(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> dict[str, np.ndarray]:
        # Single precision is coarse far from the origin, so positions are measured from the point under the robot.
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
    def load(cls, name_or_path: str | Path, *, robot: Robot, threads: int = 1) -> "Policy":
        """Load a shipped policy by name, a bundle folder or an ONNX file; raise PolicyError if it cannot be used."""
        return cls(Network.read(onnx_file(name_or_path), robot=robot, threads=threads))

    def step(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> tuple[Floats, Floats]:
        """Return joint targets (B, 12) in rad, and the action (B, 12) to pass to the next step; now (B,) is in control steps.

        If there are more goals than max_keyframes, the policy sees the earliest that have not expired.
        """
        targets, action = self._network.run(state, goals, now, previous_action)
        return targets, action

    def resting_action(self, joint_angles: Floats) -> Floats:
        """Return the action (B, 12) whose targets are these angles, to be used as the previous action of the first step."""
        return (joint_angles - np.array(self.metadata.default_joint_pos)) / np.array(self.metadata.action_scale)


class ExportedCritics:
    """The critics of a policy: expected discounted rewards."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.metadata = network.metadata
        if not self.metadata.value_names:
            raise PolicyError("it holds a policy, not critics")

    @classmethod
    def load(cls, name_or_path: str | Path, *, robot: Robot, threads: int = 1) -> "ExportedCritics":
        return cls(Network.read(onnx_file(name_or_path, CRITIC), robot=robot, threads=threads))

    def values(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> Floats:
        """Return the values (B, G) in reward units, in the order of metadata.value_names."""
        (values,) = self._network.run(state, goals, now, previous_action)
        return values


def _session(content: bytes, threads: int, *, bounded: bool = False) -> onnxruntime.InferenceSession:
    """Load a graph; with `bounded`, loading or running it fails if it needs more than TRIAL_BYTES of memory."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised instead, as one line
    if bounded:
        _register_bounded_allocator()
        options.add_session_config_entry("session.use_env_allocators", "1")
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise PolicyError(BROKEN) from error


@cache
def _register_bounded_allocator() -> None:
    """Add an allocator for sessions that ask for the shared one; only trials do."""
    memory = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    same_as_requested = 1
    bounds = {"max_mem": TRIAL_BYTES, "arena_extend_strategy": same_as_requested}
    onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(bounds))


def kind(name: str) -> type[np.generic]:
    """Return the element type of an input of the graph."""
    return np.bool_ if name in BITS else np.float32


def _outputs(metadata: Metadata) -> dict[str, tuple[int, ...]]:
    """Return the output shapes for each robot."""
    if metadata.value_names:
        return dict.fromkeys(VALUES, (len(metadata.value_names),))
    return dict.fromkeys(OUTPUTS, (len(metadata.joint_names),))


def _check_session(session: onnxruntime.InferenceSession, metadata: Metadata) -> None:
    wanted = {name: ("tensor(bool)" if name in BITS else "tensor(float)", shape) for name, shape in INPUTS.items()}
    check_shapes("input", {one.name: (one.type, one.shape) for one in session.get_inputs()}, wanted)
    outputs = {name: ("tensor(float)", shape) for name, shape in _outputs(metadata).items()}
    check_shapes("output", {one.name: (one.type, one.shape) for one in session.get_outputs()}, outputs)


def _check(metadata: Metadata, content: bytes, robot: Robot) -> None:
    if metadata.file_sha256 != file_checksum(content):
        raise PolicyError("it is damaged: its checksum is wrong")
    if metadata.robot != robot.name:
        raise PolicyError(f"it is a policy for {one_line(metadata.robot, 40)}, not for {robot.name}")
    if metadata.joint_names != robot.joint_names:
        raise PolicyError(f"its joints are not those of {robot.name}, or in another order")
    if metadata.control_dt != CONTROL_DT:
        raise PolicyError(f"its control step is {metadata.control_dt} s, here it is {CONTROL_DT} s")
    for name, low, high in JOINT_VALUE_RANGES:
        values = np.array(getattr(metadata, name))
        if len(values) != len(robot.joint_names) or not ((low <= values) & (values <= high)).all():
            raise PolicyError(
                f"its {name} is wrong; allowed: {len(robot.joint_names)} numbers from {low:g} to {high:g}"
            )
    if metadata.see not in ("all", "next"):
        raise PolicyError(f"it sees {one_line(metadata.see, 40)!r} of its keyframes; allowed: all or next")
    if not 1 <= metadata.max_keyframes <= MOST_KEYFRAMES:
        raise PolicyError(f"its max_keyframes is {metadata.max_keyframes}; allowed: 1 to {MOST_KEYFRAMES}")
    if unknown := set(metadata.goal_components) - set(COMPONENTS):
        raise PolicyError(f"its goal_components hold {one_line(min(unknown), 40)!r}; allowed: {', '.join(COMPONENTS)}")
