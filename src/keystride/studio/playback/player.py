"""A simulation with a play head. What is shown at the head is always what the script leads to.

Everything is deterministic: going back reads the trajectory, going forward simulates. After an edit the simulation
resumes from the last snapshot before the first step at which the controller sees a difference.
The player itself has no clock; a `PlaybackClock` says how many control steps are due.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from keystride.evaluation.episodes import (
    NEVER_FELL,
    Controller,
    EpisodeRollout,
    episode_ends,
    exact_stance,
    keyframe_errors,
    met,
)
from keystride.keyframes.goals import CONTROL_DT, Goals, empty_goals
from keystride.physics.simulator import CpuSimulator, State
from keystride.policy.guide import Guide, Route, guided
from keystride.robot.description import Floats, Robot
from keystride.studio.playback.controllers import first_difference, same_goals
from keystride.studio.playback.trajectory_buffer import RobotPose, TrajectoryBuffer
from keystride.task.terminations import fallen

MAX_DELAY = 0.5  # s; longer delays are dropped, so that the robot does not leap ahead after a stall
SNAPSHOT_STEPS = 50
IDLE_END = 100  # control steps to play when there is no keyframe
HERE = np.arange(1)


@dataclass
class PlaybackClock:
    speed: float = 1.0
    asked: float = 0.0  # control steps that have become due in total
    given: int = 0  # control steps done of these
    _debt: float = 0.0
    _last: float | None = None

    def start(self, now: float) -> None:
        self._last, self._debt = now, 0.0

    def due(self, now: float) -> int:
        """Return the whole control steps due since the last call; `now` is in seconds."""
        elapsed = now - (now if self._last is None else self._last)
        self._last = now
        self.asked += elapsed * self.speed / CONTROL_DT
        self._debt += min(elapsed, MAX_DELAY) * self.speed / CONTROL_DT
        steps = int(self._debt + 1e-9)
        self._debt -= steps
        return steps

    @property
    def ratio(self) -> float:
        """Ratio of steps done to steps due."""
        return self.given / self.asked if self.asked >= 1 else 1.0


@dataclass(frozen=True)
class _Snapshot:
    """A state from which the simulation can be resumed."""

    simulator: dict[str, object]
    action: Floats
    route: Route | None


@dataclass(frozen=True)
class Conditions:
    """Controller and friction from some control step on."""

    controller: Controller
    friction: float


class Player:
    """The simulation of one robot. `head` is the control step that is shown; `goals` is a batch of one."""

    def __init__(self, robot: Robot, controller: Controller, friction: float, *, inbetween: bool = True) -> None:
        self._robot = robot
        self.inbetween = inbetween  # fill gaps longer than those in training with waypoints
        self.goals = empty_goals(1, 1)
        self.head = 0
        self.pushes: dict[int, Floats] = {}  # control step, (3,) m/s
        self.conditions = {0: Conditions(controller, friction)}  # by the control step from which they hold
        self.edited_on_the_way = False  # whether the script was edited during playback
        self._simulator = CpuSimulator(robot, 1, threads=1)
        self.rewind()

    @property
    def controller(self) -> Controller:
        """The latest controller."""
        return self.conditions[max(self.conditions)].controller

    @property
    def friction(self) -> float:
        return self.conditions[max(self.conditions)].friction

    @property
    def recorded(self) -> int:
        """Last control step that has been simulated."""
        return self.trajectory.last

    @property
    def end(self) -> int:
        """Control step at which the pass ends, one second after the last keyframe."""
        return _end(self.goals)

    @property
    def finished(self) -> bool:
        return self.head >= self.end

    @property
    def waiting(self) -> bool:
        """Whether the head is ahead of the simulation."""
        return self.recorded < min(self.head, self.end)

    def rewind(self) -> None:
        """Discard the simulation; keep pushes and conditions."""
        self.trajectory, self._snapshots, self.fell = TrajectoryBuffer(), {}, NEVER_FELL
        self._verdicts: dict[int, bool] = {}
        self.edited_on_the_way = False
        self._simulator.reset(HERE, exact_stance(self._robot))
        self._simulator.set_friction(self.conditions[0].friction)
        self._state = self._simulator.state()
        self._drivers = {0: self._guided(self.conditions[0])}  # by the step from which they drive
        self._action = self._drivers[0].resting_action(self._state.joint_angles)
        self.trajectory.append(self._state)
        self._snapshots[0] = _Snapshot(self._simulator.snapshot(), self._action, None)

    def restart(self) -> None:
        """Begin a new pass from the start, without pushes, under the latest conditions."""
        fresh = not self.pushes and len(self.conditions) == 1 and not self.edited_on_the_way
        self.head = 0
        self.pushes.clear()
        self.conditions = {0: self.conditions[max(self.conditions)]}
        if not fresh:
            self.rewind()

    def set_goals(self, goals: Goals | None, *, live: bool) -> None:
        """Set another script. If `live`, keep the simulation up to the head; otherwise simulate the past again."""
        goals = empty_goals(1, 1) if goals is None else goals
        self._verdicts.clear()
        if live:
            self._cut(self.head)
            self.goals, self.edited_on_the_way = goals, True
        elif self.edited_on_the_way:
            self.goals = goals
            self.rewind()
        elif not same_goals(self.goals, goals):
            self._resume(goals)

    def _resume(self, goals: Goals) -> None:
        """Keep the simulation up to the first step at which its controllers see a difference between the scripts."""
        starts = [*(at for at in sorted(self.conditions) if at <= self.recorded), self.recorded + 1]
        routes: list[Route | None] = []
        first = self.recorded
        for at, until in pairwise(starts):
            guide = self._guided(self.conditions[at])
            found = first_difference(guide, self.trajectory.state, self.goals, goals, range(at, until))
            routes += found.routes
            if found.step is not None:
                first = found.step
                break
        self._cut(min(first, _end(goals)))
        self.goals = goals
        self._snapshots = {step: replace(kept, route=routes[step]) for step, kept in self._snapshots.items()}
        driver = self._driver(self.recorded)
        if isinstance(driver, Guide):
            driver.route = routes[self.recorded]

    def set_controller(self, controller: Controller) -> None:
        """Set the controller from the head on."""
        self._set_conditions(Conditions(controller, self.friction))

    def set_friction(self, friction: float) -> None:
        """Set the friction from the head on."""
        self._set_conditions(Conditions(self.controller, friction))

    def _set_conditions(self, conditions: Conditions) -> None:
        step = min(self.head, self.end)
        self._cut(step)
        self.conditions = {at: old for at, old in self.conditions.items() if at < step} | {step: conditions}
        self._drivers = {at: driver for at, driver in self._drivers.items() if at < step}
        if step == 0:
            self.rewind()

    def seek(self, step: int) -> None:
        self.head = max(step, 0)

    def catch_up(self, seconds: float) -> bool:
        """Simulate towards the head for at most about this long; return whether it was reached."""
        deadline = time.perf_counter() + seconds
        while self.waiting and time.perf_counter() < deadline:
            self._simulate()
        return not self.waiting

    def push(self, velocity: Floats) -> None:
        """Add a velocity (3,) in m/s to the base at the head and discard the simulation after it."""
        step = min(self.head, self.end)
        self._cut(step)
        self.pushes = {at: push for at, push in self.pushes.items() if at <= step}
        self.pushes[step] = self.pushes.get(step, np.zeros(3)) + velocity

    def verdicts(self) -> list[bool | None]:
        """Return for each keyframe whether it was met; None if the head or the simulation has not reached it."""
        reached = min(self.head, self.recorded)
        return [self._verdict(row) if step <= reached else None for row, step in enumerate(self.goals.step[0].tolist())]

    def pose(self) -> RobotPose:
        return self.trajectory.pose(self.head)

    def rollout(self) -> EpisodeRollout:
        """Return the simulation so far in the format of evaluation."""
        return EpisodeRollout(self.goals, self.trajectory.trace(), np.array([self.end]), np.array([self.fell]))

    @property
    def waypoints(self) -> Floats:
        """Currently planned waypoints (n, 3): x, y, yaw."""
        route = self._route
        return np.zeros((0, 3)) if route is None else route.plan.path[0][route.plan.soft[0]]

    @property
    def _route(self) -> Route | None:
        driver = self._driver(self.recorded)
        return driver.route if isinstance(driver, Guide) else None

    def _guided(self, conditions: Conditions) -> Controller:
        return guided(conditions.controller, self._robot, inbetween=self.inbetween)

    def _driver(self, step: int) -> Controller:
        """Return the controller at a step, with waypoints; there is one per change of conditions."""
        at = max(at for at in self.conditions if at <= step)
        if at not in self._drivers:
            self._drivers[at] = self._guided(self.conditions[at])
        return self._drivers[at]

    def _verdict(self, row: int) -> bool:
        if row not in self._verdicts:
            pose, step = self.trajectory.pose(int(self.goals.step[0, row])), int(self.goals.step[0, row])
            errors = keyframe_errors(
                self.goals[:, row : row + 1], pose.position[None], pose.orientation[None], pose.joints[None]
            )
            upright = self.fell == NEVER_FELL or step < self.fell
            self._verdicts[row] = upright and bool(met(errors)[0, 0])
        return self._verdicts[row]

    def _simulate(self) -> None:
        step = self.recorded
        if step in self.conditions:
            self._simulator.set_friction(self.conditions[step].friction)
        targets, action = self._driver(step).step(self._state, self.goals, np.array([step]), self._action)
        self.trajectory.choose(targets[0], action[0])
        self._action = action
        self._advance(targets)
        if self.recorded % SNAPSHOT_STEPS == 0:
            self._snapshots[self.recorded] = _Snapshot(self._simulator.snapshot(), self._action, self._route)

    def _advance(self, targets: Floats) -> None:
        push = self.pushes.get(self.recorded)
        if push is not None:
            self._simulator.push(HERE, push[None], np.zeros((1, 3)))
        self._see(self._simulator.advance(targets))

    def _see(self, state: State) -> None:
        if not state.diverged[0]:  # a diverged simulation stays at its last valid state
            self._state = state
        self.trajectory.append(self._state)
        if self.fell == NEVER_FELL and (state.diverged[0] or fallen(self._robot, self._state)[0]):
            self.fell = self.recorded

    def _cut(self, step: int) -> None:
        """Truncate the simulation to a step; do nothing if it has not been reached."""
        if step >= self.recorded:
            return
        self._verdicts.clear()
        start = max(kept for kept in self._snapshots if kept <= step)
        self._snapshots = {kept: snapshot for kept, snapshot in self._snapshots.items() if kept <= start}
        self._simulator.restore(self._snapshots[start].simulator)
        self._simulator.set_friction(self.conditions[max(at for at in self.conditions if at <= start)].friction)
        self._action = self._snapshots[start].action
        self._drivers = {at: driver for at, driver in self._drivers.items() if at <= start}
        driver = self._driver(start)
        if isinstance(driver, Guide):
            driver.route = self._snapshots[start].route
        self._state = self._simulator.state()
        targets = self.trajectory.column("joint_targets")[start:step].copy()
        actions = self.trajectory.column("action")[start:step].copy()
        self.trajectory.cut(start)
        self.fell = self.fell if self.fell <= start else NEVER_FELL
        for target, action in zip(targets, actions, strict=True):
            if self.recorded in self.conditions:
                self._simulator.set_friction(self.conditions[self.recorded].friction)
            driver = self._driver(self.recorded)
            if isinstance(driver, Guide):  # it may have changed its route since the snapshot
                driver.seen(self._state, self.goals, np.array([self.recorded]))
            self.trajectory.choose(target, action)
            self._action = action[None]
            self._advance(target[None])


def _end(goals: Goals) -> int:
    return int(episode_ends(goals)[0]) if goals.presence.any() else IDLE_END


def keyframe_states(steps: Sequence[int], met: Sequence[bool | None]) -> list[str]:
    """Return the state of each keyframe. `met` is None for those still ahead, the first of which is active."""
    coming = [row for row in np.argsort(steps) if met[row] is None]
    active = coming[0] if coming else None
    words = {None: "coming", True: "met", False: "missed"}
    return ["active" if row == active else words[verdict] for row, verdict in enumerate(met)]
