"""`keystride deploy`: play a script on a real or simulated Go2, inject faults, show flight logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.deploy.launch import Plan

EXIT_STOPPED = 3  # the robot was stopped before the script's end


@dataclass(frozen=True)
class DeployGo2:
    """Play a script on a Go2: release its motion service, stand up, wait for the start, play, lie down.

    Press Enter (or start on the remote) to start, s (or X) to stop and lie down, any other key (or B) for an emergency stop.
    Exit code 0: the script was played. 2: refused, no motor was driven. 3: the robot was stopped.

    Try it without a robot, first in this process, then against a simulated robot in another terminal:
    `keystride deploy go2 --policy go2 --script walk --dry-run`;
    `keystride deploy sim`, then `keystride deploy go2 --policy go2 --script walk --interface lo`.
    """

    policy: str
    """Name of a built-in policy, a bundle folder or an ONNX file."""

    script: Path
    """Keyframe script, YAML or JSON, or the name of an example such as walk. It starts where the robot stands."""

    interface: str = "eth0"
    """Network interface to the robot, by name or address; lo reaches the simulated robot."""

    pose: str = "sim"
    """Pose source: odometry (from the legs), sim (simulated robot only), or a motion-capture system.
    Systems: udp://HOST:PORT, optitrack://SERVER/BODY, vicon://HOST/BODY, qualisys://HOST/BODY, ros2:///TOPIC."""

    pose_axes: Literal["z-up", "y-up"] = "z-up"
    """Up axis of the motion-capture system."""

    pose_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position of the base centre relative to the tracked body, in base axes, m."""

    pose_yaw: float = 0.0
    """Heading of the base relative to the tracked body, degrees."""

    pose_latency: float = 0.008
    """Seconds from the capture of a pose to its arrival."""

    start_after: float | None = None
    """Start automatically after standing for this many seconds, instead of waiting for a key."""

    doubtful: bool = False
    """Play the script even if it exceeds what a Go2 can do."""

    confirmed: bool = False
    """Skip the checklist."""

    fence: float | None = None
    """Largest allowed distance from the start, m. Default: 1 m beyond the farthest keyframe."""

    guard: str = ""
    """Command that starts a second guard, such as: ssh unitree@192.168.123.18 keystride deploy guard."""

    log: Path | None = None
    """Write a flight log to this folder; `keystride deploy replay` shows it."""

    restore: bool = False
    """Select the robot's motion service again after the script was played."""

    outside_training: bool = False
    """Play the script even if it exceeds the policy's training ranges."""

    inbetween: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Show the policy the script alone, without waypoints in gaps longer than it was trained on."""

    dry_run: bool = False
    """Play the script in a simulation in this process and print what would be sent. Nothing goes over the network."""

    domain: int = 0
    """DDS domain; robots use 0."""

    settle: float = 2.0
    """Seconds of damping at the end."""

    report: Path | None = None
    """Write a report as JSON to this file."""

    status: int | None = None
    """File descriptor to write the state to, as lines of JSON at 20 Hz, for a supervising program."""

    def run(self) -> int:
        from keystride.deploy.preflight import Refused
        from keystride.keyframes.document import ScriptError
        from keystride.policy.bundle import PolicyError

        try:
            return self._dry_run() if self.dry_run else self._deploy()
        except BrokenPipeError:  # main() would return exit code 0
            return EXIT_STOPPED
        except ScriptError as error:
            raise UserError("\nerror: ".join(error.lines())) from error
        except (Refused, PolicyError, ValueError) as error:
            raise UserError(str(error)) from error

    def _plan(self) -> Plan:
        from keystride.deploy.launch import Plan
        from keystride.deploy.pose.source import Mounting

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
            confirmed=self.confirmed,
            fence=self.fence,
            guard=self.guard,
            log=self.log,
            restore=self.restore,
            outside_training=self.outside_training,
            inbetween=self.inbetween,
            settle=self.settle,
            status=self.status,
        )

    def _deploy(self) -> int:
        from keystride.deploy.launch import deploy
        from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot

        outcome = deploy(self._plan(), load_robot(DEFAULT_ROBOT), self.report)
        return 0 if outcome.played else EXIT_STOPPED

    def _dry_run(self) -> int:
        from keystride.deploy.sim.rehearsal import dry_run
        from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot

        return 0 if dry_run(self._plan(), load_robot(DEFAULT_ROBOT)) else EXIT_STOPPED


@dataclass(frozen=True)
class DeployGuard:
    """Brake the robot when heartbeats on standard input stop.

    Every deployment starts a guard. docs/deploy.md explains how to run a second one on the robot's computer.
    """

    interface: str = "eth0"
    """Network interface to the robot."""

    domain: int = 0
    """DDS domain; robots use 0."""

    silence: float = 0.045
    """Seconds without a heartbeat before it brakes, 0.02 to 0.2."""

    def run(self) -> int:
        from keystride.deploy.guard import stand_guard

        try:
            return stand_guard(self.interface, self.domain, self.silence)
        except ValueError as error:
            raise UserError(str(error)) from error


@dataclass(frozen=True)
class DeploySim:
    """Run a simulated Go2 that speaks the robot's protocol: `keystride deploy go2` works with it unchanged."""

    interface: str = "lo"
    """Network interface."""

    domain: int = 0
    """DDS domain."""

    posture: Literal["lying", "standing", "upside-down"] = "standing"
    """Initial posture."""

    sport: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Start with the motors free; otherwise the motion service holds them, as it does after a robot is switched on."""

    noise: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    """Simulate the sensors and the motion capture without noise."""

    brake_after: float | None = None
    """Seconds without a command before its motors brake by themselves. By default they keep the last command."""

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
        from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot

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
        return serve(
            load_robot(DEFAULT_ROBOT), self.interface, self.domain, config, viewer=self.viewer, control=self.control
        )


@dataclass(frozen=True)
class DeploySelftest:
    """Inject every fault into the simulated robot and print the outcomes; exit with code 1 if any is not as expected.

    Each case runs `keystride deploy go2` and `keystride deploy sim` as separate processes on the loopback interface.
    """

    policy: str = "STUB-TROT"
    """Policy to test, as for `deploy go2`. Default: a stub that trots."""

    only: str = ""
    """Run only the cases whose name contains this text."""

    jobs: int | None = None
    """Number of cases to run in parallel; each needs 0.6 of a processor.
    No more run at once than the processors allow, even in several self-tests. Default: as many as idle processors allow, 2 to 8."""

    json: Path | None = None
    """Write the results as JSON to this file."""

    markdown: bool = False
    """Print the table as Markdown."""

    def run(self) -> int:
        from keystride.deploy.selftest.runner import run_cases
        from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot

        return run_cases(
            load_robot(DEFAULT_ROBOT), self.policy, self.only, self.jobs, self.json, markdown=self.markdown
        )


@dataclass(frozen=True)
class DeployReplay:
    """Show a flight log: print a summary, plot it, and play the same commands against the simulator."""

    log: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG")]
    """Folder written by `deploy go2 --log`."""

    picture: Path | None = None
    """File for the plot (.png, .svg or .pdf). Default: picture.png in the folder of the log."""

    viewer: Literal["none", "window", "browser"] = "none"
    """Also show the logged motion in real time, in a window or a browser."""

    def run(self) -> int:
        from keystride.deploy.log.replay import replay
        from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot

        try:
            return replay(self.log, load_robot(DEFAULT_ROBOT), self.picture or self.log / "picture.png", self.viewer)
        except ValueError as error:
            raise UserError(str(error)) from error
