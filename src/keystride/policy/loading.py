"""Any policy, ready to run: what ships or was exported, as it is; a run, exported on the way."""

from pathlib import Path

from keystride.policy.bundle import POLICY, find, is_bundle, onnx_file
from keystride.policy.runtime import Network, Policy
from keystride.policy.weights import fingerprint, load_weights
from keystride.robot.description import Robot
from keystride.robot.go2 import GO2


def open_policy(name_or_path: str | Path, *, robot: Robot = GO2, threads: int = 1) -> Policy:
    """As Policy.load, and checkpoints and runs at their best too: these may need torch and take some seconds."""
    place = find(name_or_path)
    if _exported(place):
        return Policy.load(place, robot=robot, threads=threads)
    return Policy(Network(_export(place), robot=robot, threads=threads))


def policy_content(name_or_path: str | Path) -> bytes:
    """The ONNX file of any policy, as bytes."""
    place = find(name_or_path)
    if not _exported(place):
        return _export(place)
    Policy.load(place)  # a file that cannot be used is not handed on
    return onnx_file(place).read_bytes()


def _exported(place: Path) -> bool:
    return place.is_file() or is_bundle(place) or ((place / POLICY).is_file() and _fresh(place))


def _fresh(run: Path) -> bool:
    """Whether a run's file is that of its best weights: it is written after them."""
    return Policy.load(run).metadata.weights_sha256 == fingerprint(load_weights(run).actor)


def _export(place: Path) -> bytes:
    from keystride.policy.export import policy_file
    from keystride.policy.trained import load_trained

    return policy_file(load_trained(place))
