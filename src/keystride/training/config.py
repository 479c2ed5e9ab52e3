"""The configuration of a training run: a frozen dataclass with presets, YAML files, stages and command-line parsing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro
import yaml

from keystride import reading
from keystride.errors import FileError, UserError
from keystride.files import write_atomically
from keystride.learner.config import CPU, PAPER, SINGLE_CRITIC, LearnerConfig
from keystride.policy.bundle import CONFIG
from keystride.reading import one_line, reason
from keystride.task.config import TaskConfig

Config = TypeVar("Config")
TrainingCommand = TypeVar("TrainingCommand")

WHOLE_RUN = (
    *("name", "runs", "robot", "start_from", "processes", "device", "wandb", "stages"),
    *("learner.steps", "learner.seed"),
)
"""Settings that no stage can change."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluations during training, of the deterministic policy on a fixed set of episodes."""

    robots: int = 256
    """Number of robots, summed over all processes."""
    control_steps: int = 320
    """Control steps per robot on keyframes from clips, and again on random keyframes.
    Half as many on every other kind that training samples."""
    export: bool = True
    """Whether to export the best policy as policy.onnx whenever it improves.
    If not, commands that load the run export it on demand."""


@dataclass(frozen=True)
class TrainingStage:
    """A section of a run with its own settings."""

    name: str
    """Name of the stage in messages and checkpoints."""
    until: int | None = None
    """Control steps, counted from the start of the run, at which the stage ends.
    Optional for the last stage, which ends at learner.steps."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings that change when the stage begins, nested as in the file. They stay in force until a later stage changes them."""


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that determines what a run learns and where it is stored."""

    name: str = "policy"
    """Name of the run; its folder is RUNS/NAME."""
    runs: Path = Path("runs")
    """Parent folder of all runs."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    library: tuple[Path, ...] = ()
    """Motion libraries: folders of clips written by `keystride motion import`."""
    authored: bool = True
    """Whether to train on the built-in clips in addition to the libraries. They are always used if no library is given."""
    start_from: Path | None = None
    """Policy whose weights initialize the run: the name of a built-in policy, a bundle, a run or a checkpoint."""
    position_teacher: Path | None = None
    """Policy to imitate during learner.ppo.imitation_steps where keyframes are positions ahead of the robot.
    Elsewhere the run imitates the policy that it started from."""
    processes: int = 0
    """Number of training processes on this machine, one thread each.
    0: one per core, or the largest smaller number that divides the robots evenly."""
    device: str = "cpu"
    """Device of the networks: cpu, cuda or cuda:N. The physics always runs on the CPU."""
    wandb: str | None = None
    """Weights & Biases project to log metrics to, in addition to the run folder. Requires `pip install wandb`."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    learner: LearnerConfig = field(default_factory=lambda: CPU)
    task: TaskConfig = field(default_factory=TaskConfig)
    stages: Annotated[tuple[TrainingStage, ...], tyro.conf.Suppress] = ()
    """Consecutive stages of the run. They can only be set in a configuration file."""

    @property
    def folder(self) -> Path:
        return self.runs / self.name


PRESETS: dict[str, TrainingConfig] = {
    "cpu": TrainingConfig(),
    "paper": TrainingConfig(learner=PAPER),
    "single-critic": TrainingConfig(learner=replace(CPU, ppo=replace(CPU.ppo, groups=SINGLE_CRITIC))),
}
"""Complete configurations to start from. cpu: the paper's method, sized for a few CPU cores. paper: the paper's sizes.
single-critic: the cpu preset with one critic for the weighted sum of all rewards."""


def read_config(
    path: Path, preset: str | None = None, presets: Mapping[str, TrainingConfig] = PRESETS
) -> TrainingConfig:
    """Return the configuration in a YAML file. Missing settings come from `preset`, or else from the preset that the file names."""
    values = read_settings_file(path)
    named = values.pop("preset", "cpu")
    if not isinstance(named, str) or named not in presets:
        raise UserError(f"{path}: preset: unknown preset {one_line(repr(named), 60)}; choose from {', '.join(presets)}")
    try:
        return _with_end(overridden(presets[preset or named], values), "steps" in (values.get("learner") or {}))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def config_of_run(folder: Path) -> TrainingConfig:
    """Return the configuration of an existing run, with the current location of its folder."""
    if not (folder / CONFIG).is_file():
        raise UserError(f"{folder} contains no run to resume")
    return replace(read_config(folder / CONFIG), runs=folder.parent, name=folder.name)


def config_text(config: TrainingConfig) -> str:
    """Return the configuration as YAML that `read_config` can read."""
    return yaml.safe_dump(plain_config(config), sort_keys=False)


def write_config(config: TrainingConfig, folder: Path) -> None:
    """Write the configuration to a run folder."""
    write_atomically(folder / CONFIG, config_text(config))


@dataclass(frozen=True)
class ResolvedStage:
    """A stage with its complete configuration. A run without stages has a single, unnamed one."""

    number: int
    name: str
    until: int
    config: TrainingConfig

    @property
    def settings(self) -> dict[str, Any]:
        """Return what a checkpoint records: the current configuration, and the name of the stage if it has one."""
        return {**plain_config(replace(self.config, stages=())), **({"stage": self.name} if self.name else {})}


def resolved_stages(config: TrainingConfig) -> list[ResolvedStage]:
    """Return all stages of a run with their complete configurations; raise UserError if they are inconsistent."""
    if not config.stages:
        return [ResolvedStage(0, "", config.learner.steps, config)]
    resolved, begin = [], 0
    for i, stage in enumerate(config.stages):
        where = f"stages.{stage.name}"
        last = i == len(config.stages) - 1
        if stage.until is None and not last:
            raise UserError(f"{where}.until: missing; it is optional for the last stage only")
        until = config.learner.steps if stage.until is None else stage.until
        if last and until != config.learner.steps:
            raise UserError(
                f"{where}.until: the last stage ends at {until:,} control steps, but learner.steps is "
                f"{config.learner.steps:,}; set only one of the two"
            )
        if until <= begin:
            raise UserError(f"{where}.until: the stage ends at {until:,} control steps, but begins at {begin:,}")
        for path in paths(stage.overrides):
            if any(is_within(path, fixed) for fixed in WHOLE_RUN):
                raise UserError(f"{where}.overrides.{path}: a stage cannot change this setting")
        config = overridden(config, stage.overrides, f"{where}.overrides")
        own = replace(
            config, learner=replace(config.learner, steps=until)
        )  # the noise is annealed at the end of every stage
        resolved.append(ResolvedStage(i, stage.name, until, own))
        begin = until
    if len({stage.name for stage in resolved}) < len(resolved):
        raise UserError("stages: two stages have the same name")
    return resolved


def stage_at(config: TrainingConfig, steps: int) -> ResolvedStage | None:
    """Return the stage of a run after this many control steps; None if the run is finished."""
    return next((stage for stage in resolved_stages(config) if steps < stage.until), None)


def set_by_stages(config: TrainingConfig, changed: Mapping[str, Any]) -> dict[str, str]:
    """Return the changed settings that a stage overrides, as {setting: stage}."""
    return {
        path: stage.name
        for path in changed
        for stage in config.stages
        if any(is_within(path, own) or is_within(own, path) for own in paths(stage.overrides))
    }


def _with_end(config: TrainingConfig, steps_given: bool) -> TrainingConfig:
    """Return the configuration with learner.steps set to the end of its last stage."""
    end = config.stages[-1].until if config.stages else None
    if end is not None and not steps_given:
        config = replace(config, learner=replace(config.learner, steps=end))
    resolved_stages(config)
    return config


# Configurations as plain data: nested frozen dataclasses are read, overridden and compared by dotted paths.


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file."""
    try:
        values = reading.read_yaml(path)
    except FileError as error:
        raise UserError(str(error)) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected settings such as `name: value`, found {type(values).__name__}")
    return values


