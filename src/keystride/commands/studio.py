"""`keystride studio`: direct the robot from a browser."""

from __future__ import annotations

from dataclasses import dataclass
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

    inbetween: bool = True
    """Fill gaps that are longer than the policy was trained on with waypoints. --no-inbetween shows it the script alone."""

    host: str = "127.0.0.1"
    """Address to serve on. Whoever has the printed address, with its token, may read and write scripts in the folder."""

    port: int = 8080
    """Port to serve on; when it is taken, the next that is free."""

    headless: bool = False
    """Do not open the page in this computer's browser."""

    soak: float | None = None
    """Play for so many seconds with an edit every second, watched by a headless Chromium; report pace and memory."""

    def run(self) -> int:
        from keystride.keyframes.problems import ScriptError
        from keystride.policy.metadata import PolicyError
        from keystride.studio.playback import controllers
        from keystride.studio.script_folder import BadName
        from keystride.studio.server import opening

        policy = self.policy or controllers.first_choice()
        try:
            controllers.load(policy)
            start = opening(self.script, policy, inbetween=self.inbetween)
        except (ScriptError, PolicyError, BadName) as error:
            raise UserError(str(error)) from error
        return _soak(start, self.soak) if self.soak is not None else self._serve(start)

    def _serve(self, start: Opening) -> int:
        import time
        import webbrowser

        from keystride.studio.server import Studio

        studio = Studio(start, self.host, self.port)
        print(f"keystride studio: {studio.url} (Ctrl-C ends it)", flush=True)
        if not self.headless:
            webbrowser.open(studio.url)
        try:
            while True:
                time.sleep(3600)
        finally:
            studio.stop()


def _soak(start: Opening, seconds: float) -> int:
    from keystride.benchmarks.soak import soak

    try:
        print(soak(start, seconds))
    except RuntimeError as error:
        raise UserError(str(error)) from error
    return 0
