"""A trained policy as torch modules, rebuilt from its weights and its configuration."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keystride import __version__
from keystride.errors import FileError
from keystride.keyframes.goals import CONTROL_DT, GOAL_SIZE
from keystride.learner.checkpoint import load_module
from keystride.learner.config import NetworkConfig
from keystride.learner.networks import Actor, Critics
from keystride.policy.bundle import CONFIG, find, is_bundle, is_checkpoint, run_checkpoint
from keystride.policy.interface import INPUTS
from keystride.policy.loading import Weights, fingerprint, load_weights
from keystride.policy.metadata import Metadata, PolicyError
from keystride.policy.provenance import Origin, origin_of_run, read_settings, trained_ranges
from keystride.policy.runtime import Policy
from keystride.reading import one_line
from keystride.robot.description import Robot
from keystride.task.observations import STATE_SIZE


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
    except (ValueError, TypeError, RuntimeError, AssertionError) as error:  # sizes that do not divide, say
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
    assert checkpoint is not None  # find has made sure
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
