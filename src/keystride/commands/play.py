"""`keystride play`: simulate a keyframe script with a policy."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.errors import UserError
from keystride.policy import DEFAULT_POLICY

if TYPE_CHECKING:
    from rich.table import Table

    from keystride.evaluation.recording import Recording
    from keystride.keyframes.script import Script
    from keystride.policy.runtime import Policy
    from keystride.robot.description import Robot


MAX_SECONDS_AFTER = 3600.0


@dataclass(frozen=True)
class Play:
    """Simulate a keyframe script and print the error at every keyframe.

    The robot starts in its stance at the origin, facing x. Options save the episode as a video, a replay for the browser, a plot
    or data.

    Example: `keystride play walk --policy go2-pose --html walk.html`.
    """

    script: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SCRIPT")]
    """Keyframe script, YAML or JSON, or the name of an example such as walk."""
    policy: str = DEFAULT_POLICY
    """Name of a built-in policy, a bundle folder, an ONNX file or a training run."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    video: Path | None = None
    """Write a video (.mp4 or .gif) with keyframes as translucent robots."""
    html: Path | None = None
    """Write a replay as a single HTML file that works offline."""
    plot: Path | None = None
    """Write a plot (.png, .svg or .pdf) of the path from above, height, angles and joints."""
    json: Path | None = None
    """Write the errors as JSON to this file; with -, print JSON instead of the table."""
    npz: Path | None = None
    """Write the trajectory: time, base_position, base_orientation (w x y z) and joint_angles, 50 rows per second."""
    seconds_after: float = 1.0
    """Seconds to simulate after the last keyframe."""
    inbetween: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Show the policy the script alone, without waypoints in gaps longer than it was trained on."""
    viewer: bool = False
    """Show the episode in a window."""

    def run(self) -> int:
        self._check()
        from keystride.evaluation.recording import play_script
        from keystride.policy.loading import open_policy
        from keystride.robot.catalogue import load_robot

        robot = load_robot(self.robot)
        policy, script = open_policy(self.policy, robot=robot), _load_script(self.script, robot)
        _warn(policy, script, robot, inbetween=self.inbetween)
        recording = play_script(
            policy,
            robot,
            script,
            title=self.script.stem,
            policy=Path(self.policy).name,
            inbetween=self.inbetween,
            seconds_after=self.seconds_after,
        )
        if self.json != Path("-"):
            _print(recording)
        self._write(recording)
        if self.viewer:
            from keystride.evaluation.rendering.video import show_window

            show_window(recording)
        return 0

    def _check(self) -> None:
        """Reject bad options before any work is done."""
        if not 0.0 <= self.seconds_after <= MAX_SECONDS_AFTER:
            raise UserError(f"--seconds-after must lie between 0 and {MAX_SECONDS_AFTER:g}, not {self.seconds_after:g}")
        if self.npz is not None and self.npz.suffix.lower() != ".npz":
            raise UserError(f"--npz {self.npz}: the name must end in .npz")
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise UserError(f"--plot {self.plot}: the name must end in .png, .svg or .pdf")
        if self.video is not None:
            import imageio_ffmpeg  # noqa: F401 (main() explains which extra is missing)

            from keystride.evaluation.rendering.video import VIDEO_FORMATS

            if self.video.suffix.lower() not in VIDEO_FORMATS:
                raise UserError(f"--video {self.video}: the name must end in {' or '.join(VIDEO_FORMATS)}")
        if (
            self.viewer
            and sys.platform == "linux"
            and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
        ):
            raise UserError("--viewer needs a display; use --html FILE for a replay in the browser")

    def _write(self, recording: Recording) -> None:
        if self.json is not None:
            _write_json(recording, self.json)
        if self.npz is not None:
            _write_trajectory(recording, self.npz)
        if self.plot is not None:
            _write_plot(recording, self.plot)
        if self.html is not None:
            _write_replay(recording, self.html)
        if self.video is not None:
            _write_video(recording, self.video)


def _load_script(path: Path, robot: Robot) -> Script:
    from keystride.keyframes.document import ScriptError
    from keystride.keyframes.files import load_script

    try:
        return load_script(path, robot)
    except ScriptError as error:
        first, more = error.lines()[0], len(error.lines()) - 1
        raise UserError(f"{first} (and {more} more: keystride check {path})" if more else first) from error


def _warn(policy: Policy, script: Script, robot: Robot, *, inbetween: bool) -> None:
    """Print warnings where the script exceeds the robot's limits or the policy's training ranges; it is played anyway."""
    from keystride.keyframes.feasibility import script_warnings
    from keystride.policy.guide import outside_training, planned

    plan = planned(script, policy.metadata, robot) if inbetween else None
    outside = outside_training(script, policy.metadata, robot, inbetween=inbetween)
    for one in (*script_warnings(script, robot, plan), *outside):
        print(f"warning: keyframe {one.row + 1}: {one.message}", file=sys.stderr)


def _print(recording: Recording) -> None:
    from rich.console import Console
    from rich.text import Text

    from keystride.evaluation.episodes import THRESHOLDS

    console = Console()
    console.print(Text(f"{recording.title} with {recording.policy}, {recording.times[-1]:.1f} s"))
    console.print(_table(recording))
    console.print(f"{int(recording.met.sum())} of {len(recording.met)} keyframes met ({THRESHOLDS})", soft_wrap=True)
    if recording.fell_at is not None:
        console.print(f"the robot fell at {recording.fell_at:.2f} s: all later keyframes are missed", style="red")


KEYFRAME_HEADINGS = (
    "#",
    "time\ns",
    "distance\nm",
    "roll\ndeg",
    "pitch\ndeg",
    "yaw\ndeg",
    "posture\ndeg",
    "height\nm",
    "",
    "label",
)


def _table(recording: Recording) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from keystride.keyframes.goals import CONTROL_DT

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in KEYFRAME_HEADINGS:
        table.add_column(heading, justify="left" if heading in ("", "label") else "right", overflow="fold")
    for k, errors in enumerate(recording.errors):
        verdict = Text("met", "green") if recording.met[k] else Text("missed", "red")
        time = f"{recording.steps[k] * CONTROL_DT:.2f}"
        cells = [_cell(error, digits) for error, digits in zip(errors, (3, 1, 1, 1, 1, 3), strict=True)]
        table.add_row(str(k + 1), time, *cells, verdict, Text(recording.labels[k]))
    return table


def _cell(error: float, digits: int) -> str:
    return "-" if isnan(error) else f"{error:.{digits}f}"  # NaN: the keyframe lacks the component


def _write_json(recording: Recording, path: Path) -> None:
    import json

    from keystride.evaluation.recording import recording_summary
    from keystride.files import write_atomically

    text = json.dumps(recording_summary(recording), indent=2)
    if path == Path("-"):
        print(text)
    else:
        write_atomically(path, f"{text}\n")
        _say(path)


def _write_trajectory(recording: Recording, path: Path) -> None:
    import io

    import numpy as np

    from keystride.files import write_atomically

    content = io.BytesIO()
    np.savez(
        content,
        time=recording.times,
        base_position=recording.poses[:, :3],
        base_orientation=recording.poses[:, 3:7],
        joint_angles=recording.poses[:, 7:],
    )
    write_atomically(path, content.getvalue())
    _say(path)


def _write_plot(recording: Recording, path: Path) -> None:
    from keystride.evaluation.rendering.plot import draw_recording
    from keystride.plotting import save_figure

    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw_recording(recording), path)
    _say(path)


def _write_replay(recording: Recording, path: Path) -> None:
    from keystride.evaluation.rendering.replay import replay_page
    from keystride.files import write_atomically

    write_atomically(path, replay_page(recording))
    _say(path)


def _write_video(recording: Recording, path: Path) -> None:
    from keystride.evaluation.rendering.video import write_video

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_video(recording, path)
    except RuntimeError as error:
        raise UserError(str(error)) from error
    _say(path)


def _say(path: Path) -> None:
    print(f"wrote {path}", file=sys.stderr)
