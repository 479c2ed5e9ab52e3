"""`keystride deploy go2`: play a script on a Go2; `keystride deploy guard`: brake it when that program fails."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from keystride.errors import UserError

if TYPE_CHECKING:
    from keystride.deploy.launch import Plan

EXIT_STOPPED = 3  # the robot was stopped before the script's end


@dataclass(frozen=True)
class DeployGo2:
    """Play a script on a Go2: release its motion service, stand up, wait for the start, play, lie down.

    Press Enter (or the remote's start button) to start, s (or X) to stop and lie down, any other key (or the remote's B)
    for the emergency stop. Exit code 0: the script was played. 2: refused, nothing moved. 3: the robot was stopped.
    """

    policy: str
    """A shipped policy's name, a bundle folder or an ONNX file."""

    script: Path
    """Keyframe script, YAML or JSON; it starts where the robot stands."""

    interface: str = "eth0"
    """Network interface to the robot, by name or address; lo reaches the simulated robot."""

    pose: str = "sim"
    """Pose source: odometry (from the legs), udp://HOST:PORT, optitrack://SERVER/BODY, vicon://HOST/BODY,
    qualisys://HOST/BODY, ros2:///TOPIC, or sim (simulated robot only)."""

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
    """Play a script even if it asks for more than a Go2 can do."""

    confirmed: bool = False
    """Skip the checklist."""

    fence: float | None = None
    """Largest distance from the start, m; 1 m beyond the farthest keyframe by default."""

    guard: str = ""
    """Command that starts a second guard, such as: ssh unitree@192.168.123.18 keystride deploy guard."""

    log: Path | None = None
    """Write a flight log to this folder; `keystride deploy replay` shows it."""

    restore: bool = False
    """Select the robot's motion service again after the script was played."""

    outside_training: bool = False
    """Play a script even if it exceeds the policy's training ranges."""

    inbetween: bool = True
    """Fill gaps longer than those in training with waypoints; --no-inbetween gives the policy the script alone."""

    dry_run: bool = False
    """Print what would be sent, using a simulation in this process; nothing is sent over the network."""

    domain: int = 0
    """DDS domain; robots use 0."""

    settle: float = 2.0
    """Seconds of damping at the end."""

    report: Path | None = None
    """Write a report as JSON to this file."""

    status: int | None = None
    """File descriptor to which the state is written as lines of JSON, 20 per second, for a program that watches."""

    def run(self) -> int:
        from keystride.deploy.preflight import Refused
        from keystride.keyframes.problems import ScriptError
        from keystride.policy.metadata import PolicyError

        try:
            return self._dry_run() if self.dry_run else self._deploy()
        except BrokenPipeError:  # a closed output pipe must not end in exit code 0
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
        from keystride.robot.go2 import GO2

        outcome = deploy(self._plan(), GO2, self.report)
        return 0 if outcome.played else EXIT_STOPPED

    def _dry_run(self) -> int:
        from keystride.deploy.sim.rehearsal import dry_run
        from keystride.robot.go2 import GO2

        return 0 if dry_run(self._plan(), GO2) else EXIT_STOPPED


@dataclass(frozen=True)
class DeployGuard:
    """Brake the robot when heartbeats on standard input stop.

    `deploy go2` starts a guard by itself; docs/deploy.md explains how to run a second one on the robot's own computer.
    """

    interface: str = "eth0"
    """Network interface to the robot."""

    domain: int = 0
    """DDS domain; robots use 0."""

    silence: float = 0.05
    """Seconds without a heartbeat after which it brakes."""

    def run(self) -> int:
        from keystride.deploy.guard import stand_guard

        return stand_guard(self.interface, self.domain, self.silence)