def plain_config(config: Any) -> dict[str, Any]:
    """Return a dataclass as dicts, lists, numbers and strings."""
    return json.loads(json.dumps(asdict(config), default=str))


def overridden(default: Config, values: Any, where: str = "") -> Config:
    """Return a dataclass with some fields replaced by plain values; errors name the path of the setting.

    For a tuple of named dataclasses, a list replaces all entries and a mapping overrides existing entries by name.
    """
    assert is_dataclass(default)
    assert not isinstance(default, type)
    return replace(default, **_fields(type(default), values, default, where))


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ between two plain configurations, as {path: (old, new)}."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys((*old, *new)):
        path, before, after = _join(where, name), old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            found |= differences(before, after, path)
        elif before != after:
            found[path] = before, after
    return found


def paths(values: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield the dotted paths of all leaves of a nested mapping."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from paths(value, _join(where, name))
        else:
            yield _join(where, name)


def is_within(path: str, prefix: str) -> bool:
    """Return whether a dotted path equals `prefix` or lies below it."""
    return path == prefix or path.startswith(f"{prefix}.")


def _fields(kind: type, values: Any, default: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise UserError(f"{where or 'configuration'}: expected settings such as `name: value`, found {_found(values)}")
    hints, known = get_type_hints(kind), {field.name: field for field in fields(kind)}
    for name in values:
        if name not in known:
            raise UserError(f"{_join(where, _named(name))}: unknown setting{_suggestion(str(name), list(known))}")
    return {
        name: _value(hints[name], value, _present(known[name], default), _join(where, name))
        for name, value in values.items()
    }


def _value(kind: Any, value: Any, default: Any, where: str) -> Any:
    if is_dataclass(kind):
        return overridden(default, value, where)
    entry = get_args(kind)[0] if get_origin(kind) is tuple else None
    if is_dataclass(entry):
        return _entries(entry, value, default, where)
    from pydantic import TypeAdapter, ValidationError  # lazy, to keep --help fast

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        reasons = "; ".join(_reason(part, where) for part in error.errors(include_url=False))
        raise UserError(f"{one_line(reasons, 300)}; found {_found(value)}") from error


def _entries(kind: Any, value: Any, default: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        names = [entry.name for entry in default]
        for name in value:
            if name not in names:
                raise UserError(f"{_join(where, _named(name))}: unknown name{_suggestion(str(name), names)}")
        return tuple(
            overridden(entry, value[entry.name], _join(where, entry.name)) if entry.name in value else entry
            for entry in default
        )
    if not isinstance(value, list):
        raise UserError(f"{where}: expected a list, found {_found(value)}")
    return tuple(_new(kind, item, _join(where, i)) for i, item in enumerate(value))


def _new(kind: Any, values: Any, where: str) -> Any:
    given = _fields(kind, values, None, where)
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    for name in needed:
        if name not in given:
            raise UserError(f"{_join(where, name)}: missing")
    return kind(**given)


def _present(field: "Field[Any]", owner: Any) -> Any:
    """Return the value that overrides of this field are applied to."""
    if owner is not None:
        return getattr(owner, field.name)
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _reason(part: Any, where: str) -> str:
    place = ".".join(str(key) for key in part["loc"] if isinstance(key, int))  # drop the names of union members
    return f"{_join(where, place) if place else where}: {reason(part)}"


def _found(value: Any) -> str:
    return one_line(repr(value), 60)


def _named(name: object) -> str:
    return one_line(name, 60) or repr(name)


def _suggestion(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; choose from {', '.join(known)}"


def _join(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


# Command line: tyro overrides a configuration that comes from a preset, a file or an existing run.

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]  # without a --no- variant
Preset = Literal["cpu", "paper", "single-critic"]
Settings = Annotated[TrainingConfig, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class BaseArguments:
    """The arguments that select the configuration which all other arguments override."""

    config: Path | None = None
    preset: Preset | None = None
    resume: Flag = False
    runs: Path | None = None
    name: str | None = None

    def settings(self, presets: Mapping[str, TrainingConfig]) -> TrainingConfig:
        """Return the configuration that these arguments select."""
        if self.config is not None:
            return read_config(self.config, self.preset, presets)
        default = presets[self.preset or "cpu"]
        if self.resume and self.preset is None:
            return config_of_run((self.runs or default.runs) / (self.name or default.name))
        return default


def parse_training(
    command: type[TrainingCommand], arguments: Sequence[str], prog: str, presets: Mapping[str, TrainingConfig] = PRESETS
) -> TrainingCommand:
    """Parse a command with a `settings` field, whose default is the configuration that the other arguments select."""
    source, _ = tyro.cli(BaseArguments, args=arguments, return_unknown_args=True, add_help=False)
    default: Any = command(settings=source.settings(presets))  # type: ignore[call-arg]
    parsed: Any = tyro.cli(command, prog=prog, default=default, args=arguments)
    changed = differences(plain_config(default.settings), plain_config(parsed.settings))
    for path, stage in set_by_stages(default.settings, changed).items():
        raise UserError(f"{path} is set by stage {stage!r}; change it there")
    return parsed
