"""The keyframe task for many robots at once."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride.keyframes.goals import (
    COMPONENTS,
    CONTROL_DT,
    Goals,
    empty_goals,
    goal_errors,
    goal_observation,
    next_only,
    used,
    visible,
)
from keystride.motion.library import Library
from keystride.physics.simulator import Simulator, State
from keystride.robot.description import Floats, Robot
from keystride.task import rewards
from keystride.task.config import TaskConfig
from keystride.task.ends import at_joint_limit, fallen
from keystride.task.observations import features_of_library, features_of_state, state_observation
from keystride.task.sampling import EpisodeSampler

Single = NDArray[np.float32]
MET = 0.2  # m: a keyframe nearer than this counts as met in the log
SMOOTHING = 0.98  # of the errors that the kernel widths follow, an update


@dataclass(frozen=True)
class Observation:
    state: Single  # (E, 46)
    goals: Single  # (E, K, 24)
    visible: NDArray[np.bool_]  # (E, K)


@dataclass(frozen=True)
class Step:
    """What a control step brought."""

    observation: Observation  # after restarts
    arrived: Observation  # of the truncated environments alone, before their restart: time-outs bootstrap from it
    rewards: dict[str, Single]  # (E,) each; the style group is the discriminator's
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    transition: Single  # (E, 2 x 46) style features before and after, the latter before restarts


def joint_targets(robot: Robot, action: Floats) -> Floats:
    """Joint targets around the stance, inside the joints' limits; rad."""
    return np.clip(robot.stance + robot.action_scale * action, robot.lower, robot.upper)


