"""From a training run to the bundle that ships."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from keystride.learner.checkpoint import publish
from keystride.policy.bundle import (
    CARD,
    CONFIG,
    CRITIC,
    CURVE,
    FIGURES,
    METRICS,
    POLICY,
    WEIGHTS,
    find,
    home,
    is_bundle,
)
from keystride.policy.card import card
from keystride.policy.curve import read_curve
from keystride.policy.export import critic_file, policy_file
from keystride.policy.metadata import PolicyError
from keystride.policy.runtime import Critics, Policy
from keystride.policy.trained import Trained, load_trained
from keystride.policy.weights import fingerprint, load_weights, save_weights


def pack(source: str | Path, folder: Path, figures: Path | None = None, notes: Path | None = None) -> None:
    """Write the bundle of a run, of one of its checkpoints, or of another bundle; all of it or nothing."""
    if folder.exists() and not is_bundle(folder):
        raise PolicyError(f"{folder} exists and is no bundle: it will not be replaced")
    place = find(source)
    trained = load_trained(place)
    curve = _curve(place, trained.origin.steps)
    rows = _figures(figures)
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    part.mkdir(parents=True)
    try:
        _write_networks(trained, part)
        (part / CONFIG).write_bytes((home(place) / CONFIG).read_bytes())
        (part / CURVE).write_text(json.dumps(curve))
        if rows:
            (part / FIGURES).write_text(json.dumps({"rows": rows}, indent=1))
        metadata, limits = Policy.load(part).metadata, notes.read_text() if notes else ""
        text = card(folder.name, metadata, trained.settings, curve["hours"], rows=rows, notes=limits)
        (part / CARD).write_text(text)
        check_bundle(part)
        publish(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_bundle(folder: Path) -> None:
    """Its graphs can be used, and are those of its weights."""
    weights = load_weights(folder)
    pairs = [(Policy.load(folder).metadata, weights.actor), (Critics.load(folder).metadata, weights.critics)]
    for metadata, tensors in pairs:
        if metadata.weights_sha256 != fingerprint(tensors):
            raise PolicyError(f"{folder}: its ONNX files were not made of its {WEIGHTS}")


def _write_networks(trained: Trained, folder: Path) -> None:
    save_weights(trained.weights, folder / WEIGHTS)
    (folder / POLICY).write_bytes(policy_file(trained))
    (folder / CRITIC).write_bytes(critic_file(trained))


def _curve(place: Path, steps: int) -> dict[str, Any]:
    if is_bundle(place):
        return json.loads((place / CURVE).read_text())
    return read_curve(home(place) / METRICS, until=steps)


def _figures(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    try:
        content = json.loads(path.read_text())
        rows = content["rows"] if isinstance(content, dict) else content
        needed = {"suite", "scenario", "goal", "metric", "mean", "std", "episodes", "falls"}
        if all(needed <= row.keys() for row in rows):
            return rows
    except (json.JSONDecodeError, KeyError, AttributeError, TypeError):
        pass
    raise PolicyError(f"{path}: it does not hold the rows that `keystride evaluate --json` writes")
