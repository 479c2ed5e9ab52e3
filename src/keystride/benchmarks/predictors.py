"""Two ways to tell beforehand whether a keyframe will be met, measured against what then happens.

One counts over roll-outs, as the studio does. The other asks the goal critic, once for each keyframe, in the state that
the robot is in when the keyframe before it is due.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.episodes import Controller, World, exact_stance, make_simulator, noisy_stance, run_episodes
from keystride.keyframes.goals import Goals
from keystride.keyframes.resolve import resolve, stack
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.description import Floats, Robot
from keystride.studio.playback.forecast import slight_differences

KEYFRAMES_PER_SCRIPT = 3
FORECAST_FRICTION = 0.8
INTERVALS = (0.3, 1.6)  # s from one keyframe to the next
GOAL_DISTANCES = (0.05, 1.2)  # m
MAX_TURN = 1.0  # rad, either way


class ValueFunction(Protocol):
    """What `Critics` is: (B, G) values, one of them that of the goals."""

    def values(self, state: Any, goals: Goals, now: Any, previous_action: Floats) -> Floats: ...


@dataclass(frozen=True)
class Predictions:
    """For every keyframe of every script."""

    met: NDArray[np.bool_]  # (E, K) what happened
    counted: Floats  # (E, K) share of roll-outs
    valued: Floats  # (E, K) the critic's value


def random_scripts(count: int, random: np.random.Generator) -> list[Script]:
    """From easy to impossible: paths of three keyframes, whose pace is drawn at random."""
    return [_script(random) for _ in range(count)]


def predict(
    robot: Robot,
    controller: Controller,
    critics: ValueFunction,
    goal: int,
    goals: Goals,
    rollouts: int,
    seed: int = 0,
) -> Predictions:
    """`goal` is the column of the goal group among the critic's values."""
    count = len(goals.step)
    met = run_episodes(
        controller, robot, exact_stance(robot, count), goals, world=World(friction=FORECAST_FRICTION)
    ).met
    rows = np.repeat(np.arange(count), rollouts)
    start = noisy_stance(robot, len(rows), np.random.default_rng(seed))
    world = World(slight_differences(FORECAST_FRICTION), seed=seed)
    tried = run_episodes(controller, robot, start, goals[rows], world=world).met  # (E * n, K)
    counted = tried.reshape(count, rollouts, -1).mean(axis=1)
    return Predictions(met, counted, critic_values(robot, controller, critics, goal, goals))


def critic_values(robot: Robot, controller: Controller, critics: ValueFunction, goal: int, goals: Goals) -> Floats:
    """Return (E, K) each keyframe alone, seen from the moment at which the one before is due; the first from the start."""
    count, keyframes = goals.step.shape
    simulator = make_simulator(robot, count, World(friction=FORECAST_FRICTION))
    simulator.reset(np.arange(count), exact_stance(robot, count))
    state = simulator.state()
    action = controller.resting_action(state.joint_angles)
    asked = np.concatenate([np.zeros((count, 1), dtype=np.int64), goals.step[:, :-1]], axis=1)  # (E, K) when
    found = np.zeros((count, keyframes))
    for step in range(int(asked.max()) + 1):
        now = np.full(count, step)
        for k in np.flatnonzero((asked == step).any(axis=0)):
            values = critics.values(state, goals[:, k : k + 1], now, action)[:, goal]
            found[:, k] = np.where(asked[:, k] == step, values, found[:, k])
        targets, action = controller.step(state, goals, now, action)
        state = simulator.advance(targets)
    return found


def ranking(score: Floats, met: NDArray[np.bool_]) -> float:
    """Return how often a keyframe that is met scores higher than one that is not; 0.5 is chance, ties count half."""
    good, bad = score[met], score[~met]
    if not len(good) or not len(bad):
        return float("nan")
    order = good[:, None] - bad[None, :]
    return float(((order > 0) + 0.5 * (order == 0)).mean())


def brier(share: Floats, met: NDArray[np.bool_]) -> float:
    """Mean squared difference between a probability and what happened; 0 is perfect, 0.25 is saying one half."""
    return float(((share - met) ** 2).mean())


def goals_of(scripts: list[Script], robot: Robot) -> Goals:
    return stack([resolve(script, robot) for script in scripts])


def _script(random: np.random.Generator) -> Script:
    keyframes, time, yaw = [], 0.0, 0.0
    place = np.zeros(2)
    for _ in range(KEYFRAMES_PER_SCRIPT):
        time += random.uniform(*INTERVALS)
        yaw += random.uniform(-MAX_TURN, MAX_TURN)
        place = place + random.uniform(*GOAL_DISTANCES) * np.array([np.cos(yaw), np.sin(yaw)])
        keyframes.append(Keyframe(time=round(time, 2), position=(float(place[0]), float(place[1]), 0.32)))
    return Script(keyframes=tuple(keyframes))
