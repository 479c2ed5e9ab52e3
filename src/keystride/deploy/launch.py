"""Build a deployment from the options of a command, run it and report how it ended."""

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keystride.deploy.clock import real_time
from keystride.deploy.deployment import Deployment
from keystride.deploy.fault_checks import Limits
from keystride.deploy.guard import Guard, Guards, local_guard
from keystride.deploy.log.flight import FlightLog
from keystride.deploy.log.status import StatusStream, outcome_lines, write_outcome
from keystride.deploy.players import ScriptPlayer
from keystride.deploy.pose.estimator import Estimator, EstimatorConfig
from keystride.deploy.pose.mocap import open_source
from keystride.deploy.pose.source import Mounting, PoseSource
from keystride.deploy.preflight import (
    Refused,
    check_interface,
    check_pose,
    checked_script,
    confirm,
    fence_around,
    open_player,
    outside,
    try_player,
)
from keystride.deploy.safety import Safety
from keystride.deploy.session import KEYS_HELP, Console, DeploySession, Operator, Outcome, keyboard
from keystride.deploy.unitree.codec import MOTION_SWITCHER, SPORT, decode_state
from keystride.keyframes.script import Script
from keystride.robot.description import Robot
from keystride.robot.kinematics import feet_from_joints

if TYPE_CHECKING:
    from keystride.deploy.unitree.link import Client, RobotLink

FRESH = 0.1  # s, largest age of a low state that still counts
LYING_HEIGHT = 0.17  # m, largest height of the hips above the feet when lying; a Go2 stands at 0.3
LISTEN = 0.5  # s to listen for another program's commands before sending any
GUARD_START = 60.0  # s to wait for a guard, which may be reached over ssh
RANGES = {  # allowed ranges of numeric options
    "fence": (0.1, 1000.0),
    "pose-latency": (0.0, 0.1),
    "pose-offset": (-1.0, 1.0),
    "pose-yaw": (-360.0, 360.0),
    "settle": (0.1, 60.0),
    "start-after": (0.0, 3600.0),
}


@dataclass(frozen=True)
class Plan:
    """The options of a deployment."""

    interface: str
    policy: str
    script: Path
    pose: str
    domain: int = 0
    mounting: Mounting = field(default_factory=Mounting)
    limits: Limits = field(default_factory=Limits)
    fence: float | None = None  # m; None: as wide as the script needs
    pose_latency: float = EstimatorConfig.pose_latency
    start_after: float | None = None
    doubtful: bool = False  # play a script that exceeds what a Go2 can do
    confirmed: bool = False  # skip the checklist
    guard: str = ""  # command that starts a second guard
    log: Path | None = None  # folder for the flight log
    restore: bool = False  # select the robot's motion service again at the end
    outside_training: bool = False  # play a script that exceeds the policy's training ranges
    inbetween: bool = True  # fill gaps that are longer than the policy was trained on
    settle: float = 2.0
    connect: float = 5.0  # s to wait for the robot, and for the first pose
    status: int | None = None  # file descriptor to write status lines (JSON) to


@dataclass
class Connection:
    """The link to a robot and its motion services."""

    link: "RobotLink"
    switcher: "Client"
    sport: "Client"
    released: list[str] = field(default_factory=list)  # motion services that held the motors before and were released

    def active_service(self) -> str:
        """Return the motion service that holds the motors; empty if there is none, or no answer."""
        from keystride.deploy.unitree.link import ServiceError, active_mode

        try:
            return active_mode(self.switcher, attempts=3)
        except ServiceError:
            return ""


@dataclass
class Prepared:
    """A deployment that is ready to run."""

    deployment: Deployment
    connection: Connection
    guards: Guards

    @property
    def safe(self) -> bool:
        """Whether the robot was never driven, is known to be limp, or has its motors held by its own motion service."""
        return not self.deployment.commands_sent or self.deployment.limp or bool(self.deployment.motion_service)


def limits_for(plan: Plan, script: Script, robot: Robot) -> Limits:
    """Return the plan's limits, including the fence, which by default is as wide as the script needs."""
    return replace(plan.limits, fence=fence_around(script, robot) if plan.fence is None else plan.fence)


