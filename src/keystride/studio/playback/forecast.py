"""How likely each keyframe is to be met: the share of many slightly different rollouts that meet it.

A batch of rollouts keeps snapshots, so after an edit it resumes just before the first step that differs.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.episodes import (
    METRICS,
    Controller,
    Trace,
    World,
    episode_ends,
    errors_when_due,
    frozen_where_diverged,
    make_simulator,
    met,
    noisy_stance,
)
from keystride.keyframes.goals import Goals
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.physics.simulator import Randomization, State
from keystride.policy.guide import Guide, Route, guided
from keystride.robot.description import Floats, Robot
from keystride.studio.playback.coaching import Tip, coach, missed_rows
from keystride.studio.playback.controllers import Difference, first_difference, same_goals
from keystride.task.terminations import fallen

ROUND = 64  # rollouts between two answers
BATCHES = 4
MOST_ADVISED = 8  # missed keyframes after the first for which suggestions are made
PATH_STEPS = 4
FORECAST_SNAPSHOT_STEPS = 100
NEVER_PUSHED = (1_000_000, 1_000_001)
NO_FALL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Question:
    """What to forecast."""

    robot: Robot
    script: Script
    policy: str  # a name or a path
    friction: float
    number: int = 0  # identifies the answers
    inbetween: bool = True  # fill gaps longer than those in training with waypoints


@dataclass(frozen=True)
class Chances:
    """How many rollouts met each keyframe, their median errors and their mean path."""

    met: NDArray[np.int64]  # (K,)
    falls: int
    rollouts: int
    path: Floats  # (n, 2) m, every PATH_STEPS control steps from the start
    errors: Floats | None = None  # (K, 6) median, NaN where a component is absent
    tips: tuple[Tip, ...] = ()  # suggestions for missed keyframes

    @property
    def shares(self) -> list[float]:
        return (self.met / self.rollouts).tolist()


@dataclass(eq=False)
class Forecast:
    """The latest answer by the keys of the keyframes. It is stale from an edit until the next answer."""

    odds: dict[int, float] = field(default_factory=dict)
    falls: float = 0.0  # fraction of rollouts that fell
    path: Floats = field(default_factory=lambda: np.zeros((0, 2)))  # (n, 2) m
    errors: dict[int, Floats] = field(default_factory=dict)  # (6,) median, NaN where a component is absent
    tips: dict[int, tuple[Tip, ...]] = field(default_factory=dict)  # suggestions for a missed keyframe
    progress: float = 0.0  # fraction of the rollouts that are done
    stale: bool = True

    @classmethod
    def from_chances(cls, keys: Sequence[int], chances: Chances) -> "Forecast":
        return cls(
            odds=dict(zip(keys, chances.shares, strict=True)),
            falls=chances.falls / chances.rollouts,
            path=chances.path,
            errors={} if chances.errors is None else dict(zip(keys, chances.errors, strict=True)),
            tips={
                keys[row]: tuple(tip for tip in chances.tips if tip.row == row)
                for row in sorted({tip.row for tip in chances.tips})
            },
            progress=chances.rollouts / (ROUND * BATCHES),
            stale=False,
        )


class Withdrawn(Exception):
    """Another question has replaced this one."""


def slight_differences(friction: float) -> Randomization:
    """Return small variations of friction, motors and latency, without pushes."""
    return Randomization(
        friction=(0.85 * friction, 1.15 * friction),
        stiffness=(0.95, 1.05),
        damping=(0.95, 1.05),
        lag_steps=(0, 2),
        push_speed=(0.0, 0.0),
        push_turn=(0.0, 0.0),
        push_interval=NEVER_PUSHED,
    )


@dataclass
class RolloutBatch:
    """Rollouts with one seed, which can be resumed for another script."""

    seed: int
    rollouts: int = ROUND
    errors: Floats = field(default_factory=lambda: np.zeros((0, 0, len(METRICS))))  # (E, K, 6)
    fell: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )  # (E,) control step; NO_FALL if upright
    steps_simulated: int = 0  # by the last run

    def __post_init__(self) -> None:
        self._conditions: tuple[Robot, str, float, bool] | None = None
        self._goals: Goals | None = None
        self._states: list[State] = []
        self._falls: list[NDArray[np.bool_]] = []
        self._snapshots: dict[int, tuple[dict[str, object], Floats, Route | None]] = {}

    def run(self, question: Question, controller: Controller, asked: Callable[[], bool] = lambda: True) -> None:
        """Simulate from the first difference on. Raise Withdrawn as soon as `asked` returns False."""
        asked_goals = script_goals(question.script, position=np.zeros((self.rollouts, 2)), robot=question.robot)
        goals = self._resume(question, controller, asked_goals)
        end, state, action = int(episode_ends(goals).max()), self._states[-1], self._action
        self.steps_simulated = 0
        while len(self._states) <= end:
            if not asked():
                self._keep(action)
                raise Withdrawn
            step = len(self._states) - 1
            target, action = self._driver.step(state, goals, np.full(self.rollouts, step), action)
            state = frozen_where_diverged(moved := self._simulator.advance(target), state)
            self._states.append(state)
            self._falls.append(fallen(question.robot, state) | moved.diverged)
            self.steps_simulated += 1
            if step % FORECAST_SNAPSHOT_STEPS == FORECAST_SNAPSHOT_STEPS - 1:
                self._keep(action)
        self._keep(action)
        self._measure(goals, end)

    @property
    def path(self) -> Floats:
        return np.stack([state.position[:, :2].mean(axis=0) for state in self._states[: self._end + 1 : PATH_STEPS]])

    def _resume(self, question: Question, controller: Controller, goals: Goals) -> Goals:
        """Restore the last snapshot before the first difference, or the start; return the goals to continue with."""
        conditions = (question.robot, question.policy, question.friction, question.inbetween)
        if self._goals is None or conditions != self._conditions:
            world = World(slight_differences(question.friction), seed=self.seed)
            self._simulator = make_simulator(question.robot, self.rollouts, world)
            start = noisy_stance(question.robot, self.rollouts, np.random.default_rng(self.seed))
            self._simulator.reset(np.arange(self.rollouts), start)
            self._states, self._falls = [self._simulator.state()], []
            self._driver = _guided(controller, question)
            self._snapshots = {}
            self._keep(controller.resting_action(self._states[0].joint_angles))
            difference = Difference(None, ())
        elif same_goals(self._goals, goals):
            goals, difference = self._goals, Difference(None, ())  # the routes of a guide belong to these
        else:
            driver, steps = _guided(controller, question), range(len(self._states))
            difference = first_difference(driver, self._states.__getitem__, self._goals, goals, steps)
            self._snapshots = {
                step: (simulator, action, difference.routes[step])
                for step, (simulator, action, _) in self._snapshots.items()
                if step < len(difference.routes)
            }
        self._conditions, self._goals = conditions, goals
        last = len(self._states) - 1
        latest = last if difference.step is None else difference.step
        start = max(step for step in self._snapshots if step <= latest)
        self._snapshots = {step: kept for step, kept in self._snapshots.items() if step <= start}
        snapshot, self._action, route = self._snapshots[start]
        self._simulator.restore(snapshot)
        if isinstance(self._driver, Guide):
            self._driver.route = route
        del self._states[start + 1 :], self._falls[start:]
        return goals

    def _keep(self, action: Floats) -> None:
        self._action = action
        route = self._driver.route if isinstance(self._driver, Guide) else None
        self._snapshots[len(self._states) - 1] = (self._simulator.snapshot(), action, route)

    def _measure(self, goals: Goals, end: int) -> None:
        self._end = end
        states = self._states[: end + 1]
        position, orientation, joints = (
            np.stack([getattr(state, name) for state in states]) for name in ("position", "orientation", "joint_angles")
        )
        self.errors = errors_when_due(goals, Trace(position, orientation, joints, joints, position, joints))
        falls = np.stack(self._falls[:end])  # (T, E)
        self.fell = np.where(falls.any(axis=0), falls.argmax(axis=0) + 1, NO_FALL)


def summarize(batches: list[RolloutBatch], script: Script) -> Chances:
    """Summarize the rollouts of several batches."""
    steps = np.array([keyframe.step for keyframe in script.keyframes])
    errors = np.concatenate([batch.errors for batch in batches])  # (R, K, 6)
    fell = np.concatenate([batch.fell for batch in batches])  # (R,)
    reached = met(errors) & (steps < fell[:, None])
    absent = np.isnan(errors).all(axis=0)
    middle = np.median(np.where(np.isnan(errors), 0.0, errors), axis=0)
    return Chances(
        reached.sum(axis=0),
        int((fell != NO_FALL).sum()),
        len(fell),
        np.mean([batch.path for batch in batches], axis=0),
        np.where(absent, np.nan, middle),
    )


def _guided(controller: Controller, question: Question) -> Controller:
    return guided(controller, question.robot, inbetween=question.inbetween)


def roll_out(
    question: Question, controller: Controller, rollouts: int, seed: int, asked: Callable[[], bool] = lambda: True
) -> Chances:
    """Run one batch from the start. Raise Withdrawn as soon as `asked` returns False."""
    batch = RolloutBatch(seed, rollouts)
    batch.run(question, controller, asked)
    return summarize([batch], question.script)


class Rounds:
    """Answers the latest question in a thread, more precisely with every round. Older questions are dropped."""

    def __init__(self, load: Callable[[str, Robot], Controller], answer: Callable[[Question, Chances], None]) -> None:
        self._load, self._answer = cache(load), answer
        self._batches = [RolloutBatch(seed) for seed in range(BATCHES)]
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
                self._answer_in_rounds(question)

    def _answer_in_rounds(self, question: Question) -> None:
        controller = self._load(question.policy, question.robot)
        tips: tuple[Tip, ...] = ()
        coached: list[int] = []

        def asked() -> bool:
            return self._latest is question

        try:
            for count, batch in enumerate(self._batches, start=1):
                batch.run(question, controller, asked)
                chances = summarize(self._batches[:count], question.script)
                if count == 1:
                    self._answer(question, chances)
                    coached = missed_rows(chances.shares)[:1]
                    tips = self._coach(question, controller, coached, asked)
                self._answer(question, replace(chances, tips=tips))
            for row in [row for row in missed_rows(chances.shares) if row not in coached][:MOST_ADVISED]:
                more = self._coach(question, controller, [row], asked)
                tips += more
                if more:
                    self._answer(question, replace(chances, tips=tips))
        except Withdrawn:
            return

    def _coach(
        self, question: Question, controller: Controller, rows: list[int], asked: Callable[[], bool]
    ) -> tuple[Tip, ...]:
        """Return suggestions for missed keyframes. Raise Withdrawn as soon as `asked` returns False."""
        world, tips = World(slight_differences(question.friction)), ()
        for row in rows:
            tips += coach(question.script, question.robot, _guided(controller, question), world, row, asked)
        if not asked():
            raise Withdrawn
        return tips
