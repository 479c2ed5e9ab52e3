"""Where a policy comes from: the settings of its run, the clips it was trained on, and their licences."""

from dataclasses import dataclass, replace
from math import pi
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from keystride.errors import FileError
from keystride.keyframes.document import read_mapping
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT
from keystride.keyframes.inbetween.ranges import TrainedRanges
from keystride.motion.library import read_index
from keystride.policy.bundle import CONFIG, PolicyError, home, is_bundle, is_checkpoint, run_checkpoint
from keystride.reading import check_model, one_line, read_json

AUTHORED = "clips authored for keystride (Apache-2.0)"
OWN_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Source:
    """Clips that a policy was trained on."""

    description: str
    licences: tuple[str, ...]


@dataclass(frozen=True)
class Origin:
    """What the weights alone do not say."""

    steps: int  # control steps trained
    training_data: str
    licence: str


class _Groups(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str = Field(max_length=100, pattern=r"^[^,]+$")


class _Ppo(BaseModel):
    model_config = ConfigDict(extra="allow")
    groups: list[_Groups] = Field(min_length=1, max_length=32)


Layer = Annotated[int, Field(ge=1, le=8192)]


class _Network(BaseModel):
    """Bounds far beyond any policy, so that a damaged number cannot exhaust the memory."""

    model_config = ConfigDict(extra="allow")
    width: int = Field(ge=0, le=8192)
    layers: int = Field(ge=0, le=64)
    heads: int = Field(ge=1, le=256)
    feedforward: Layer
    mlp: list[Layer] = Field(max_length=32)
    state_to_mlp: bool
    critics: Literal["separate", "shared"]
    next_goal_time_column: int | None = Field(default=None, ge=0, le=1000)
    time_scales: list[Annotated[float, Field(gt=0.0, le=1000.0)]] = Field(default=[], max_length=32)
    servo_column: int | None = Field(default=None, ge=0, le=1000)
    servo_gain: float = Field(default=2.0, ge=-1000.0, le=1000.0)
    initial_std: float = Field(gt=0.0, le=100.0)


class _Learner(BaseModel):
    model_config = ConfigDict(extra="allow")
    environments: int = Field(ge=1, le=10_000_000)
    network: _Network
    ppo: _Ppo


class _Task(BaseModel):
    model_config = ConfigDict(extra="allow")
    goals: Literal["position", "pose", "any"]
    max_keyframes: int = Field(ge=1, le=1000)
    see: Literal["all", "next"]
    randomize: bool | str


class _Stage(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Recipe(BaseModel):
    """The part that is read of the configuration with which a run was started."""

    model_config = ConfigDict(extra="allow")
    stages: list[_Stage] = Field(default=[], max_length=1000)


class _Settings(BaseModel):
    """The part that is read of a run's configuration. The rest differs between versions."""

    model_config = ConfigDict(extra="allow")
    learner: _Learner
    task: _Task
    library: list[str] = Field(max_length=1000)
    authored: bool
    start_from: str | None = None
    recipe: Recipe | None = None


def read_settings(place: Path) -> dict[str, Any]:
    """Return the configuration in force when a policy was saved: of a bundle, a checkpoint, or a run's best checkpoint.

    PolicyError names the file and the fields that are wrong.
    """
    checkpoint = None if is_bundle(place) else place if is_checkpoint(place) else run_checkpoint(place)
    try:
        saved = {} if checkpoint is None else read_json(checkpoint / "learner.json")
        if isinstance(saved, dict) and "settings" in saved:
            assert checkpoint is not None
            check_model(saved["settings"], _Settings, f"{checkpoint / 'learner.json'}: settings")
            return saved["settings"]
        return read_mapping(home(place) / CONFIG, _Settings)
    except FileError as error:
        raise PolicyError(str(error)) from error


def read_recipe(place: Path) -> dict[str, Any]:
    """Return the configuration that a run was started with, stages and all."""
    return read_mapping(home(place) / CONFIG, Recipe)


def steps_of_checkpoint(checkpoint: Path) -> int:
    """Return the number of control steps trained."""
    path = checkpoint / "learner.json"
    state = read_json(path)
    steps = state.get("steps") if isinstance(state, dict) else None
    if not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps < 1 << 60:
        raise PolicyError(f"{path}: steps is {one_line(repr(steps), 40)}; allowed: the number of control steps trained")
    return steps


def origin_of_run(checkpoint: Path, settings: dict[str, Any]) -> Origin:
    steps = steps_of_checkpoint(checkpoint)
    sources = training_sources(settings)
    return Origin(steps, "; ".join(source.description for source in sources), licence_of(sources))


def learnt_components(goals: str) -> tuple[str, ...]:
    return ("position",) if goals == "position" else COMPONENTS


def trained_ranges(settings: dict[str, Any]) -> TrainedRanges:
    """Return the ranges that keyframes were drawn from in a run, as its configuration has them."""
    task = settings["task"]
    drawn = task["ranges"]
    gap = tuple(CONTROL_DT * step for step in drawn["interval_steps"])
    paper = TrainedRanges(
        gap_s=(gap[0], gap[1]),
        distance_m=(0.0, drawn["radius"][1]),
        direction_rad=tuple(drawn["direction"]),
        turn_rad=tuple(drawn["turn"]),
        speed_m_s=(drawn["radius"][1] / gap[0],) * 3,
        turn_rate_rad_s=drawn["turn"][1] / gap[0],
        components=learnt_components(task["goals"]),
    )
    return _widened(paper, drawn["everyday"]) if drawn.get("everyday_share") else paper


def _widened(ranges: TrainedRanges, everyday: dict[str, Any]) -> TrainedRanges:
    """Widen the ranges by those of everyday keyframes: all directions, with distances that follow from the time."""
    shortest, longest = (CONTROL_DT * step for step in everyday["interval_steps"])
    gap = min(ranges.gap_s[0], shortest), max(ranges.gap_s[1], longest)
    reach = everyday["speed_ahead"] * (gap[1] - everyday["reaction"])
    low, high = everyday["height"] or ranges.height_m
    return replace(
        ranges,
        gap_s=gap,
        distance_m=(0.0, max(ranges.distance_m[1], reach)),
        direction_rad=(-pi, pi),
        turn_rad=(-pi, pi),
        speed_m_s=(
            max(ranges.speed_m_s[0], everyday["speed_ahead"]),
            everyday["speed_sideways"],
            everyday["speed_back"],
        ),
        turn_rate_rad_s=max(ranges.turn_rate_rad_s, everyday["turn_rate"]),
        height_m=(min(ranges.height_m[0], low), max(ranges.height_m[1], high)),
    )


def training_sources(settings: dict[str, Any]) -> list[Source]:
    """Return the clips used in training; a library that has since moved is listed with an unknown licence."""
    sources = [_library(Path(folder)) for folder in settings["library"]]
    if settings["authored"] or not sources:
        sources.append(Source(AUTHORED, (OWN_LICENCE,)))
    return sources


def licence_of(sources: list[Source]) -> str:
    """Return the licence of the weights: all restrictive licences of the clips, or else our own."""
    found = {licence for source in sources for licence in source.licences}
    bound = sorted(found - {OWN_LICENCE})
    return " and ".join(bound) if bound else OWN_LICENCE


def _library(folder: Path) -> Source:
    try:
        clips = [clip for clip in read_index(folder)["clips"] if clip["split"] == "train"]
    except (OSError, FileError):
        return Source(f"{folder.name} (clips not available)", ("unknown licence",))
    minutes = sum(clip["seconds"] for clip in clips) / 60
    licences = tuple(sorted({clip["licence"] or "unknown licence" for clip in clips}))
    return Source(f"{folder.name}: {len(clips)} clips, {minutes:.0f} min ({', '.join(licences)})", licences)
