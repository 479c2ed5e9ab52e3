"""Where a policy comes from: its run's settings, the clips it learnt from and what their licences allow."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from keystride.keyframes.goals import COMPONENTS
from keystride.motion.index import read_index
from keystride.policy.bundle import CONFIG, home
from keystride.policy.metadata import PolicyError

AUTHORED = "clips authored for keystride (Apache-2.0)"
OWN_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Source:
    """Clips that a policy learnt from."""

    description: str
    licences: tuple[str, ...]


@dataclass(frozen=True)
class Origin:
    """What the weights alone do not tell."""

    steps: int  # control steps trained
    training_data: str
    licence: str


def read_settings(place: Path) -> dict[str, Any]:
    """The resolved configuration of a run or a bundle."""
    return _read_yaml(home(place) / CONFIG)


def origin_of_run(checkpoint: Path, settings: dict[str, Any]) -> Origin:
    steps = json.loads((checkpoint / "learner.json").read_text())["steps"]
    sources = training_sources(settings)
    return Origin(int(steps), "; ".join(source.description for source in sources), licence_of(sources))


def learnt_components(goals: str) -> tuple[str, ...]:
    return ("position",) if goals == "position" else COMPONENTS


def training_sources(settings: dict[str, Any]) -> list[Source]:
    """A library that is no longer where training found it is named without its licence."""
    sources = [_library(Path(folder)) for folder in settings["library"]]
    if settings["authored"] or not sources:
        sources.append(Source(AUTHORED, (OWN_LICENCE,)))
    return sources


def licence_of(sources: list[Source]) -> str:
    """Of the weights: the strictest that the clips carry, named one by one."""
    found = {licence for source in sources for licence in source.licences}
    bound = sorted(found - {OWN_LICENCE})
    return " and ".join(bound) if bound else OWN_LICENCE


def _library(folder: Path) -> Source:
    try:
        clips = [clip for clip in read_index(folder)["clips"] if clip["split"] == "train"]
    except OSError:
        return Source(f"{folder.name} (clips not at hand)", ("unknown licence",))
    minutes = sum(clip["seconds"] for clip in clips) / 60
    licences = tuple(sorted({clip["licence"] or "unknown licence" for clip in clips}))
    return Source(f"{folder.name}: {len(clips)} clips, {minutes:.0f} min ({', '.join(licences)})", licences)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise PolicyError(f"{path}: it is no YAML file that can be read") from error
    if not isinstance(settings, dict) or not {"learner", "task", "library", "authored"} <= settings.keys():
        raise PolicyError(f"{path}: it is not the configuration of a training run")
    return settings
