"""Pack a training run into a bundle, with its model card."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from keystride.errors import FileError
from keystride.files import part_folder
from keystride.policy.bundle import (
    CARD,
    CONFIG,
    CRITIC,
    CURVE,
    FIGURES,
    METRICS_FILE,
    NOTES_FILE,
    POLICY_FILE,
    WEIGHTS,
    Metadata,
    PolicyError,
    find,
    home,
    is_bundle,
)
from keystride.policy.curve import read_bundle_curve, read_curve
from keystride.policy.export import critic_file, load_trained, policy_file
from keystride.policy.loading import fingerprint, load_weights, save_weights
from keystride.policy.provenance import read_recipe, read_settings
from keystride.policy.runtime import ExportedCritics, Policy
from keystride.reading import MIB, check_model, read_json, read_text
from keystride.robot.description import Robot

KNOWS = {
    "position": "keyframes that hold a position alone; other components are ignored",
    "pose": "keyframes that hold position, roll, pitch, yaw and posture together",
    "any": "keyframes that hold any subset of position, roll, pitch, yaw and posture",
}
METRIC_UNITS = {
    "distance_m": "m",
    "roll_deg": "deg",
    "pitch_deg": "deg",
    "yaw_deg": "deg",
    "posture_deg": "deg",
    "height_m": "m",
}
FIGURE_HEADINGS = ("suite", "scenario", "goal", "error", "mean", "deviation", "paper", "episodes", "falls")
LIMITS = """\
- Trained and measured in simulation, on flat ground. Its authors have not run it on a robot.
- Keyframes outside the trained ranges are met less well. Gaps that are too long are filled with waypoints when a script is played.
- Position and heading come from the pose it is given: an error in that pose becomes an error at the keyframe."""


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
    analogous: float | None = None


MOST_NOTES = MIB
MAX_RESULT_ROWS = 10_000


class _Figures(BaseModel):
    rows: list[_Row] = Field(max_length=MAX_RESULT_ROWS)


def pack(
    source: str | Path, folder: Path, figures: Path | None = None, notes: Path | None = None, *, robot: Robot
) -> None:
    """Write the bundle of a run or of one of its checkpoints, atomically.

    The source may also be a bundle that is to get new figures or notes; everything else is then copied.
    """
    if folder.exists() and not is_bundle(folder):
        raise PolicyError(f"{folder} exists and is not a bundle: it will not be replaced")
    place = find(source)
    with part_folder(folder) as part:
        if is_bundle(place):
            _copy_bundle(place, part)
        else:
            _make_bundle(place, part, robot)
        _add_figures(figures, part)
        _add_notes(notes, part)
        try:
            _write_card(folder.name, part, robot)
            check_bundle(part, robot)
        except FileError as error:  # it names the copy; the user knows the original
            raise PolicyError(str(error).replace(str(part), str(place))) from error


def check_bundle(folder: Path, robot: Robot) -> None:
    """Raise PolicyError unless the graphs of a bundle can be used and belong to its weights."""
    weights = load_weights(folder)
    pairs = [
        (Policy.load(folder, robot=robot).metadata, weights.actor),
        (ExportedCritics.load(folder, robot=robot).metadata, weights.critics),
    ]
    for metadata, tensors in pairs:
        if metadata.weights_sha256 != fingerprint(tensors):
            raise PolicyError(f"{folder}: its ONNX files were not made from its {WEIGHTS}")


def _make_bundle(place: Path, folder: Path, robot: Robot) -> None:
    trained = load_trained(place, robot)
    curve = read_curve(home(place) / METRICS_FILE, until=trained.origin.steps)
    (folder / CURVE).write_text(json.dumps(curve))
    recipe = read_recipe(place)
    settings = {**trained.settings, "recipe": recipe} if recipe.get("stages") else trained.settings
    (folder / CONFIG).write_text(yaml.safe_dump(settings, sort_keys=False))
    save_weights(trained.weights, folder / WEIGHTS)
    (folder / POLICY_FILE).write_bytes(policy_file(trained, robot))
    (folder / CRITIC).write_bytes(critic_file(trained, robot))


def _copy_bundle(place: Path, folder: Path) -> None:
    for name in (POLICY_FILE, CRITIC, WEIGHTS, CONFIG, CURVE, FIGURES, NOTES_FILE):
        if (place / name).is_file():
            (folder / name).write_bytes((place / name).read_bytes())


def _add_figures(figures: Path | None, folder: Path) -> None:
    if figures is not None:
        (folder / FIGURES).write_text(json.dumps({"rows": _rows(figures)}, indent=1))


def _add_notes(notes: Path | None, folder: Path) -> None:
    if notes is not None:
        (folder / NOTES_FILE).write_text(_notes(notes), encoding="utf-8")


def _notes(path: Path) -> str:
    try:
        return read_text(path, MOST_NOTES)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error


def _write_card(name: str, folder: Path, robot: Robot) -> None:
    hours = read_bundle_curve(folder / CURVE)["hours"]
    rows = _rows(folder / FIGURES) if (folder / FIGURES).is_file() else []
    notes = _notes(folder / NOTES_FILE) if (folder / NOTES_FILE).is_file() else ""
    text = card(name, Policy.load(folder, robot=robot).metadata, read_settings(folder), hours, rows=rows, notes=notes)
    (folder / CARD).write_text(text)


def _rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows that `keystride evaluate --json` wrote."""
    content = read_json(path)
    rows = content.get("rows") if isinstance(content, dict) else content
    if isinstance(rows, list) and len(rows) > MAX_RESULT_ROWS:
        raise FileError(f"{path}: {len(rows)} rows; allowed: at most {MAX_RESULT_ROWS}")
    return [row.model_dump() for row in check_model({"rows": rows}, _Figures, str(path)).rows]


