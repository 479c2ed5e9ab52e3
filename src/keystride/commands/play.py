"""`keystride play`: a policy performs a keyframe script."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.commands.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from keystride.evaluation.recording import Recording
    from keystride.keyframes.script import Script
    from keystride.policy.runtime import Policy


@dataclass(frozen=True)
class Play:
    """Simulate a keyframe script and print how far off the robot is at every keyframe.

    The robot starts in its stance at the origin and faces x. On request the episode is written as a film, a replay for
    the browser, a picture or figures.
    """

    script: Annotated[Path, tyro.conf.Positional]
    """Keyframe script, YAML or JSON."""
    policy: str = "go2-pose"
    """Name of a shipped policy, a bundle folder, an ONNX file, or a training run."""
    video: Path | None = None
    """Write a film (.mp4 or .gif) with the keyframes as translucent robots."""
    html: Path | None = None
    """Write a replay that any browser opens from the disk."""
    plot: Path | None = None
    """Write a picture (.png, .svg, .pdf): path from above, height, angles, joints."""
    json: Path | None = None
    """Write the errors as JSON; - prints them instead of the table."""
    viewer: bool = False
    """Show the episode in a window."""

    def run(self) -> int:
        self._check()
        policy, script = load_policy(self.policy), _load_script(self.script)
        _warn_of_unseen(policy, self.policy, script)
        from keystride.evaluation.recording import play
        from keystride.robot.go2 import GO2

        recording = play(policy, GO2, script, title=self.script.stem, policy=Path(self.policy).name)
        if self.json != Path("-"):
            _print(recording)
        self._write(recording)
        if self.viewer:
            from keystride.evaluation.viewer import show

            show(recording)
        return 0

    def _check(self) -> None:
        """What can be refused before any work is done."""
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise UserError(f"--plot {self.plot}: a picture ends in .png, .svg or .pdf")
        if self.video is not None:
            import imageio_ffmpeg  # noqa: F401 (its absence is explained in one line)

            from keystride.evaluation.video import FORMATS

            if self.video.suffix.lower() not in FORMATS:
                raise UserError(f"--video {self.video}: a film ends in {' or '.join(FORMATS)}")
        if (
            self.viewer
            and sys.platform == "linux"
            and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
        ):
            raise UserError("--viewer needs a screen, and there is none; --html FILE makes a replay for any browser")

    def _write(self, recording: Recording) -> None:
        if self.json is not None:
            _write_json(recording, self.json)
        if self.plot is not None:
            _write_plot(recording, self.plot)
        if self.html is not None:
            _write_replay(recording, self.html)
        if self.video is not None:
            _write_video(recording, self.video)


def load_policy(name: str) -> Policy:
    from keystride.policy.metadata import PolicyError
    from keystride.policy.opening import open_policy

    try:
        return open_policy(name)
    except PolicyError as error:
        raise UserError(str(error)) from error


def _load_script(path: Path) -> Script:
    from keystride.keyframes.files import load_script
    from keystride.keyframes.problems import ScriptError

    try:
        return load_script(path)
    except ScriptError as error:
        first, more = error.lines()[0], len(error.lines()) - 1
        raise UserError(f"{first} (and {more} more: keystride check {path})" if more else first) from error


def _warn_of_unseen(policy: Policy, name: str, script: Script) -> None:
    """A policy for positions does not see the rest; its errors are still measured."""
    known = policy.metadata.goal_components
    asked = ("position", "roll", "pitch", "yaw", "posture")
    unseen = [one for one in asked if one not in known and any(getattr(k, one) is not None for k in script.keyframes)]
    if unseen:
        print(f"warning: {Path(name).name} knows {', '.join(known)} only, not {', '.join(unseen)}", file=sys.stderr)


def _print(recording: Recording) -> None:
    from rich.console import Console
    from rich.text import Text

    from keystride.evaluation.errors import THRESHOLDS

    console = Console()
    console.print(Text(f"{recording.title} by {recording.policy}, {recording.times[-1]:.1f} s"))
    console.print(_table(recording))
    console.print(f"{int(recording.met.sum())} of {len(recording.met)} keyframes met ({THRESHOLDS})", soft_wrap=True)
    if recording.fell_at is not None:
        console.print(f"the robot fell at {recording.fell_at:.2f} s: keyframes after that are missed", style="red")


HEADINGS = ("#", "time\ns", "distance\nm", "roll\ndeg", "pitch\ndeg", "yaw\ndeg", "posture\ndeg", "", "label")


def _table(recording: Recording) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from keystride.keyframes.goals import CONTROL_DT

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("", "label") else "right", overflow="fold")
    for k, errors in enumerate(recording.errors):
        verdict = Text("met", "green") if recording.met[k] else Text("missed", "red")
        time = f"{recording.steps[k] * CONTROL_DT:.2f}"
        cells = [_cell(error, digits) for error, digits in zip(errors, (3, 1, 1, 1, 1), strict=True)]
        table.add_row(str(k + 1), time, *cells, verdict, Text(recording.labels[k]))
    return table


def _cell(error: float, digits: int) -> str:
    return "-" if isnan(error) else f"{error:.{digits}f}"  # NaN: not asked for


def _write_json(recording: Recording, path: Path) -> None:
    import json

    from keystride.evaluation.recording import summary
    from keystride.policy.files import write_file

    text = json.dumps(summary(recording), indent=2)
    if path == Path("-"):
        print(text)
    else:
        write_file(f"{text}\n".encode(), path)
        _say(path)


def _write_plot(recording: Recording, path: Path) -> None:
    from keystride.evaluation.ink import save_figure
    from keystride.evaluation.plot import draw_recording

    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw_recording(recording), path)
    _say(path)


def _write_replay(recording: Recording, path: Path) -> None:
    from keystride.evaluation.replay import replay_page
    from keystride.policy.files import write_file

    write_file(replay_page(recording).encode(), path)
    _say(path)


def _write_video(recording: Recording, path: Path) -> None:
    from keystride.evaluation.video import write_video

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_video(recording, path)
    except RuntimeError as error:
        raise UserError(str(error)) from error
    _say(path)


def _say(path: Path) -> None:
    print(f"wrote {path}", file=sys.stderr)
