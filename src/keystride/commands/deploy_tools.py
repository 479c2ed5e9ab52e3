"""`keystride deploy sim`, `selftest` and `replay`: a simulated robot, every fault tried against it, and logs shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from keystride.errors import UserError


@dataclass(frozen=True)
class DeploySim:
    """A simulated Go2 that speaks the robot's protocol: `keystride deploy go2` runs against it unchanged."""

    interface: str = "lo"
    """Network interface."""

    domain: int = 0
    """DDS domain."""

    posture: Literal["lying", "standing", "upside-down"] = "standing"
    """How the robot is at first."""

    sport: bool = True
    """Whether its own motion service holds the motors at first, as on a robot that was switched on."""

    noise: bool = True
    """Whether its sensors and the motion capture are noisy."""

    brake_after: float | None = None
    """Seconds without a command after which its motors brake by themselves; without this they keep the last command."""

    latency: float = 0.001
    """Seconds that every message takes, each way."""

    loss: float = 0.0
    """Share of messages lost, each way."""

    pose_port: int = 9870
    """UDP port on this machine to which the virtual motion capture sends."""

    seed: int = 0
    """Of the noise."""

    viewer: Literal["none", "window", "browser"] = "none"
    """Show the robot: in a window, or in a browser."""

    record: Path | None = None
    """Write what really happened, 50 rows per second, as .npz at the end."""

    control: bool = False
    """Take disturbances from standard input, one JSON object per line: {"disturb": NAME, "value": VALUE, "seconds": S}."""

    def run(self) -> int:
        from keystride.deploy.sim.link import SimulatedConfig
        from keystride.deploy.sim.server import serve

        config = SimulatedConfig(
            posture=self.posture,
            sport=self.sport,
            noise=self.noise,
            brake_after=self.brake_after,
            latency=self.latency,
            loss=self.loss,
            pose_port=self.pose_port,
            seed=self.seed,
            record=self.record,
        )
        return serve(self.interface, self.domain, config, viewer=self.viewer, control=self.control)


@dataclass(frozen=True)
class DeploySelftest:
    """Try every fault against the simulated robot and print what came of each; exit code 1 when one came out wrong.

    Each row runs `keystride deploy go2` and `keystride deploy sim` as processes of their own on the loopback interface.
    """

    policy: str = "STUB-TROT"
    """A policy as for `deploy go2`; without one a stub trots."""

    only: str = ""
    """Run only the rows whose name contains this."""

    jobs: int = 2
    """Rows at a time; each needs about a core."""

    json: Path | None = None
    """Write the results as JSON."""

    markdown: bool = False
    """Print the table as Markdown."""

    def run(self) -> int:
        from keystride.deploy.selftest.runner import run_cases

        return run_cases(self.policy, self.only, self.jobs, self.json, markdown=self.markdown)


@dataclass(frozen=True)
class DeployReplay:
    """Show a flight log: a summary, a picture, and what the simulator makes of the same commands."""

    log: tyro.conf.Positional[Path]
    """Folder that `deploy go2 --log` wrote."""

    picture: Path | None = None
    """Write the picture here (.png, .svg or .pdf); by default picture.png in the log's folder."""

    viewer: Literal["none", "window", "browser"] = "none"
    """Show the logged motion as well, in real time: in a window, or in a browser."""

    def run(self) -> int:
        from keystride.deploy.log.replay import replay

        try:
            return replay(self.log, self.picture or self.log / "picture.png", self.viewer)
        except ValueError as error:
            raise UserError(str(error)) from error
