"""The configuration of a training run: a frozen dataclass with presets, YAML files, stages and command-line parsing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro
import yaml

from keystride.errors import UserError
from keystride.files import write_atomically
from keystride.learner.config import CPU, PAPER, SINGLE_CRITIC, LearnerConfig
from keystride.policy.bundle import CONFIG
from keystride.reading import one_line
from keystride.task.config import TaskConfig
from keystride.training.settings import differences, is_within, overridden, paths, plain_config, read_settings_file

WHOLE_RUN = (
    *("name", "runs", "robot", "start_from", "position_teacher", "processes", "device", "wandb", "stages"),
    *("learner.steps", "learner.seed"),
)
"""Settings that no stage can change."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluations during training, of the deterministic policy on a fixed set of episodes."""

    robots: int = 256
    """Number of robots, summed over all processes."""
    control_steps: int = 320
    """Control steps per robot on keyframes from clips, and again on random keyframes; half as many on every other kind that
    training samples."""
    export: bool = True
    """Whether to export the best policy as policy.onnx whenever it improves. If not, commands that load the run export it on
    demand."""


@dataclass(frozen=True)
class TrainingStage:
    """A section of a run with its own settings."""

    name: str
    """Name of the stage in messages and checkpoints."""
    until: int | None = None
    """Control steps, counted from the start of the run, at which the stage ends. Optional for the last stage, which ends at
    learner.steps."""
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
    """Policy that a run imitates where keyframes are positions ahead of the robot, while it only imitates
    (learner.ppo.imitation_steps); elsewhere it imitates the policy that it started from."""
    processes: int = 0
    """Number of training processes on this machine, one thread each. 0: one per core, or the largest smaller number that
    divides the robots evenly."""
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


# Command line: tyro overrides a configuration that comes from a preset, a file or an existing run.

TrainingCommand = TypeVar("TrainingCommand")
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