def card(
    name: str, metadata: Metadata, settings: dict[str, Any], hours: float, *, rows: Sequence[Any] = (), notes: str = ""
) -> str:
    """Return the model card as Markdown; rows come from `keystride evaluate --json`, notes list known limitations."""
    parts = [
        f"# {name}",
        _what(name, metadata),
        f"## Trained ranges\n\nFrom one keyframe to the next: {metadata.ranges}.",
        "## Data and licence\n\n" + _data(metadata),
        "## Training\n\n" + _training(metadata, settings, hours),
        "## Figures\n\n" + (_figures(rows) if rows else "Not measured yet: `keystride evaluate` prints them."),
        "## Known limits\n\n" + "\n".join(filter(None, [LIMITS, notes.strip()])),
    ]
    return "\n\n".join(parts) + "\n"


def _what(name: str, metadata: Metadata) -> str:
    sight = "all of them" if metadata.see == "all" else "the next one only"
    return (
        f"A policy for the robot `{metadata.robot}`: it meets {KNOWS[metadata.goals]}. "
        f"It holds up to {metadata.max_keyframes} keyframes at once and sees {sight}; it acts every "
        f"{1000 * metadata.control_dt:g} ms.\n\n    keystride play SCRIPT --policy {name}"
    )


def _data(metadata: Metadata) -> str:
    bound = " It may not be used commercially." if "NC" in metadata.licence else ""
    clips = "\n".join(f"- {source}" for source in metadata.training_data.split("; "))
    return f"Trained on\n\n{clips}\n\nThe weights are licensed under {metadata.licence}, like the clips.{bound}"


def _training(metadata: Metadata, settings: dict[str, Any], hours: float) -> str:
    learner = settings["learner"]
    begun, stages = settings.get("start_from"), settings.get("recipe", {}).get("stages")
    lines = [
        f"- {metadata.training_steps / 1e6:.1f} million control steps, {hours:.1f} hours",
        f"- {learner['environments']} robots at once; critics: {', '.join(group['name'] for group in learner['ppo']['groups'])}",
        *([f"- stages: {', '.join(stage['name'] for stage in stages)}"] if stages else []),
        f"- domain randomization: {settings['task']['randomize']}",
        *([f"- started from the weights of `{begun}`, whose training is not counted above"] if begun else []),
        f"- keystride {metadata.keystride_version}; weights SHA-256 `{metadata.weights_sha256}`",
        "- all settings in `config.yaml`, the learning curve in `curve.json`",
    ]
    return "\n".join(lines)


def _figures(rows: Sequence[Any]) -> str:
    return "\n".join(
        [_line(FIGURE_HEADINGS), _line(["---"] * len(FIGURE_HEADINGS)), *(_line(_cells(row)) for row in rows)]
    )


def _cells(row: dict[str, Any]) -> list[Any]:
    unit = METRIC_UNITS.get(row["metric"], "")
    error = row["metric"].removesuffix(f"_{unit}") + (f", {unit}" if unit else "")
    paper = "" if row.get("paper") is None else f"{row['paper']:g}"
    paper = paper if row.get("analogous") is None else f"{row['analogous']:g} (analogous)"
    figures = [f"{row['mean']:.3f}", f"{row['std']:.3f}", paper, row["episodes"], row["falls"]]
    return [row["suite"], row["scenario"], row["goal"], error, *figures]


def _line(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
