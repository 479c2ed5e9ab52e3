"""A trained policy as torch modules, rebuilt from its weights and its configuration."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keystride import __version__
from keystride.keyframes.goals import CONTROL_DT, GOAL_SIZE
from keystride.learner.checkpoint import load_module
from keystride.learner.config import NetworkConfig
from keystride.learner.networks import Actor, Critics
from keystride.policy.bundle import POLICY, find, is_bundle, is_checkpoint, run_checkpoint
from keystride.policy.graph import INPUTS
from keystride.policy.metadata import Metadata, PolicyError
from keystride.policy.provenance import learnt_components, licence_of, read_settings, training_sources
from keystride.policy.weights import Weights, fingerprint, load_weights
from keystride.robot.description import Robot
from keystride.robot.go2 import GO2
from keystride.task.observations import STATE_SIZE


@dataclass(frozen=True)
class Trained:
    actor: Actor
    critics: Critics
    weights: Weights
    settings: dict[str, Any]  # as in config.yaml
    steps: int

    @property
    def goals(self) -> str:
        return self.settings["task"]["goals"]

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(group["name"] for group in self.settings["learner"]["ppo"]["groups"])


def load_trained(name_or_path: str | Path) -> Trained:
    """A run (its best checkpoint), a checkpoint folder or a bundle."""
    place = find(name_or_path)
    return build(load_weights(place), read_settings(place), training_steps(place))


def build(weights: Weights, settings: dict[str, Any], steps: int) -> Trained:
    network = network_config(settings["learner"]["network"])
    actor = Actor(network, STATE_SIZE, GOAL_SIZE, len(GO2.joint_names))
    critics = Critics(network, STATE_SIZE, GOAL_SIZE, len(settings["learner"]["ppo"]["groups"]))
    try:
        load_module(actor, weights.actor)
        load_module(critics, weights.critics)
    except RuntimeError as error:
        raise PolicyError("weights and configuration do not belong together") from error
    return Trained(actor.eval(), critics.eval(), weights, settings, steps)


def network_config(entries: dict[str, Any]) -> NetworkConfig:
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entries.items()}
    try:
        return NetworkConfig(**values)
    except TypeError as error:
        raise PolicyError(f"its configuration is of another version of keystride: {error}") from error


def training_steps(place: Path) -> int:
    if is_bundle(place):
        from keystride.policy.runtime import Policy

        return Policy.load(place / POLICY).metadata.training_steps
    checkpoint = place if is_checkpoint(place) else run_checkpoint(place)
    assert checkpoint is not None  # find has made sure
    return int(json.loads((checkpoint / "learner.json").read_text())["steps"])


def metadata_of(trained: Trained, robot: Robot, *, values: bool) -> Metadata:
    joints = len(robot.joint_names)
    sources = training_sources(trained.settings)
    network = trained.weights.critics if values else trained.weights.actor
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
        goal_components=learnt_components(trained.goals),
        max_keyframes=trained.settings["task"]["max_keyframes"],
        see=trained.settings["task"]["see"],
        value_names=trained.groups if values else (),
        training_steps=trained.steps,
        training_data="; ".join(source.description for source in sources),
        licence=licence_of(sources),
        keystride_version=__version__,
        weights_sha256=fingerprint(network),
    )
