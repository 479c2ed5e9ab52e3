"""Arguments of commands that train: tyro overrides a configuration that a preset, a file or an earlier run brings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro

from keystride.errors import UserError
from keystride.training.config import PRESETS, TrainingConfig, read_config, set_by_stages
from keystride.training.settings import differences, plain
from keystride.training.start import config_of_run

Command = TypeVar("Command")
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]  # off unless given, and no --no-flag beside it
Preset = Literal["cpu", "paper", "single-critic"]
Settings = Annotated[TrainingConfig, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class Source:
    """The arguments that decide which configuration the others override."""

    config: Path | None = None
    preset: Preset | None = None
    resume: Flag = False
    runs: Path | None = None
    name: str | None = None

    def settings(self, presets: Mapping[str, TrainingConfig]) -> TrainingConfig:
        if self.config is not None:
            return read_config(self.config, self.preset, presets)
        default = presets[self.preset or "cpu"]
        if self.resume and self.preset is None:
            return config_of_run((self.runs or default.runs) / (self.name or default.name))
        return default


def parse_training(
    command: type[Command], arguments: Sequence[str], prog: str, presets: Mapping[str, TrainingConfig] = PRESETS
) -> Command:
    """Parse a command with a field `settings`, on top of the configuration that its other arguments choose."""
    source, _ = tyro.cli(Source, args=arguments, return_unknown_args=True, add_help=False)
    default: Any = command(settings=source.settings(presets))  # type: ignore[call-arg]
    parsed: Any = tyro.cli(command, prog=prog, default=default, args=arguments)
    changed = differences(plain(default.settings), plain(parsed.settings))
    for path, stage in set_by_stages(default.settings, changed).items():
        raise UserError(f"{path} is set by stage {stage!r}: change it there")
    return parsed
