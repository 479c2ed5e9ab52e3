"""Suggestions for a keyframe that is missed: more time, a shorter distance, or fewer components.

All variants of the script are simulated in parallel, each with a few slightly different robots, until the keyframe is due.
The smallest changes that seem to work are tried again with more robots: a few can all be lucky.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from keystride.evaluation.episodes import (
    Controller,
    World,
    frozen_where_diverged,
    keyframe_errors,
    make_simulator,
    met,
    noisy_stance,
)
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals
from keystride.keyframes.resolve import resolve, spots, stack
from keystride.keyframes.script import Script
from keystride.robot.description import Robot
from keystride.task.terminations import fallen

MISSED_SHARE = 0.5  # suggestions are made for a keyframe that fewer rollouts meet
ENOUGH = 0.75  # share of robots that must meet the keyframe for a variant to count
FIRST_ROBOTS, ROBOTS = 4, 16  # per variant, in the first and in the second trial
CANDIDATES = 3  # of each kind in the second trial
DELAYS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0)  # s
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)  # of the distance from the previous place
SHORTEST_OFFSET = 0.05  # m
LOOK_AHEAD = 4  # keyframes after the missed one that are simulated with it

AdviceKind = Literal["retime", "shorten", "loosen"]


@dataclass(frozen=True)
class Tip:
    """A change to one keyframe with which it was met in simulation."""

    kind: AdviceKind
    row: int
    text: str
    time: float | None = None  # s, for retime
    position: tuple[float, float] | None = None  # m, for shorten
    component: str | None = None  # for loosen


def missed_rows(shares: list[float]) -> list[int]:
    return [row for row, share in enumerate(shares) if share < MISSED_SHARE]


def coach(
    script: Script,
    robot: Robot,
    controller: Controller,
    world: World,
    row: int,
    asked: Callable[[], bool] = lambda: True,
) -> tuple[Tip, ...]:
    """Return suggestions for the keyframe at a row; none if `asked` returns False."""
    goals = resolve(script, robot)[:, : row + 1 + LOOK_AHEAD]
    variants = [*_delayed(script, goals, row), *_shortened(script, goals, row), *_loosened(script, goals, row)]
    for robots, most in ((FIRST_ROBOTS, CANDIDATES), (ROBOTS, 1)):
        if not variants:
            break
        goals = stack([variant for _, variant in variants])
        works = _try(goals, robots, row, robot, controller, world, asked)
        if works is None:
            return ()
        found = [variant for variant, good in zip(variants, works, strict=True) if good]
        kinds = dict.fromkeys(tip.kind for tip, _ in found)
        variants = [each for kind in kinds for each in [one for one in found if one[0].kind == kind][:most]]
    return tuple(tip for tip, _ in variants)  # the smallest changes come first


def _delayed(script: Script, goals: Goals, row: int) -> list[tuple[Tip, Goals]]:
    """Return variants in which the keyframe and all later ones are delayed."""
    found = []
    for delay in DELAYS:
        steps = goals.step.copy()
        steps[0, row:] += round(delay / CONTROL_DT)
        time = script.keyframes[row].time + delay
        tip = Tip("retime", row, f"reachable from {time:.1f} s", time=round(time, 2))
        found.append((tip, replace(goals, step=steps)))
    return found


def _shortened(script: Script, goals: Goals, row: int) -> list[tuple[Tip, Goals]]:
    """Return variants in which the keyframe is closer to the previous place."""
    if script.keyframes[row].position is None:
        return []
    places = spots(script)
    before = np.array([places[row - 1].x, places[row - 1].y]) if row else np.zeros(2)
    way = goals.position[0, row, :2] - before
    length = float(np.linalg.norm(way))
    found = []
    for share in SHARES if length > SHORTEST_OFFSET else ():
        position = goals.position.copy()
        position[0, row, :2] = place = before + share * way
        tip = Tip("shorten", row, f"furthest {share * length:.1f} m", position=(round(place[0], 3), round(place[1], 3)))
        found.append((tip, replace(goals, position=position)))
    return found


def _loosened(script: Script, goals: Goals, row: int) -> list[tuple[Tip, Goals]]:
    """Return variants in which one component of the keyframe is left open."""
    asks = [component for component in COMPONENTS if getattr(script.keyframes[row], component) is not None]
    found = []
    if goals.height[0, row]:
        height = goals.height.copy()
        height[0, row] = False
        tip = Tip("loosen", row, "reachable without its height", component="height")
        found.append((tip, replace(goals, height=height)))
    for component in reversed(asks) if len(asks) > 1 else ():
        presence = goals.presence.copy()
        presence[0, row, COMPONENTS.index(component)] = False
        tip = Tip("loosen", row, f"reachable without its {component}", component=component)
        found.append((tip, _without_absent(replace(goals, presence=presence))))
    return found


def _without_absent(goals: Goals) -> Goals:
    bits = goals.presence
    return replace(
        goals,
        position=goals.position * bits[..., :1],
        angles=goals.angles * bits[..., 1:4],
        posture=goals.posture * bits[..., 4:],
        height=goals.height & bits[..., 0],
    )


def _try(
    variants: Goals,
    robots: int,
    row: int,
    robot: Robot,
    controller: Controller,
    world: World,
    asked: Callable[[], bool],
) -> list[bool] | None:
    """Return for each variant whether enough robots meet the keyframe; None once `asked` returns False."""
    goals = variants[np.repeat(np.arange(len(variants.step)), robots)]  # (E, K)
    due, count = goals.step[:, row], len(goals.step)
    simulator = make_simulator(robot, count, world)
    simulator.reset(np.arange(count), noisy_stance(robot, count, np.random.default_rng(0)))
    state = simulator.state()
    action = controller.resting_action(state.joint_angles)
    good, upright = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for step in range(int(due.max())):
        if not asked():
            return None
        target, action = controller.step(state, goals, np.full(count, step), action)
        state = frozen_where_diverged(moved := simulator.advance(target), state)
        upright &= ~(fallen(robot, state) | moved.diverged)
        now = due == step + 1
        if now.any():
            errors = keyframe_errors(goals[:, row : row + 1], state.position, state.orientation, state.joint_angles)
            good |= now & met(errors)[:, 0] & upright
    return (good.reshape(-1, robots).mean(axis=1) >= ENOUGH).tolist()
