"""From a command line's words to a running deployment, and what is said at its end."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path

import numpy as np

from keystride.deploy.capture import open_source
from keystride.deploy.clock import real_time
from keystride.deploy.codec import LOOPBACK, MOTION_SWITCHER, SPORT
from keystride.deploy.control import Deployment, Link
from keystride.deploy.estimator import Estimator, EstimatorConfig
from keystride.deploy.guard import Guard
from keystride.deploy.operator import KEYS_HELP, Operator
from keystride.deploy.player import Player, PolicyPlayer
from keystride.deploy.pose import Mounting, PoseSource
from keystride.deploy.safety import Safety
from keystride.deploy.session import Outcome, Session
from keystride.deploy.stub import STUBS
from keystride.deploy.watches import Limits
from keystride.keyframes.feasibility import warnings
from keystride.keyframes.files import load_script
from keystride.keyframes.goals import used
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.policy.runtime import Policy
from keystride.robot.description import Robot

CONNECT = 5.0  # s to wait for the robot
GAINS = ((1.0, 150.0), (0.1, 10.0))  # N m/rad and N m s/rad that a policy may ask of the motors


class Refused(Exception):
    """Why the robot was not moved; one line."""


@dataclass(frozen=True)
class Plan:
    """What to do, and to which robot."""

    interface: str
    policy: str
    script: Path
    pose: str
    domain: int = 0
    mounting: Mounting = field(default_factory=Mounting)
    limits: Limits = field(default_factory=Limits)
    pose_latency: float = EstimatorConfig.pose_latency
    start_after: float | None = None
    doubtful: bool = False  # play a script that asks for more than a Go2 does
    settle: float = 2.0


def open_player(name: str, robot: Robot, interface: str) -> Player:
    if name in STUBS:
        if interface not in LOOPBACK:
            raise Refused(f"{name} is a stub for tests on {LOOPBACK[0]}, not a policy for a robot on {interface}")
        return STUBS[name](robot)
    player = PolicyPlayer(Policy.load(name, robot=robot))
    for what, gains, (low, high) in zip(("stiffness", "damping"), astuple(player.gains), GAINS, strict=True):
        if not ((gains >= low) & (gains <= high)).all():
            raise Refused(f"{name}: its {what} of {gains.min():g} to {gains.max():g} is outside {low:g} to {high:g}")
    return player


def checked_script(path: Path, *, doubtful: bool) -> Script:
    script = load_script(path)
    found = [f"keyframe {warning.row + 1}: {warning.message}" for warning in warnings(script)]
    if found and not doubtful:
        raise Refused(f"{path}: {'; '.join(found)} (--doubtful plays it all the same)")
    return script


@contextmanager
def prepared(plan: Plan, robot: Robot) -> Iterator[Deployment]:
    """A deployment that is connected to the robot, whose motors nobody else holds, with a guard beside it."""
    script = checked_script(plan.script, doubtful=plan.doubtful)
    player = open_player(plan.policy, robot, plan.interface)
    check_interface(plan.interface)
    with ExitStack() as stack:
        guard = Guard(plan.interface, plan.domain)
        stack.callback(guard.dismiss)
        if not stack.enter_context(real_time()):  # after the guard, which goes there by itself when it stands by
            say("no permission for real-time priority: a busy machine may disturb the command stream")
        link = connect(plan, stack)
        source = opened_source(plan, stack)
        if not guard.wait():
            raise Refused("the guard process did not start")
        say(f"guard stands by as process {guard.pid}")
        estimator = Estimator(EstimatorConfig(pose_latency=plan.pose_latency))
        safety = Safety(robot, player.gains, plan.limits)
        yield Deployment(robot, link, source, player, script, safety, estimator, say=say, guarded=guard.is_alive)


def check_interface(interface: str) -> None:
    import cyclonedds  # noqa: F401 (without it nothing of what follows makes sense)

    names = [name for _, name in socket.if_nameindex()]
    if "." not in interface and interface not in (*names, *LOOPBACK):
        raise Refused(f"no network interface {interface} here: there are {', '.join(names)}")


def connect(plan: Plan, stack: ExitStack) -> Link:
    """The link to a robot that has released its motors."""
    from cyclonedds.core import DDSException

    from keystride.deploy import services
    from keystride.deploy.link import RobotLink, join

    try:
        participant = join(plan.interface, plan.domain)
    except DDSException as error:
        raise Refused(f"cannot use the network interface {plan.interface}: {error.msg}") from error
    link = RobotLink(participant)
    stack.callback(link.close)
    if not link.states.wait(CONNECT):
        raise Refused(f"no robot on {plan.interface}: no low state within {CONNECT:g} s")
    switcher, sport = (services.Client(participant, name) for name in (MOTION_SWITCHER, SPORT))
    stack.callback(switcher.close)
    stack.callback(sport.close)
    try:
        released = services.release_motors(switcher, sport)
    except services.ServiceError as error:
        raise Refused(str(error)) from error
    say(f"released the motion service {', '.join(released)}" if released else "no motion service holds the motors")
    return link


def opened_source(plan: Plan, stack: ExitStack) -> PoseSource:
    try:
        source = open_source(plan.pose, plan.mounting)
    except (ImportError, ValueError):
        raise
    except Exception as error:  # every capture library has its own
        raise Refused(f"no poses from {plan.pose}: {error or type(error).__name__}") from error
    stack.callback(source.close)
    if not source.poses.wait(CONNECT):
        raise Refused(f"no pose from {plan.pose} within {CONNECT:g} s")
    return source


def deploy(plan: Plan, robot: Robot, report: Path | None = None) -> Outcome:
    with prepared(plan, robot) as deployment:
        say(KEYS_HELP)
        session = Session(deployment, Operator(plan.start_after), plan.settle)
        outcome = session.run()
        for line in summary(deployment, outcome):
            say(line)
        if report is not None:
            write_report(report, deployment, outcome)
    return outcome


def say(text: str) -> None:
    print(text, flush=True)


def summary(deployment: Deployment, outcome: Outcome) -> Iterator[str]:
    for arrival in deployment.arrivals:
        distance = float(np.linalg.norm(arrival.error[:3]))
        yield f"keyframe {arrival.keyframe + 1}: {distance:.3f} m off, by the robot's own estimate"
    for name, late in (("command stream", outcome.stream), ("policy", outcome.control)):
        yield f"{name}: {late.ticks} times, the latest by {1000 * late.worst:.1f} ms, {late.skipped} left out"
    yield f"ended in {outcome.state.value}: {outcome.reason or 'the script was played to its end'}"


def write_report(path: Path, deployment: Deployment, outcome: Outcome) -> None:
    goals = script_goals(deployment.script)
    content = {
        "state": outcome.state.value,
        "reason": outcome.reason,
        "keyframes": int(used(goals).sum()),
        "arrivals": [{"keyframe": a.keyframe, "step": a.step, "error": a.error.tolist()} for a in deployment.arrivals],
        "stream": asdict(outcome.stream),
        "control": asdict(outcome.control),
        "poses_not_believed": deployment.estimator.rejected,
        "messages_that_were_no_pose": deployment.source.rejected,
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=2))
    part.replace(path)