class KeyframeEnvironment:
    def __init__(
        self, robot: Robot, physics: Simulator, library: Library, config: TaskConfig, *, seed: int = 0
    ) -> None:
        self.robot, self.physics, self.config = robot, physics, config
        self.sampler = EpisodeSampler(robot, library, config)
        self.library_features = features_of_library(library).astype(np.float32)
        self._library = library
        self._random = np.random.default_rng(seed)
        count = physics.environments
        self._goals = empty_goals(count, config.max_keyframes)
        self._now, self._end = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._action = np.zeros((count, len(robot.joint_names)))
        self._random_share = config.ranges.random_share[0]
        self._reached = rewards.paper_widths(config.goal_widths) * config.goal_widths.start
        self._tally: dict[str, tuple[float, float]] = {}
        self._state = physics.state()
        self._features = features_of_state(self._state)
        self._restart(np.arange(count))
        # Environments that all start together make every curve oscillate.
        self._end = self._random.integers(1, self._end + 1)

    def step(self, action: Single) -> Step:
        before, previous, features = self._state, self._action, self._features
        self._action = action.astype(np.float64)
        self._state = _finite(self.physics.advance(joint_targets(self.robot, self._action)), before)
        self._features = features_of_state(self._state)
        self._now += 1
        earned = self._rewards(before, previous)
        terminated, truncated = self._ends()
        transition = np.concatenate([features, self._features], axis=1).astype(np.float32)
        arrived = self.observe(np.flatnonzero(truncated))
        self._restart(np.flatnonzero(terminated | truncated))
        return Step(self.observe(), arrived, earned, terminated, truncated, transition)

    def observe(self, rows: NDArray[np.intp] | slice = slice(None)) -> Observation:
        state, goals, now = _rows(self._state, rows), self._goals[rows], self._now[rows]
        wait = (goals.step - now[:, None]) * CONTROL_DT  # (E, K) s
        sight = visible if self.config.see == "all" else next_only
        own = state_observation(
            state.orientation,
            state.position[:, 2],
            state.base_velocity,
            state.angular_velocity,
            state.joint_angles,
            state.joint_velocities,
            self._action[rows],
        )
        ahead = goal_observation(goals, wait, state.position, state.orientation, state.joint_angles)
        return Observation(own.astype(np.float32), ahead.astype(np.float32), sight(goals, now))

    def real_transitions(self, count: int) -> Single:
        """(n, 2 x 46) style features of successive frames of the clips."""
        first = self._library.draw(self._random, count, ahead=1)
        return np.concatenate([self.library_features[first], self.library_features[first + 1]], axis=1)

    def metrics(self) -> dict[str, tuple[float, float]]:
        """Sum and count of everything worth logging since the last call."""
        tally, self._tally = self._tally, {}
        return tally

    def progress(self, steps: int, means: dict[str, float]) -> dict[str, float]:
        """Move the curriculum on: by control steps done, and by the errors that the policy reaches."""
        first, last = self.config.ranges.random_share
        self._random_share = first + (last - first) * min(steps / max(self.config.ranges.random_ramp, 1), 1.0)
        for i, name in enumerate(COMPONENTS):
            if f"kernel_error/{name}" in means:
                self._reached[i] += (1 - SMOOTHING) * (means[f"kernel_error/{name}"] - self._reached[i])
        widths = rewards.followed_widths(self.config.goal_widths, self._reached)
        return {
            "random_share": self._random_share,
            **{f"width/{n}": float(w) for n, w in zip(COMPONENTS, widths, strict=True)},
        }

    def snapshot(self) -> dict[str, Any]:
        return {
            "physics": self.physics.snapshot(),
            "goals": {field.name: getattr(self._goals, field.name).copy() for field in fields(Goals)},
            "now": self._now.copy(),
            "end": self._end.copy(),
            "action": self._action.copy(),
            "reached": self._reached.copy(),
            "random_share": self._random_share,
            "random": self._random.bit_generator.state,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self.physics.restore(saved["physics"])
        self._goals = Goals(**{name: np.array(values) for name, values in saved["goals"].items()})
        self._now, self._end, self._action = (np.array(saved[name]) for name in ("now", "end", "action"))
        self._reached, self._random_share = np.array(saved["reached"]), float(saved["random_share"])
        self._random.bit_generator.state = saved["random"]
        self._state = self.physics.state()
        self._features = features_of_state(self._state)

    def _rewards(self, before: State, previous: Floats) -> dict[str, Single]:
        terms = rewards.regularization(
            self.robot, self.config.regularization, self._state, before, self._action, previous, CONTROL_DT
        )
        for name, values in terms.items():
            self._count(f"term/{name}", values)
        goal = self._goal_reward()
        return {
            "goal": goal.astype(np.float32),
            "regularization": np.prod(list(terms.values()), axis=0).astype(np.float32),
        }

    def _goal_reward(self) -> Floats:
        state, goals = self._state, self._goals
        due = used(goals) & (goals.step == self._now[:, None])  # (E, K)
        reward = np.zeros(len(due))
        rows = np.flatnonzero(due.any(axis=1))
        if len(rows):
            error = goal_errors(goals[rows], state.position[rows], state.orientation[rows], state.joint_angles[rows])
            sizes, present = rewards.error_sizes(error), goals.presence[rows]
            widths = rewards.followed_widths(self.config.goal_widths, self._reached)
            reward[rows] = rewards.goal(sizes, present, due[rows], widths)
            self._count_errors(sizes, present & due[rows][..., None])
            self._count("goal_reward_when_due", reward[rows])
        return reward

    def _ends(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        terminated = fallen(self._state) | self._state.diverged
        if self.config.end_at_joint_limits:
            terminated |= at_joint_limit(self.robot, self._state)
        truncated = ~terminated & (self._now >= self._end)
        over = terminated | truncated
        self._count("survival", truncated[over])
        return terminated, truncated

    def _restart(self, ids: NDArray[np.intp]) -> None:
        if not len(ids):
            return
        episodes = self.sampler.draw(self._random, len(ids), self._random_share)
        self.physics.reset(ids, episodes.start)
        self._goals[ids] = episodes.goals
        self._now[ids] = 0
        last = np.where(used(episodes.goals), episodes.goals.step, 0).max(axis=1)
        self._end[ids] = last + round(self.config.seconds_after_last / CONTROL_DT)
        self._action[ids] = (episodes.start.joint_angles - self.robot.stance) / self.robot.action_scale
        self._state = self.physics.state()
        self._features[ids] = features_of_state(_rows(self._state, ids))

    def _count_errors(self, sizes: Floats, present: NDArray[np.bool_]) -> None:
        for i, name in enumerate(COMPONENTS):
            self._count(f"kernel_error/{name}", sizes[..., i][present[..., i]])
        self._count("met", sizes[..., 0][present[..., 0]] < MET)

    def _count(self, name: str, values: NDArray[Any]) -> None:
        if len(values):
            total, count = self._tally.get(name, (0.0, 0.0))
            self._tally[name] = (total + float(np.sum(values)), count + values.size)


def _rows(state: State, rows: NDArray[np.intp] | slice) -> State:
    return State(*(getattr(state, field.name)[rows] for field in fields(State)))


def _finite(state: State, before: State) -> State:
    """Rows that diverged are replaced by the state before: they end here, and must not spread."""
    bad = np.flatnonzero(state.diverged)
    for field in fields(State) if len(bad) else ():
        if field.name != "diverged":
            getattr(state, field.name)[bad] = getattr(before, field.name)[bad]
    return replace(state)
