"""`keystride deploy`: a policy on a Go2, on a simulated one, and the self-test of the way there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from keystride.commands.errors import UserError

if TYPE_CHECKING:
    from keystride.deploy.launch import Plan

STOPPED = 3  # the robot was stopped before the script's end


@dataclass(frozen=True)
class DeployGo2:
    """Play a script on a Go2: release its sport service, stand up, wait for a start, play, lie down.

    Press Enter (or the remote's start button) to start, s (or X) to stop and lie down, any other key, Ctrl-C or the
    remote's B for the emergency stop. Exit code 3 when the robot was stopped before the script's end.
    """

    policy: str
    """A shipped policy's name, a bundle folder or an ONNX file."""

    script: Path
    """The keyframes, YAML or JSON; they begin where the robot stands."""

    interface: str = "eth0"
    """Network interface to the robot, by name or address; lo reaches the simulated robot."""

    pose: str = "sim"
    """Where the robot is: udp://HOST:PORT, optitrack://SERVER/BODY, vicon://HOST/BODY, qualisys://HOST/BODY, or sim."""

    pose_axes: Literal["z-up", "y-up"] = "z-up"
    """Which way is up for the motion capture."""

    pose_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where the base's centre is, seen from the tracked body, in base axes, m."""

    pose_yaw: float = 0.0
    """The base's heading, seen from the tracked body, degrees."""

    pose_latency: float = 0.008
    """Seconds between a pose and its arrival."""

    start_after: float | None = None
    """Start by itself after standing for so many seconds, instead of waiting for a key."""

    doubtful: bool = False
    """Play a script even where it asks for more than a Go2 does."""

    dry_run: bool = False
    """Print what would be sent, from a simulation in this process; nothing goes out on the network."""

    domain: int = 0
    """DDS domain; robots use 0."""

    settle: float = 2.0
    """Seconds of damping at the end."""

    report: Path | None = None
    """Write how it went as JSON."""

    def run(self) -> int:
        from keystride.deploy.launch import Refused
        from keystride.keyframes.problems import ScriptError
        from keystride.policy.metadata import PolicyError

        try:
            return self._dry_run() if self.dry_run else self._deploy()
        except ScriptError as error:
            raise UserError("\nerror: ".join(error.lines())) from error
        except (Refused, PolicyError, ValueError) as error:
            raise UserError(str(error)) from error

    def _plan(self) -> Plan:
        from keystride.deploy.launch import Plan
        from keystride.deploy.pose import Mounting

        return Plan(
            interface=self.interface,
            policy=self.policy,
            script=self.script,
            pose=self.pose,
            domain=self.domain,
            mounting=Mounting(self.pose_axes, self.pose_offset, self.pose_yaw),
            pose_latency=self.pose_latency,
            start_after=self.start_after,
            doubtful=self.doubtful,
            settle=self.settle,
        )

    def _deploy(self) -> int:
        from keystride.deploy.launch import deploy
        from keystride.robot.go2 import GO2

        outcome = deploy(self._plan(), GO2, self.report)
        return STOPPED if outcome.reason else 0

    def _dry_run(self) -> int:
        from keystride.deploy.dry_run import dry_run
        from keystride.robot.go2 import GO2

        return STOPPED if dry_run(self._plan(), GO2) else 0


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
    """Write what really happened, 50 rows a second, as .npz at the end."""

    control: bool = False
    """Take disturbances from standard input, a JSON object a line: {"disturb": NAME, "value": VALUE, "seconds": S}."""

    def run(self) -> int:
        from keystride.deploy.serve import serve
        from keystride.deploy.simulated_link import SimulatedConfig

        config = SimulatedConfig(
            posture=self.posture,
            sport=self.sport,
            noise=self.noise,
            latency=self.latency,
            loss=self.loss,
            pose_port=self.pose_port,
            seed=self.seed,
            record=self.record,
        )
        return serve(self.interface, self.domain, config, viewer=self.viewer, control=self.control)


@dataclass(frozen=True)
class DeploySelftest:
    """Try every fault against the simulated robot and print what came of each. Exit code 1 when one came out otherwise.

    Each row runs `keystride deploy go2` and `keystride deploy sim` as processes of their own on the loopback interface.
    """

    policy: str = "STUB-TROT"
    """A policy as for `deploy go2`; without one a stub trots."""

    only: str = ""
    """Run only the rows whose name holds this."""

    jobs: int = 2
    """Rows at a time; each needs about a core."""

    json: Path | None = None
    """Write the results as JSON."""

    markdown: bool = False
    """Print the table as Markdown."""

    def run(self) -> int:
        from keystride.deploy.selftest import run_cases

        return run_cases(self.policy, self.only, self.jobs, self.json, markdown=self.markdown)
