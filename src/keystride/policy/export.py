"""Rebuild trained networks from their weights and configuration, and export them as self-describing ONNX files.

Goal tokens, masking, normalization and action scaling are part of the graph, so that code which runs a policy does not
repeat them."""

import contextlib
import io
import logging
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxscript.optimizer
import torch
from torch import Tensor, nn

from keystride import __version__
from keystride.errors import FileError
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, GOAL_SIZE, Goals, goal_observation, with_components
from keystride.learner.checkpoint import load_module
from keystride.learner.config import NetworkConfig
from keystride.learner.networks import Actor, Critics, Normalizer, SequenceNetwork
from keystride.policy.bundle import (
    CONFIG,
    Metadata,
    PolicyError,
    find,
    is_bundle,
    is_checkpoint,
    run_checkpoint,
    sealed,
)
from keystride.policy.interface import BITS, INPUTS, OUTPUTS, VALUES
from keystride.policy.loading import Weights, fingerprint, load_weights
from keystride.policy.provenance import Origin, origin_of_run, read_settings, trained_ranges
from keystride.policy.runtime import Policy
from keystride.reading import one_line
from keystride.robot.description import Robot
from keystride.task.observations import STATE_SIZE, state_observation


@dataclass(frozen=True)
class Trained:
    actor: Actor
    critics: Critics
    weights: Weights
    settings: dict[str, Any]  # as in config.yaml
    origin: Origin

    @property
    def goals(self) -> str:
        return self.settings["task"]["goals"]

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(group["name"] for group in self.settings["learner"]["ppo"]["groups"])


def load_trained(name_or_path: str | Path, robot: Robot) -> Trained:
    """Load a run (its best checkpoint), a checkpoint folder or a bundle."""
    place = find(name_or_path)
    settings = read_settings(place)
    try:
        return build(load_weights(place), settings, _origin(place, settings, robot), robot)
    except PolicyError as error:
        raise PolicyError(str(error) if str(place) in str(error) else f"{place}: {error}") from error


def build(weights: Weights, settings: dict[str, Any], origin: Origin, robot: Robot) -> Trained:
    network = network_config(settings["learner"]["network"])
    try:
        actor = Actor(network, STATE_SIZE, GOAL_SIZE, len(robot.joint_names))
        critics = Critics(network, STATE_SIZE, GOAL_SIZE, len(settings["learner"]["ppo"]["groups"]))
    except (ValueError, TypeError, RuntimeError, AssertionError) as error:  # such as sizes that do not divide
        raise PolicyError(f"{CONFIG}: no such network can be built: {one_line(error)}") from error
    try:
        load_module(actor, weights.actor)
        load_module(critics, weights.critics)
    except FileError as error:
        raise PolicyError(f"weights and configuration do not belong together: {error}") from error
    return Trained(actor.eval(), critics.eval(), weights, settings, origin)


def network_config(entries: dict[str, Any]) -> NetworkConfig:
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entries.items()}
    try:
        return NetworkConfig(**values)
    except TypeError as error:
        raise PolicyError(f"its configuration is of another version of keystride: {one_line(error)}") from error


def _origin(place: Path, settings: dict[str, Any], robot: Robot) -> Origin:
    if is_bundle(place):
        metadata = Policy.load(place, robot=robot).metadata
        return Origin(metadata.training_steps, metadata.training_data, metadata.licence)
    checkpoint = place if is_checkpoint(place) else run_checkpoint(place)
    assert checkpoint is not None  # checked by find
    return origin_of_run(checkpoint, settings)


def metadata_of(trained: Trained, robot: Robot, *, values: bool) -> Metadata:
    joints = len(robot.joint_names)
    network = trained.weights.critics if values else trained.weights.actor
    try:
        ranges = trained_ranges(trained.settings)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise PolicyError(
            f"{CONFIG}: task.ranges are not those of a run; allowed: what `keystride train` wrote there"
        ) from error
    return Metadata(
        joint_names=robot.joint_names,
        joint_stiffness=(robot.stiffness,) * joints,
        joint_damping=(robot.damping,) * joints,
        default_joint_pos=tuple(map(float, robot.stance)),
        action_scale=(robot.action_scale,) * joints,
        observation_names=tuple(INPUTS),
        robot=robot.name,
        control_dt=CONTROL_DT,
        goals=trained.goals,
        goal_components=ranges.components,
        max_keyframes=trained.settings["task"]["max_keyframes"],
        see=trained.settings["task"]["see"],
        value_names=trained.groups if values else (),
        training_steps=trained.origin.steps,
        training_data=trained.origin.training_data,
        licence=trained.origin.licence,
        keystride_version=__version__,
        weights_sha256=fingerprint(network),
        trained_gap_s=ranges.gap_s,
        trained_distance_m=ranges.distance_m,
        trained_direction_rad=ranges.direction_rad,
        trained_turn_rad=ranges.turn_rad,
        trained_speed_m_s=ranges.speed_m_s,
        trained_turn_rate_rad_s=ranges.turn_rate_rad_s,
        trained_height_m=ranges.height_m,
    )


def policy_file(trained: Trained, robot: Robot) -> bytes:
    """Return the content of policy.onnx."""
    metadata = metadata_of(trained, robot, values=False)
    return _file(PolicyGraph(trained.actor, robot, metadata.goal_components), OUTPUTS, metadata)


def critic_file(trained: Trained, robot: Robot) -> bytes:
    """Return the content of critic.onnx."""
    metadata = metadata_of(trained, robot, values=True)
    graph = CriticGraph(trained.critics, trained.actor.normalizer, metadata.goal_components)
    return _file(graph, VALUES, metadata)


