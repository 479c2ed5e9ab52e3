"""Open any policy: one that ships, a bundle or an ONNX file as it is, a training run by exporting it first; and its weights."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from keystride.errors import FileError
from keystride.policy.bundle import (
    POLICY_FILE,
    WEIGHTS,
    PolicyError,
    find,
    is_bundle,
    is_checkpoint,
    onnx_file,
    run_checkpoint,
)
from keystride.policy.runtime import Network, Policy
from keystride.reading import read_tensors
from keystride.robot.description import Robot

Tensors = dict[str, np.ndarray]
NETWORK_PARTS = ("actor", "critics", "discriminator")


def open_policy(name_or_path: str | Path, *, robot: Robot, threads: int = 1) -> Policy:
    """Load a policy as Policy.load does, or export the best checkpoint of a run first, which needs torch and a few seconds."""
    place = find(name_or_path)
    if _exported(place, robot):
        return Policy.load(place, robot=robot, threads=threads)
    return Policy(Network(_export(place, robot), robot=robot, threads=threads))


def policy_content(name_or_path: str | Path, robot: Robot) -> bytes:
    """Return the ONNX file of any policy, as bytes."""
    place = find(name_or_path)
    if not _exported(place, robot):
        return _export(place, robot)
    Policy.load(place, robot=robot)  # raises an error if the file cannot be used
    return onnx_file(place).read_bytes()


def _exported(place: Path, robot: Robot) -> bool:
    return place.is_file() or is_bundle(place) or ((place / POLICY_FILE).is_file() and _up_to_date(place, robot))


def _up_to_date(run: Path, robot: Robot) -> bool:
    """Return whether a run's ONNX file belongs to its best weights: it is written after them."""
    return Policy.load(run, robot=robot).metadata.weights_sha256 == fingerprint(load_weights(run).actor)


def _export(place: Path, robot: Robot) -> bytes:
    from keystride.policy.export import load_trained, policy_file

    return policy_file(load_trained(place, robot), robot)


@dataclass(frozen=True)
class Weights:
    """State dicts of the networks. The actor's holds the normaliser of observations."""

    actor: Tensors
    critics: Tensors
    discriminator: Tensors  # empty when training had none

    def tree(self) -> dict[str, Tensors]:
        """Return the tensors of each network that is present."""
        return {part: getattr(self, part) for part in NETWORK_PARTS if getattr(self, part)}


def load_weights(name_or_path: str | Path) -> Weights:
    """Load the weights of a shipped policy, a bundle folder, a run (its best checkpoint) or a checkpoint folder."""
    file = _file(find(name_or_path))
    try:
        tensors = read_tensors(file)
    except FileError as error:
        raise PolicyError(f"{file}: {error}") from error
    weights = Weights(*(_part(tensors, name) for name in NETWORK_PARTS))
    if not weights.actor or not weights.critics:
        raise PolicyError(f"{file}: it lacks the actor's or the critics' weights")
    return weights


def save_weights(weights: Weights, file: Path) -> None:
    flat = {f"{part}/{name}": values for part, tensors in weights.tree().items() for name, values in tensors.items()}
    file.write_bytes(save(flat))  # save_file would make it readable by its owner only


def fingerprint(tensors: Tensors) -> str:
    """Return the SHA-256 over names, shapes, types and values, in the order of names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _file(path: Path) -> Path:
    if path.is_file():
        raise PolicyError(f"{path}: an ONNX file has no weights to train on; a bundle, a run or a checkpoint has")
    if is_bundle(path):
        return path / WEIGHTS
    place = path if is_checkpoint(path) else run_checkpoint(path)
    assert place is not None  # checked by find
    return place / "learner.safetensors"


def _part(tensors: Tensors, part: str) -> Tensors:
    """Return the tensors of one part; checkpoints name them /actor/name, bundles actor/name."""
    named = ((name.lstrip("/"), values) for name, values in tensors.items())
    return {name.removeprefix(f"{part}/"): values for name, values in named if name.startswith(f"{part}/")}
