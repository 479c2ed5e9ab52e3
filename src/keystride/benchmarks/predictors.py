"""Compare two forecasts of whether a keyframe will be met with the outcome.

One counts successes over rollouts, as the studio does. The other is the value of the goal critic for each keyframe, in the
state of the robot when the previous keyframe is due.
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
    """The interface of `ExportedCritics`: values (B, G) of G reward groups."""

    def values(self, state: Any, goals: Goals, now: Any, previous_action: Floats) -> Floats: ...


@dataclass(frozen=True)
class Predictions:
    """The outcome and both forecasts for K keyframes of E scripts."""

    met: NDArray[np.bool_]  # (E, K) outcome
    counted: Floats  # (E, K) share of rollouts that meet the keyframe
    valued: Floats  # (E, K) value of the critic


def random_scripts(count: int, random: np.random.Generator) -> list[Script]:
    """Return random scripts of three keyframes, from easy to impossible."""
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
    """Return the outcome and both forecasts; `goal` is the column of the goal group in the values of the critics."""
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
    """Return the value (E, K) of each keyframe alone, at the time when the previous one is due, or at the start."""
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
    """Return the probability that a met keyframe scores higher than a missed one (ROC AUC); ties count half."""
    good, bad = score[met], score[~met]
    if not len(good) or not len(bad):
        return float("nan")
    order = good[:, None] - bad[None, :]
    return float(((order > 0) + 0.5 * (order == 0)).mean())


def brier(share: Floats, met: NDArray[np.bool_]) -> float:
    """Return the mean squared difference between forecast and outcome: 0 is perfect, 0.25 is always forecasting one half."""
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