def _file(graph: nn.Module, outputs: tuple[str, ...], metadata: Metadata) -> bytes:
    model = _onnx(graph.eval(), outputs)
    onnx.helper.set_model_props(model, metadata.as_strings())
    onnx.checker.check_model(model)
    return sealed(model.SerializeToString(deterministic=True))


def _onnx(graph: nn.Module, outputs: tuple[str, ...]) -> onnx.ModelProto:
    model = onnx.ModelProto.FromString(_template(_Structure(graph, outputs)))
    weights = dict(graph.named_parameters()) | dict(graph.named_buffers())
    for initializer in model.graph.initializer:
        if initializer.name in weights:
            values = weights[initializer.name].detach().cpu().numpy()
            initializer.CopyFrom(onnx.numpy_helper.from_array(values, initializer.name))
    with _quiet():
        return onnxscript.optimizer.optimize(model)


class _Structure:
    """All of a graph but the values of its parameters and buffers. Graphs of equal structure compare as equal."""

    def __init__(self, graph: nn.Module, outputs: tuple[str, ...]) -> None:
        modules = [
            (name, type(module), {key: repr(value) for key, value in vars(module).items() if key[0] != "_"})
            for name, module in graph.named_modules()
        ]
        values = (*graph.named_parameters(), *graph.named_buffers())
        tensors = [(name, value.shape, value.dtype) for name, value in values]
        self.graph, self.outputs, self.parts = graph, outputs, (outputs, modules, tensors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Structure) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(repr(self.parts))


@lru_cache(maxsize=8)
def _template(structure: _Structure) -> bytes:
    """Trace a graph, which takes seconds. Only its structure counts: the values of parameters are filled in afterwards."""
    robots, keyframes = torch.export.Dim("B", min=1), torch.export.Dim("K", min=1)
    shapes = tuple({0: robots, 1: keyframes} if "K" in shape else {0: robots} for shape in INPUTS.values())
    with _quiet():
        program = torch.onnx.export(
            structure.graph,
            tuple(_example(name, shape) for name, shape in INPUTS.items()),
            dynamo=True,
            input_names=list(INPUTS),
            output_names=list(structure.outputs),
            dynamic_shapes={"inputs": shapes},
            external_data=False,
            optimize=False,
        )
    assert program is not None
    return _without_traces(program.model_proto).SerializeToString()


def _example(name: str, shape: tuple[Any, ...]) -> Tensor:
    """Return an example input of two robots with three keyframes; a size of one would be exported as a constant."""
    size = (2, *(3 if length == "K" else length for length in shape))
    return torch.ones(size, dtype=torch.bool) if name in BITS else torch.ones(size)


def _without_traces(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the stack traces that the exporter adds to every node: they contain local paths."""
    del model.graph.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
    return model


@contextlib.contextmanager
def _quiet() -> Any:
    """Silence the exporter's progress messages and internal warnings."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


class GraphInputs(nn.Module):
    """Turn the graph's inputs into those of the networks: state (B, 46), goals (B, K, 24), visible (B, K)."""

    def __init__(self, components: tuple[str, ...]) -> None:
        super().__init__()
        self.register_buffer("trained", torch.tensor([name in components for name in COMPONENTS]))
        self.trained: Tensor

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        given = dict(zip(INPUTS, inputs, strict=True))
        position, orientation, joints = (given[name] for name in ("base_position", "base_orientation", "joint_angles"))
        state = state_observation(
            orientation,
            position[:, 2],
            given["base_linear_velocity"],
            given["base_angular_velocity"],
            joints,
            given["joint_velocities"],
            given["previous_action"],
        )
        goals = self._goals(given)
        tokens = goal_observation(goals, given["goal_time"], position, orientation, joints)
        return state, tokens, given["goal_visible"] & goals.presence.any(dim=-1)

    def _goals(self, given: dict[str, Tensor]) -> Goals:
        """Return goals from the inputs of the graph; absent components may hold anything, even NaN."""
        goals = Goals(
            step=given["goal_time"],
            position=given["goal_position"],
            angles=given["goal_angles"],
            posture=given["goal_posture"],
            presence=given["goal_presence"],
            height=given["goal_height"],
        )
        return with_components(goals, goals.presence & self.trained)


class PolicyGraph(nn.Module):
    """Joint targets (B, 12) rad, and the action (B, 12)."""

    def __init__(self, actor: Actor, robot: Robot, components: tuple[str, ...]) -> None:
        super().__init__()
        self.sight, self.actor, self.scale = GraphInputs(components), actor, robot.action_scale
        for name, values in (("stance", robot.stance), ("lower", robot.lower), ("upper", robot.upper)):
            self.register_buffer(name, torch.tensor(np.array(values), dtype=torch.float32))
        self.stance: Tensor
        self.lower: Tensor
        self.upper: Tensor

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        action = self.actor.forward_padded(*self.sight(*inputs))
        return torch.clamp(self.stance + self.scale * action, self.lower, self.upper), action


class CriticGraph(nn.Module):
    """Values (B, G) in reward units."""

    def __init__(self, critics: Critics, normalizer: Normalizer, components: tuple[str, ...]) -> None:
        super().__init__()
        self.sight, self.critics, self.normalizer = GraphInputs(components), critics, normalizer

    def forward(self, *inputs: Tensor) -> Tensor:
        state, goals, visible = self.sight(*inputs)
        state = self.normalizer(state)
        networks = (network for network in self.critics.networks if isinstance(network, SequenceNetwork))
        parts = [network.forward_padded(state, goals, visible) for network in networks]
        return self.critics.values(torch.cat(parts, dim=-1))
