"""What is checked before a motor moves: the script, the policy, the pose source, the network, and the operator."""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from pathlib import Path

import numpy as np

from keystride.deploy.player import Player, PolicyPlayer, RobotState
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.stub import STUBS
from keystride.deploy.unitree.codec import LOOPBACK
from keystride.keyframes.feasibility import warnings
from keystride.keyframes.files import load_script
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.policy.outside import outside_training
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height

GAINS = ((1.0, 150.0), (0.1, 10.0))  # N m/rad and N m s/rad that a policy may ask of the motors
FENCE_MARGIN = 1.0  # m beyond the script's furthest keyframe
TRIALS = 5  # steps of the policy
ANSWER = 300.0  # s to go through the checklist

CHECKLIST = (
    "floor clear for 1 m around the path, nobody within reach of the legs",
    "robot on its feet or lying on its belly; on a stand for the first time with this policy",
    "battery above 30%, no charger connected, joints cool",
    "remote in a hand, thumb at B: damping for as long as this program runs",
    "no other program connected to the robot, app closed",
    "motion capture sees the robot, and its markers are fixed to the trunk",
)


class Refused(Exception):
    """Why the robot was not moved; one line."""


def checked_script(path: Path, *, doubtful: bool) -> Script:
    script = load_script(path)
    found = [f"keyframe {warning.row + 1}: {warning.message}" for warning in warnings(script)]
    if found and not doubtful:
        raise Refused(f"{path}: {'; '.join(found)} (--doubtful plays it all the same)")
    return script


def outside(path: Path, player: Player, script: Script, *, allowed: bool) -> list[str]:
    """Return where a script leaves what the policy was trained on; refuse it unless that is allowed."""
    if not isinstance(player, PolicyPlayer):
        return []
    problems = outside_training(script, player.policy.metadata, inbetween=player.inbetween)
    found = [f"keyframe {one.row + 1}: {one.message}" for one in problems]
    if found and not allowed:
        raise Refused(f"{path}: {'; '.join(found)} (--outside-training plays it all the same)")
    return found


def open_player(name: str, robot: Robot, interface: str, *, inbetween: bool = True) -> Player:
    if name in STUBS:
        if interface not in LOOPBACK:
            raise Refused(f"{name} is a stub for tests on {LOOPBACK[0]}, not a policy for a robot on {interface}")
        return STUBS[name](robot)
    player = PolicyPlayer(Policy.load(name, robot=robot), inbetween=inbetween)
    for what, gains, (low, high) in zip(("stiffness", "damping"), astuple(player.gains), GAINS, strict=True):
        if not ((gains >= low) & (gains <= high)).all():
            raise Refused(f"{name}: its {what} of {gains.min():g} to {gains.max():g} is outside {low:g} to {high:g}")
    return player


def try_player(name: str, player: Player, script: Script, robot: Robot) -> float:
    """Run the policy on the script's beginning, as it will be run; return the seconds that a step takes."""
    height = float(standing_height(robot, robot.stance))
    base = BaseState(np.array([0.0, 0.0, height]), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3), np.zeros(3))
    state = RobotState(base, robot.stance.copy(), np.zeros(12))
    goals = script_goals(script, base.position[None], np.zeros(1))
    player.reset()
    try:
        given = [_timed(partial(player.step, state, goals, step)) for step in range(TRIALS)]
    except Exception as error:  # whatever a graph or its runtime may raise
        raise Refused(f"{name} cannot be run: {error or type(error).__name__}") from error
    for targets, _ in given:
        if targets.shape != (12,) or not np.isfinite(targets).all():
            raise Refused(f"{name} cannot be run: it gives {targets.shape} numbers, expected 12 finite joint targets")
    player.reset()
    took = min(seconds for _, seconds in given)  # the machine may be busy with something else
    if took > CONTROL_DT:
        raise Refused(f"{name} takes {1000 * took:.0f} ms for a step of {1000 * CONTROL_DT:.0f} ms on this machine")
    return took


def _timed(call: Callable[[], Floats]) -> tuple[Floats, float]:
    begun = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begun


def fence_around(script: Script) -> float:
    """Return the distance from the start that the script needs, with a margin, m."""
    goals = script_goals(script, np.zeros((1, 3)), np.zeros(1))
    reach = np.linalg.norm(goals.position[0, :, :2], axis=-1) * goals.presence[0, :, 0]
    return float(reach.max(initial=0.0)) + FENCE_MARGIN


def check_pose(pose: str, interface: str) -> None:
    if pose == "sim" and interface not in LOOPBACK:
        raise Refused(f"--pose sim is the simulated robot's, on {LOOPBACK[0]}; a robot on {interface} needs a real one")


def check_interface(interface: str) -> None:
    import cyclonedds  # noqa: F401 (without it nothing of what follows makes sense)

    names = [name for _, name in socket.if_nameindex()]
    if "." not in interface and interface not in (*names, *LOOPBACK):
        raise Refused(f"no network interface {interface} here: there are {', '.join(names)}")


def confirm(terminal: int | None, say: Callable[[str], None]) -> None:
    """Have the operator go through the checklist."""
    if terminal is None:
        raise Refused(
            "checklist not confirmed: there is no terminal to ask at (--confirmed says that it was gone through)"
        )
    for item in CHECKLIST:
        say(f"  [ ] {item}")
    say("Confirm all of it with y and Enter")
    if _answer(terminal) not in ("y", "yes"):
        raise Refused("checklist not confirmed")


def _answer(terminal: int) -> str:
    text, until = b"", time.monotonic() + ANSWER
    with contextlib.suppress(OSError):
        while b"\n" not in text and select.select([terminal], [], [], max(until - time.monotonic(), 0.0))[0]:
            data = os.read(terminal, 256)
            if not data:
                break
            text += data
    return text.decode(errors="replace").strip().lower()
