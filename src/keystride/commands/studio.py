"""`keystride studio`: edit keyframe scripts and play them in a browser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.studio.server import Opening


@dataclass(frozen=True)
class OpenStudio:
    """Direct the robot in the browser: place keyframes, see how likely each is to be met, and watch the policy play them.

    Every browser tab has its own session. Scripts are opened from and saved to the folder of SCRIPT, or the current folder.

    Example: `keystride studio examples/walk.yaml --policy go2-pose`.
    """

    script: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[SCRIPT]")] = None
    """Keyframe script to open, YAML or JSON, or the name of a built-in example."""

    policy: str | None = None
    """Name of a built-in policy, a bundle folder, an ONNX file or a training run. Default: the same as for `play`."""

    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md). The Live tab supports only the Go2."""

    inbetween: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Show the policy the script alone, without waypoints in gaps longer than it was trained on."""

    interface: str | None = None
    """Network interface to a real robot for the Live tab, as for `deploy go2`. Default: simulated robots only."""

    pose: str = "odometry"
    """Pose source of that robot, as for `deploy go2`."""

    domain: int = 0
    """DDS domain of that robot; robots use 0."""

    host: str = "127.0.0.1"
    """Address to listen on. Anyone with the printed URL, which contains a token, can read and write scripts in the folder."""

    port: int = 8080
    """Port to listen on; if it is taken, the next free one is used."""

    headless: bool = False
    """Do not open a browser."""

    def run(self) -> int:
        from keystride.keyframes.document import ScriptError
        from keystride.policy.bundle import PolicyError
        from keystride.robot.catalogue import load_robot
        from keystride.studio.live.live_run import Target
        from keystride.studio.playback import controllers
        from keystride.studio.script_folder import BadName
        from keystride.studio.server import opening

        robot, policy = load_robot(self.robot), self.policy or controllers.first_choice()
        try:
            controllers.load_controller(policy, robot)
            target = Target(self.interface, self.pose, self.domain)
            start = replace(opening(self.script, robot, policy, inbetween=self.inbetween), target=target)
        except (ScriptError, PolicyError, BadName) as error:
            raise UserError(str(error)) from error
        return self._serve(start)

    def _serve(self, start: Opening) -> int:
        import signal
        import sys
        import time
        import webbrowser

        from keystride.studio.server import Studio

        studio = Studio(start, self.host, self.port)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that unsaved work is written
        print(f"keystride studio: {studio.url} (Ctrl-C to quit)", flush=True)
        if not self.headless:
            webbrowser.open(studio.url)
        try:
            while True:  # the kernel may hand a signal to another thread, which does not wake this one
                time.sleep(0.5)
        finally:
            studio.stop()
