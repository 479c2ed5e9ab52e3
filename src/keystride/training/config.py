"""The configuration of a training run: one frozen dataclass, its presets, its file, its stages, its command line."""

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
    *("name", "runs", "robot", "start_from", "processes", "device", "wandb", "stages"),
    *("learner.steps", "learner.seed"),
)
"""Settings that no stage can change."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluations during training: the deterministic policy on the same episodes each time."""

    robots: int = 256
    """Number of robots, over all processes."""
    control_steps: int = 320
    """Control steps of each robot on keyframes from clips, and again on random ones; half as many on each other kind that
    training draws."""
    export: bool = True
    """Whether the best policy so far is exported as policy.onnx each time it improves. Without it, commands that open the run
    export it when they need it."""


@dataclass(frozen=True)
class TrainingStage:
    """A part of a run with settings of its own."""

    name: str
    """Name of the stage in messages and checkpoints."""
    until: int | None = None
    """Control steps since the start of the run at which the stage ends. The last stage may leave it out: the run ends at
    learner.steps."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings that change when the stage begins, nested as in the file. They stay until a later stage changes them."""


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides what a run learns and where it is kept."""

    name: str = "policy"
    """Name of the run; its folder is RUNS/NAME."""
    runs: Path = Path("runs")
    """Folder that holds all runs."""
    robot: str = "go2"
    """Name of a robot that ships, or a YAML file that describes one (docs/robots.md)."""
    library: tuple[Path, ...] = ()
    """Folders of clips made by `keystride motion import`."""
    authored: bool = True
    """Whether the clips that ship with keystride are added to the library. Without a library they are used in any case."""
    start_from: Path | None = None
    """Policy whose weights the run begins with: the name of a shipped one, a bundle, a run or a checkpoint."""
    processes: int = 0
    """Number of processes that learn together on this machine, one thread each. 0: as many as there are cores, as far as they
    divide the robots evenly."""
    device: str = "cpu"
    """Where the networks run: cpu, cuda or cuda:N. Physics stays on the CPU."""
    wandb: str | None = None
    """Weights & Biases project that metrics are sent to, besides the run's folder. Needs `pip install wandb`."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    learner: LearnerConfig = field(default_factory=lambda: CPU)
    task: TaskConfig = field(default_factory=TaskConfig)
    stages: Annotated[tuple[TrainingStage, ...], tyro.conf.Suppress] = ()
    """Stages that follow one another; set in the configuration file only."""

    @property
    def folder(self) -> Path:
        return self.runs / self.name


PRESETS: dict[str, TrainingConfig] = {
    "cpu": TrainingConfig(),
    "paper": TrainingConfig(learner=PAPER),
    "single-critic": TrainingConfig(learner=replace(CPU, ppo=replace(CPU.ppo, groups=SINGLE_CRITIC))),
}
"""Complete configurations to start from. cpu: the paper's method sized for a few cores. paper: the paper's sizes.
single-critic: the cpu preset with one critic for the weighted sum of all rewards."""


def read_config(
    path: Path, preset: str | None = None, presets: Mapping[str, TrainingConfig] = PRESETS
) -> TrainingConfig:
    """Return the configuration in a YAML file. Settings that it leaves out come from `preset`, or else from the preset it names."""
    values = read_settings_file(path)
    named = values.pop("preset", "cpu")
    if not isinstance(named, str) or named not in presets:
        raise UserError(f"{path}: preset: unknown preset {one_line(repr(named), 60)}; known are {', '.join(presets)}")
    try:
        return _with_end(overridden(presets[preset or named], values), "steps" in (values.get("learner") or {}))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def config_of_run(folder: Path) -> TrainingConfig:
    """Return the configuration of an existing run, wherever its folder lies now."""
    if not (folder / CONFIG).is_file():
        raise UserError(f"{folder} holds no run to resume")
    return replace(read_config(folder / CONFIG), runs=folder.parent, name=folder.name)


