"""`keystride deploy sim`, `selftest` and `replay`: a simulated robot, fault injection and flight logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from keystride.errors import UserError


@dataclass(frozen=True)
class DeploySim:
    """Run a simulated Go2 that speaks the robot's protocol: `keystride deploy go2` works with it unchanged."""

    interface: str = "lo"
    """Network interface."""

    domain: int = 0
    """DDS domain."""

    posture: Literal["lying", "standing", "upside-down"] = "standing"
    """Initial posture."""

    sport: bool = True
    """Whether its motion service holds the motors at first, as after switching a robot on."""

    noise: bool = True
    """Add noise to its sensors and the motion capture."""

    brake_after: float | None = None
    """Seconds without a command after which its motors brake by themselves; by default they keep the last command."""

    latency: float = 0.001
    """Latency of every message, each way, s."""

    loss: float = 0.0
    """Share of messages lost, each way."""

    pose_port: int = 9870
    """UDP port on this machine that the virtual motion capture sends to."""

    seed: int = 0
    """Seed of the noise."""

    viewer: Literal["none", "window", "browser"] = "none"
    """Show the robot in a window or a browser."""

    record: Path | None = None
    """Write the true states and commands, 50 rows per second, to this .npz file at the end."""

    control: bool = False
    """Read disturbances from standard input, one JSON object per line: {"disturb": NAME, "value": VALUE, "seconds": S}."""

    def run(self) -> int:
        from keystride.deploy.sim.server import SimulatedConfig, serve
        from keystride.robot.go2 import GO2

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
        return serve(GO2, self.interface, self.domain, config, viewer=self.viewer, control=self.control)


@dataclass(frozen=True)
class DeploySelftest:
    """Inject every fault into the simulated robot and print the outcomes; exit code 1 if any is not as expected.

    Each row runs `keystride deploy go2` and `keystride deploy sim` as processes of their own on the loopback interface.
    """

    policy: str = "STUB-TROT"
    """A policy as for `deploy go2`; by default a stub that trots."""

    only: str = ""
    """Run only the rows whose name contains this."""

    jobs: int = 2
    """Rows to run in parallel; each needs about one core."""

    json: Path | None = None
    """Write the results as JSON."""

    markdown: bool = False
    """Print the table as Markdown."""

    def run(self) -> int:
        from keystride.deploy.selftest.runner import run_cases
        from keystride.robot.go2 import GO2

        return run_cases(GO2, self.policy, self.only, self.jobs, self.json, markdown=self.markdown)


@dataclass(frozen=True)
class DeployReplay:
    """Show a flight log: print a summary, draw a picture, and play the same commands against the simulator."""

    log: tyro.conf.Positional[Path]
    """Folder written by `deploy go2 --log`."""

    picture: Path | None = None
    """File for the picture (.png, .svg or .pdf); picture.png in the log's folder by default."""

    viewer: Literal["none", "window", "browser"] = "none"
    """Also show the logged motion in real time, in a window or a browser."""

    def run(self) -> int:
        from keystride.deploy.log.replay import replay
        from keystride.robot.go2 import GO2

        try:
            return replay(self.log, GO2, self.picture or self.log / "picture.png", self.viewer)
        except ValueError as error:
            raise UserError(str(error)) from error
