"""`keystride studio`: direct the robot from a browser."""

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
    """Direct the robot from a browser: place keyframes, see how likely they are, and watch the policy meet them.

    Each browser has a session of its own. Scripts are opened from, and saved to, the folder of the script, or the
    current one.
    """

    script: Annotated[Path | None, tyro.conf.Positional] = None
    """A keyframe script, YAML or JSON, to start from."""

    policy: str | None = None
    """Name of a shipped policy, an ONNX file, a bundle folder or a run. Without it the default policy is taken."""

    robot: str = "go2"
    """Name of a robot that ships, or a YAML file that describes one (docs/robots.md). The Live tab is for the Go2."""

    inbetween: bool = True
    """Fill gaps that are longer than the policy was trained on with waypoints. --no-inbetween shows it the script alone."""

    interface: str | None = None
    """Network interface to a robot for the Live tab, as for `deploy go2`. Without it there are only simulated ones."""

    pose: str = "odometry"
    """Where that robot is, as for `deploy go2`."""

    domain: int = 0
    """DDS domain of that robot; robots use 0."""

    host: str = "127.0.0.1"
    """Address to serve on. Whoever has the printed address, with its token, may read and write scripts in the folder."""

    port: int = 8080
    """Port to serve on; when it is taken, the next that is free."""

    headless: bool = False
    """Do not open the page in this computer's browser."""

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
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # unsaved work is written before the end
        print(f"keystride studio: {studio.url} (Ctrl-C ends it)", flush=True)
        if not self.headless:
            webbrowser.open(studio.url)
        try:
            while True:
                time.sleep(3600)
        finally:
            studio.stop()
