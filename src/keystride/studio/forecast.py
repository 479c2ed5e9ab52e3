"""How likely each keyframe is to be met, before anything is played: many roll-outs, each a little different."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.episodes import NEVER, Controller, World, run_episodes
from keystride.evaluation.starts import noisy_stance
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.physics.simulator import Randomization
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2

ROUND = 64  # roll-outs between two reports
ROUNDS = 4
PATH_STEPS = 4
NEVER_PUSHED = (1_000_000, 1_000_001)


@dataclass(frozen=True)
class Question:
    """What is to be forecast."""

    script: Script
    policy: str  # a name or a path
    friction: float
    number: int = 0  # to know the answer by


@dataclass(frozen=True)
class Chances:
    """Of so many roll-outs, how many met each keyframe; and the way that they took on average."""

    met: NDArray[np.int64]  # (K,)
    falls: int
    rollouts: int
    path: Floats  # (n, 2) m, every PATH_STEPS control steps from the start

    @property
    def shares(self) -> list[float]:
        return (self.met / self.rollouts).tolist()

    def __add__(self, other: "Chances") -> "Chances":
        rollouts = self.rollouts + other.rollouts
        path = (self.path * self.rollouts + other.path * other.rollouts) / rollouts
        return Chances(self.met + other.met, self.falls + other.falls, rollouts, path)


class Withdrawn(Exception):
    """The question is no longer asked."""


def slight_differences(friction: float) -> Randomization:
    """What nobody knows exactly of a robot that stands there: grip, motors, lag. No pushes."""
    return Randomization(
        friction=(0.85 * friction, 1.15 * friction),
        stiffness=(0.95, 1.05),
        damping=(0.95, 1.05),
        lag_steps=(0, 2),
        push_speed=(0.0, 0.0),
        push_turn=(0.0, 0.0),
        push_interval=NEVER_PUSHED,
    )


def roll_out(
    question: Question, controller: Controller, rollouts: int, seed: int, asked: Callable[[], bool] = lambda: True
) -> Chances:
    """Withdrawn is raised as soon as `asked` says no."""

    def progress(_: float) -> None:
        if not asked():
            raise Withdrawn

    start = noisy_stance(GO2, rollouts, np.random.default_rng(seed))
    goals = script_goals(question.script, position=np.zeros((rollouts, 2)))
    world = World(slight_differences(question.friction), seed=seed)
    result = run_episodes(controller, GO2, start, goals, world=world, progress=progress)
    path = result.trace.position[::PATH_STEPS, :, :2].mean(axis=1)
    return Chances(result.met.sum(axis=0), int((result.fell != NEVER).sum()), rollouts, path)


class Rounds:
    """Answers the latest question in a thread, more precisely with every round; older questions are dropped."""

    def __init__(self, load: Callable[[str], Controller], answer: Callable[[Question, Chances], None]) -> None:
        self._load, self._answer = cache(load), answer
        self._latest: Question | None = None
        self._unread = False
        self._closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="forecast", daemon=True)
        self._thread.start()

    def ask(self, question: Question) -> None:
        with self._news:
            self._latest, self._unread = question, True
            self._news.notify()

    def close(self) -> None:
        with self._news:
            self._latest, self._unread, self._closed = None, True, True
            self._news.notify()
        self._thread.join()

    def _work(self) -> None:
        while not self._closed:
            with self._news:
                self._news.wait_for(lambda: self._unread)
                question, self._unread = self._latest, False
            if question is not None:
                self._rounds(question)

    def _rounds(self, question: Question) -> None:
        total: Chances | None = None
        controller = self._load(question.policy)
        try:
            for seed in range(ROUNDS):
                chances = roll_out(question, controller, ROUND, seed, lambda: self._latest is question)
                total = chances if total is None else total + chances
                self._answer(question, total)
        except Withdrawn:
            return
