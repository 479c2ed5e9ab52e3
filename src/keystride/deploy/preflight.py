"""Checks before any motor moves: script, policy, pose source, network and the operator's checklist."""

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

from keystride.deploy.players import STUBS, MeasuredState, PolicyPlayer, ScriptPlayer
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.unitree.codec import LOOPBACK
from keystride.keyframes.feasibility import script_warnings
from keystride.keyframes.files import load_script
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.policy.guide import outside_training
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height

GAINS = ((1.0, 150.0), (0.1, 10.0))  # N m/rad and N m s/rad: allowed ranges of a policy's gains
FENCE_MARGIN = 1.0  # m added to the distance of the farthest keyframe
TRIALS = 5  # number of policy steps to time before the start
ANSWER = 300.0  # s to confirm the checklist

CHECKLIST = (
    "floor clear within 1 m of the path, nobody within reach of the legs",
    "robot standing or lying on its belly; on a stand the first time a policy is used",
    "battery above 30%, charger disconnected, joints cool",
    "remote in hand, thumb on B (damping, as long as this program runs)",
    "no other program or app connected to the robot",
    "motion capture tracks the robot, markers fixed to the trunk",
)


class Refused(Exception):
    """The robot was not moved; the message is one line."""


def checked_script(path: Path, robot: Robot, *, doubtful: bool) -> Script:
    script = load_script(path, robot)
    found = [f"keyframe {warning.row + 1}: {warning.message}" for warning in script_warnings(script, robot)]
    if found and not doubtful:
        raise Refused(f"{path}: {'; '.join(found)} (--doubtful plays it anyway)")
    return script


def outside(path: Path, player: ScriptPlayer, script: Script, *, allowed: bool) -> list[str]:
    """Return where a script exceeds the policy's training ranges; raise Refused unless that is allowed."""
    if not isinstance(player, PolicyPlayer):
        return []
    problems = outside_training(script, player.policy.metadata, player.robot, inbetween=player.inbetween)
    found = [f"keyframe {one.row + 1}: {one.message}" for one in problems]
    if found and not allowed:
        raise Refused(f"{path}: {'; '.join(found)} (--outside-training plays it anyway)")
    return found


def open_player(name: str, robot: Robot, interface: str, *, inbetween: bool = True) -> ScriptPlayer:
    if name in STUBS:
        if interface not in LOOPBACK:
            raise Refused(f"{name} is a test stub for {LOOPBACK[0]}, not a policy for a robot on {interface}")
        return STUBS[name](robot)
    player = PolicyPlayer(Policy.load(name, robot=robot), robot, inbetween=inbetween)
    for what, gains, (low, high) in zip(("stiffness", "damping"), astuple(player.gains), GAINS, strict=True):
        if not ((gains >= low) & (gains <= high)).all():
            raise Refused(f"{name}: {what} {gains.min():g} to {gains.max():g} is outside the range {low:g} to {high:g}")
    return player


def try_player(name: str, player: ScriptPlayer, script: Script, robot: Robot) -> float:
    """Run the policy on the beginning of the script with the real shapes; return the seconds per step."""
    height = float(standing_height(robot, robot.stance))
    base = BaseState(np.array([0.0, 0.0, height]), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3), np.zeros(3))
    state = MeasuredState(base, robot.stance.copy(), np.zeros(12))
    goals = script_goals(script, base.position[None], np.zeros(1), robot=robot)
    player.reset()
    try:
        given = [_timed(partial(player.step, state, goals, step)) for step in range(TRIALS)]
    except Exception as error:  # the exception depends on the graph and the runtime
        raise Refused(f"{name} cannot be run: {error or type(error).__name__}") from error
    for targets, _ in given:
        if targets.shape != (12,) or not np.isfinite(targets).all():
            raise Refused(f"{name} cannot be run: it returned shape {targets.shape}, expected 12 finite joint targets")
    player.reset()
    took = min(seconds for _, seconds in given)  # the slower ones may have been delayed by other programs
    if took > CONTROL_DT:
        raise Refused(
            f"{name} needs {1000 * took:.0f} ms per step on this machine, more than {1000 * CONTROL_DT:.0f} ms"
        )
    return took


def _timed(call: Callable[[], Floats]) -> tuple[Floats, float]:
    begun = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begun


def fence_around(script: Script, robot: Robot) -> float:
    """Return the largest distance from the start that the script needs, plus a margin, m."""
    goals = script_goals(script, np.zeros((1, 3)), np.zeros(1), robot=robot)
    reach = np.linalg.norm(goals.position[0, :, :2], axis=-1) * goals.presence[0, :, 0]
    return float(reach.max(initial=0.0)) + FENCE_MARGIN


def check_pose(pose: str, interface: str) -> None:
    if (pose == "sim" or pose.startswith("mock:")) and interface not in LOOPBACK:
        raise Refused(
            f"--pose {pose} works only with the simulated robot on {LOOPBACK[0]}; choose a pose source for {interface}"
        )


def check_interface(interface: str) -> None:
    import cyclonedds  # noqa: F401 (a missing extra is reported before anything else)

    names = [name for _, name in socket.if_nameindex()]
    if "." not in interface and interface not in (*names, *LOOPBACK):
        raise Refused(f"no network interface {interface}; available: {', '.join(names)}")


def confirm(terminal: int | None, say: Callable[[str], None]) -> None:
    """Ask the operator to confirm the checklist; raise Refused without a yes."""
    if terminal is None:
        raise Refused("checklist not confirmed: no terminal to ask on (--confirmed skips the question)")
    for item in CHECKLIST:
        say(f"  [ ] {item}")
    say("Confirm all items with y and Enter")
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
