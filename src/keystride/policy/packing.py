"""From a training run to the bundle that ships."""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from keystride.files import part_folder
from keystride.policy.bundle import (
    CARD,
    CONFIG,
    CRITIC,
    CURVE,
    FIGURES,
    METRICS,
    NOTES,
    POLICY,
    WEIGHTS,
    find,
    home,
    is_bundle,
)
from keystride.policy.card import card
from keystride.policy.curve import read_bundle_curve, read_curve
from keystride.policy.export import critic_file, policy_file
from keystride.policy.metadata import PolicyError
from keystride.policy.provenance import read_recipe, read_settings
from keystride.policy.runtime import Critics, Policy
from keystride.policy.trained import load_trained
from keystride.policy.weights import fingerprint, load_weights, save_weights
from keystride.reading import check_model, read_json


class _Row(BaseModel):
    model_config = ConfigDict(extra="allow")
    suite: str
    scenario: str
    goal: int | str
    metric: str
    mean: float
    std: float
    episodes: int
    falls: int
    paper: float | None = None


class _Figures(BaseModel):
    rows: list[_Row] = Field(max_length=100_000)


def pack(source: str | Path, folder: Path, figures: Path | None = None, notes: Path | None = None) -> None:
    """Write the bundle of a run or of one of its checkpoints; all of it or nothing.

    The source may be a bundle, to give it new figures: its networks are taken as they are, and so is what is not given.
    """
    if folder.exists() and not is_bundle(folder):
        raise PolicyError(f"{folder} exists and is no bundle: it will not be replaced")
    place = find(source)
    with part_folder(folder) as part:
        fill = _copy_bundle if is_bundle(place) else _make_bundle
        fill(place, part)
        _add_figures(figures, part)
        _add_notes(notes, part)
        _write_card(folder.name, part)
        check_bundle(part)


def check_bundle(folder: Path) -> None:
    """Its graphs can be used, and are those of its weights."""
    weights = load_weights(folder)
    pairs = [(Policy.load(folder).metadata, weights.actor), (Critics.load(folder).metadata, weights.critics)]
    for metadata, tensors in pairs:
        if metadata.weights_sha256 != fingerprint(tensors):
            raise PolicyError(f"{folder}: its ONNX files were not made of its {WEIGHTS}")


def _make_bundle(place: Path, folder: Path) -> None:
    trained = load_trained(place)
    curve = read_curve(home(place) / METRICS, until=trained.origin.steps)
    (folder / CURVE).write_text(json.dumps(curve))
    recipe = read_recipe(place)
    settings = {**trained.settings, "recipe": recipe} if recipe.get("stages") else trained.settings
    (folder / CONFIG).write_text(yaml.safe_dump(settings, sort_keys=False))
    save_weights(trained.weights, folder / WEIGHTS)
    (folder / POLICY).write_bytes(policy_file(trained))
    (folder / CRITIC).write_bytes(critic_file(trained))


def _copy_bundle(place: Path, folder: Path) -> None:
    for name in (POLICY, CRITIC, WEIGHTS, CONFIG, CURVE, FIGURES, NOTES):
        if (place / name).is_file():
            (folder / name).write_bytes((place / name).read_bytes())


def _add_figures(figures: Path | None, folder: Path) -> None:
    if figures is not None:
        (folder / FIGURES).write_text(json.dumps({"rows": _rows(figures)}, indent=1))


def _add_notes(notes: Path | None, folder: Path) -> None:
    if notes is not None:
        (folder / NOTES).write_bytes(notes.read_bytes())


def _write_card(name: str, folder: Path) -> None:
    hours = read_bundle_curve(folder / CURVE)["hours"]
    rows = _rows(folder / FIGURES) if (folder / FIGURES).is_file() else []
    notes = (folder / NOTES).read_text() if (folder / NOTES).is_file() else ""
    text = card(name, Policy.load(folder).metadata, read_settings(folder), hours, rows=rows, notes=notes)
    (folder / CARD).write_text(text)


def _rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows that `keystride evaluate --json` wrote."""
    content = read_json(path)
    rows = content.get("rows") if isinstance(content, dict) else content
    return [row.model_dump() for row in check_model({"rows": rows}, _Figures, str(path)).rows]