@contextmanager
def prepared(plan: Plan, robot: Robot, say: Callable[[str], None]) -> Iterator[Prepared]:
    """Yield a deployment that is connected to a robot whose motors are released, with its guards running.

    At the end the guards are dismissed only if the robot was never driven or is in damping.
    """
    script, player = checked_plan(plan, robot, say)
    with ExitStack() as stack:
        commands = [local_guard(plan.interface, plan.domain), *([shlex.split(plan.guard)] if plan.guard else [])]
        guards = Guards([Guard(command) for command in commands])
        ready: Prepared | None = None
        stack.callback(lambda: guards.dismiss(safe=ready is None or ready.safe))
        log = FlightLog(plan.log, log_header(plan)) if plan.log is not None else None
        if log is not None:
            stack.callback(log.close)

        connection = connect(plan, stack)
        source = opened_source(plan, stack)
        wait_for_guards(guards, say)
        take_motors(connection, plan.interface, robot, say)
        deployment = Deployment(
            robot,
            connection.link,
            source,
            player,
            script,
            Safety(robot, player.gains, limits_for(plan, script, robot)),
            Estimator(EstimatorConfig(pose_latency=0.0 if plan.pose == "odometry" else plan.pose_latency)),
            say=say,
            log=log,
            heartbeat=guards.beat,
        )
        ready = Prepared(deployment, connection, guards)
        if not stack.enter_context(real_time(whole_process=True)):
            say("no permission for real-time priority: other programs may delay the command stream")
        yield ready


def checked_plan(plan: Plan, robot: Robot, say: Callable[[str], None]) -> tuple[Script, ScriptPlayer]:
    """Run all checks that need no robot, the operator's checklist last. Raise Refused for a plan that fails one."""
    check_ranges(plan)
    script = checked_script(plan.script, robot, doubtful=plan.doubtful)
    player = open_player(plan.policy, robot, plan.interface, inbetween=plan.inbetween)
    for line in outside(plan.script, player, script, allowed=plan.outside_training):
        say(f"warning: {line}")
    took = try_player(plan.policy, player, script, robot)
    say(f"{plan.policy}: {1000 * took:.1f} ms per step")
    check_pose(plan.pose, plan.interface)
    check_interface(plan.interface)
    if not plan.confirmed:
        confirm(keyboard(), say)
    return script, player


def check_ranges(plan: Plan) -> None:
    """Raise Refused for a number outside its range, before it can cause a failure while the robot moves."""
    numbers = {
        "fence": [] if plan.fence is None else [plan.fence],
        "pose-latency": [plan.pose_latency],
        "pose-offset": list(plan.mounting.offset),
        "pose-yaw": [plan.mounting.yaw],
        "settle": [plan.settle],
        "start-after": [] if plan.start_after is None else [plan.start_after],
    }
    for name, values in numbers.items():
        low, high = RANGES[name]
        for value in values:
            if not low <= value <= high:
                raise Refused(f"--{name} {value:g} is outside the range {low:g} to {high:g}")


def wait_for_guards(guards: Guards, say: Callable[[str], None]) -> None:
    for guard in guards.guards:
        if trouble := guard.wait(GUARD_START):
            raise Refused(trouble)
        say(f"guard ready: process {guard.pid}")


def connect(plan: Plan, stack: ExitStack) -> Connection:
    """Connect to the robot, leaving its motion service active."""
    from cyclonedds.core import DDSException

    from keystride.deploy.unitree.link import Client, RobotLink, ServiceError, active_mode, join

    try:
        participant = join(plan.interface, plan.domain)
    except DDSException as error:
        raise Refused(f"cannot use the network interface {plan.interface}: {error.msg}") from error
    link = RobotLink(participant)
    stack.callback(link.close)
    wait_for_robot(link, plan)
    connection = Connection(link, Client(participant, MOTION_SWITCHER), Client(participant, SPORT))
    stack.callback(connection.switcher.close)
    stack.callback(connection.sport.close)
    try:
        service = active_mode(connection.switcher)
    except ServiceError as error:
        raise Refused(str(error)) from error
    listen_for_others(link, plan.interface, service)
    return connection


def take_motors(connection: Connection, interface: str, robot: Robot, say: Callable[[str], None]) -> None:
    """Have the robot lie down and release its motors; the last step before it is driven.

    If the robot is refused after this, its motion service has already moved it, so the message says how it was left.
    """
    from keystride.deploy.unitree.link import ServiceError, release_motors

    try:
        released = release_motors(connection.switcher, connection.sport, lambda: lies(connection.link, robot))
    except ServiceError as error:
        held = connection.active_service()
        left = f"the motion service {held} holds its motors" if held else "the state of its motors is unknown"
        raise Refused(f"{error}; the robot was asked to lie down, {left}") from error
    connection.released = released
    say(f"released the motion service {', '.join(released)}" if released else "no motion service holds the motors")
    if released:  # the service no longer sends commands, so those of other programs can be detected
        try:
            listen_for_others(connection.link, interface)
        except Refused as error:
            raise Refused(f"{error}; the robot lies limp, with its motion service {', '.join(released)} off") from error


