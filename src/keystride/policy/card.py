"""The model card of a bundle."""

from collections.abc import Sequence
from typing import Any

from keystride.policy.metadata import Metadata

KNOWS = {
    "position": "keyframes that hold a position alone; other components are ignored",
    "pose": "keyframes that hold position, roll, pitch, yaw and posture together",
    "any": "keyframes that hold any subset of position, roll, pitch, yaw and posture",
}
UNITS = {
    "distance_m": "m",
    "roll_deg": "deg",
    "pitch_deg": "deg",
    "yaw_deg": "deg",
    "posture_deg": "deg",
    "height_m": "m",
}
HEADINGS = ("suite", "scenario", "goal", "error", "mean", "deviation", "paper", "episodes", "falls")
LIMITS = """\
- Trained and measured in simulation, on flat ground. It has not been run on a robot by its makers.
- Keyframes outside the trained ranges are met less well. Gaps that are too long are filled with waypoints when a script is played.
- It knows its place in the world from the pose that it is given: an error there is an error at the keyframe."""


def card(
    name: str, metadata: Metadata, settings: dict[str, Any], hours: float, *, rows: Sequence[Any] = (), notes: str = ""
) -> str:
    """Markdown; rows are those of `keystride evaluate --json`, notes are further known limits."""
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
    return f"Learnt in the style of\n\n{clips}\n\nThe weights come under {metadata.licence}, as the clips do.{bound}"


def _training(metadata: Metadata, settings: dict[str, Any], hours: float) -> str:
    learner = settings["learner"]
    begun, stages = settings.get("start_from"), settings.get("recipe", {}).get("stages")
    lines = [
        f"- {metadata.training_steps / 1e6:.1f} million control steps, {hours:.1f} hours",
        f"- {learner['environments']} robots at once; critics: {', '.join(group['name'] for group in learner['ppo']['groups'])}",
        *([f"- stages: {', '.join(stage['name'] for stage in stages)}"] if stages else []),
        f"- domain randomisation: {settings['task']['randomize']}",
        *([f"- begun with the weights of `{begun}`, whose training is not counted above"] if begun else []),
        f"- keystride {metadata.keystride_version}; weights SHA-256 `{metadata.weights_sha256}`",
        "- all settings in `config.yaml`, the learning curve in `curve.json`",
    ]
    return "\n".join(lines)


def _figures(rows: Sequence[Any]) -> str:
    return "\n".join([_line(HEADINGS), _line(["---"] * len(HEADINGS)), *(_line(_cells(row)) for row in rows)])


def _cells(row: dict[str, Any]) -> list[Any]:
    unit = UNITS.get(row["metric"], "")
    error = row["metric"].removesuffix(f"_{unit}") + (f", {unit}" if unit else "")
    paper = "" if row.get("paper") is None else f"{row['paper']:g}"
    paper = paper if row.get("analogous") is None else f"{row['analogous']:g} (analogous)"
    figures = [f"{row['mean']:.3f}", f"{row['std']:.3f}", paper, row["episodes"], row["falls"]]
    return [row["suite"], row["scenario"], row["goal"], error, *figures]


def _line(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