def config_text(config: TrainingConfig) -> str:
    """Return the configuration as YAML that `read_config` reads."""
    return yaml.safe_dump(plain_config(config), sort_keys=False)


def write_config(config: TrainingConfig, folder: Path) -> None:
    """Write the configuration into a run's folder."""
    write_atomically(folder / CONFIG, config_text(config))


@dataclass(frozen=True)
class ResolvedStage:
    """A stage with its complete configuration. A run without stages has one, which has no name."""

    number: int
    name: str
    until: int
    config: TrainingConfig

    @property
    def settings(self) -> dict[str, Any]:
        """What a checkpoint records: the configuration in force, and the stage's name if it has one."""
        return {**plain_config(replace(self.config, stages=())), **({"stage": self.name} if self.name else {})}


def resolved_stages(config: TrainingConfig) -> list[ResolvedStage]:
    """Return every stage of a run with its complete configuration; raise UserError where they make no sense."""
    if not config.stages:
        return [ResolvedStage(0, "", config.learner.steps, config)]
    resolved, begin = [], 0
    for i, stage in enumerate(config.stages):
        where = f"stages.{stage.name}"
        last = i == len(config.stages) - 1
        if stage.until is None and not last:
            raise UserError(f"{where}.until: missing; only the last stage may leave it out")
        until = config.learner.steps if stage.until is None else stage.until
        if last and until != config.learner.steps:
            raise UserError(
                f"{where}.until: the run ends with its last stage, at {until:,} control steps, but learner.steps is "
                f"{config.learner.steps:,}; keep one of the two"
            )
        if until <= begin:
            raise UserError(
                f"{where}.until: the stage would end at {until:,} control steps, where it begins ({begin:,})"
            )
        for path in paths(stage.overrides):
            if any(is_within(path, fixed) for fixed in WHOLE_RUN):
                raise UserError(f"{where}.overrides.{path}: this setting holds for the whole run")
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
    """Return the stage that a run is in after a number of control steps; None once it is over."""
    return next((stage for stage in resolved_stages(config) if steps < stage.until), None)


def set_by_stages(config: TrainingConfig, changed: Mapping[str, Any]) -> dict[str, str]:
    """Return which of the changed settings a stage sets anyway, as {setting: stage}."""
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


# The command line: tyro overrides a configuration that a preset, a file or an earlier run provides.

TrainingCommand = TypeVar("TrainingCommand")
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]  # off unless given, and no --no-flag beside it
Preset = Literal["cpu", "paper", "single-critic"]
Settings = Annotated[TrainingConfig, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class BaseArguments:
    """The arguments that decide which configuration the other arguments override."""

    config: Path | None = None
    preset: Preset | None = None
    resume: Flag = False
    runs: Path | None = None
    name: str | None = None

    def settings(self, presets: Mapping[str, TrainingConfig]) -> TrainingConfig:
        """Return the configuration that these arguments choose."""
        if self.config is not None:
            return read_config(self.config, self.preset, presets)
        default = presets[self.preset or "cpu"]
        if self.resume and self.preset is None:
            return config_of_run((self.runs or default.runs) / (self.name or default.name))
        return default


def parse_training(
    command: type[TrainingCommand], arguments: Sequence[str], prog: str, presets: Mapping[str, TrainingConfig] = PRESETS
) -> TrainingCommand:
    """Parse a command with a field `settings`, on top of the configuration that its other arguments choose."""
    source, _ = tyro.cli(BaseArguments, args=arguments, return_unknown_args=True, add_help=False)
    default: Any = command(settings=source.settings(presets))  # type: ignore[call-arg]
    parsed: Any = tyro.cli(command, prog=prog, default=default, args=arguments)
    changed = differences(plain_config(default.settings), plain_config(parsed.settings))
    for path, stage in set_by_stages(default.settings, changed).items():
        raise UserError(f"{path} is set by stage {stage!r}: change it there")
    return parsed