def lies(link: "RobotLink", robot: Robot) -> bool:
    """Return whether a fresh low state shows all legs folded."""
    record = link.states.value
    if record is None or link.states.age() > FRESH:
        return False
    feet = feet_from_joints(robot, decode_state(robot, record).joint_angles)  # (4, 3) base
    return bool((feet[:, 2] > -LYING_HEIGHT).all())


def wait_for_robot(link: "RobotLink", plan: Plan) -> None:
    if link.states.wait(plan.connect):
        return
    if link.corrupt:
        raise Refused(f"no valid low state on {plan.interface}: {link.corrupt} with a wrong checksum")
    raise Refused(f"no robot on {plan.interface}: no low state within {plan.connect:g} s")


def listen_for_others(link: "RobotLink", interface: str, service: str = "") -> None:
    """Raise Refused if there is another robot, or another program than the active motion service sends commands."""
    before = link.other_commands
    time.sleep(LISTEN)
    if link.other_states:
        raise Refused(f"more than one robot on {interface}: all of them would obey the commands")
    if link.other_commands > before and not service:
        raise Refused(
            f"another program sends commands to the robot on {interface}: "
            f"{link.other_commands - before} within {LISTEN:g} s"
        )


def opened_source(plan: Plan, stack: ExitStack) -> PoseSource:
    try:
        source = open_source(plan.pose, plan.mounting)
    except (ImportError, ValueError):
        raise
    except Exception as error:  # each capture library raises its own exceptions
        raise Refused(f"no poses from {plan.pose}: {error or type(error).__name__}") from error
    stack.callback(source.close)
    if not source.wait(plan.connect):
        raise Refused(f"no pose from {plan.pose} within {plan.connect:g} s")
    return source


def deploy(plan: Plan, robot: Robot, report: Path | None = None) -> Outcome:
    """Play the plan on the robot. Raise Refused if it was not moved."""
    console = Console()
    try:
        return _deploy(plan, robot, report, console.say)
    finally:
        console.close()


def _deploy(plan: Plan, robot: Robot, report: Path | None, say: Callable[[str], None]) -> Outcome:
    with prepared(plan, robot, say) as ready:
        deployment = ready.deployment
        operator = Operator(plan.start_after)
        say(KEYS_HELP if operator.terminal is not None else "no terminal: the remote's B button is the emergency stop")
        status = StatusStream(plan.status)
        with status.follow(deployment):
            outcome = DeploySession(deployment, operator, plan.settle, ready.connection.active_service).run()
        status.end(deployment, outcome)
        for line in outcome_lines(deployment, outcome):
            say(line)
        if report is not None:
            try:
                write_outcome(report, deployment, outcome)
            except OSError as error:
                say(f"report not written: {error}")
        ready.guards.dismiss(safe=ready.safe)
        say(left_in(ready, outcome, restored=restore(plan, ready, outcome, say)))
        say(f"ended in {outcome.state.value}: {outcome.reason or 'script played'}")
    return outcome


def restore(plan: Plan, ready: Prepared, outcome: Outcome, say: Callable[[str], None]) -> str:
    """Select the motion service again if asked to and the script was played; return its name."""
    from keystride.deploy.unitree.link import ServiceError, select_motion_service

    if not plan.restore:
        return ""
    if not (outcome.played and outcome.damped):
        say("motion service not selected: the robot was stopped and may not lie flat; check it first")
        return ""
    name = (ready.connection.released or ["normal"])[0]
    try:
        select_motion_service(ready.connection.switcher, name)
    except ServiceError as error:
        say(f"motion service not selected: {error}")
        return ""
    return name


def left_in(ready: Prepared, outcome: Outcome, restored: str) -> str:
    if restored:
        return f"the motion service {restored} holds the motors again"
    if ready.deployment.motion_service:
        return f"the motion service {ready.deployment.motion_service} holds the motors"
    if not outcome.damped:
        return "the robot's state is unknown and its motors may be stiff: stay clear of it and cut its power"
    return (
        "the robot lies limp: motors in damping, motion service off; "
        "to use the remote, power-cycle the robot, or run with --restore"
    )


def log_header(plan: Plan) -> dict[str, Any]:
    """Return the header of a flight log."""
    return {
        "policy": plan.policy,
        "script": str(plan.script),
        "pose": plan.pose,
        "interface": plan.interface,
        "pose_latency": plan.pose_latency,
    }
