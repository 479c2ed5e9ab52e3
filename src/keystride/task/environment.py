"""The keyframe task for many robots at once."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
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
from keystride.physics.sensors import NO_ERRORS, ROBOT_ERRORS, SensorErrors, Sensors
from keystride.physics.simulator import ROBOT, Randomization, Simulator, State
from keystride.robot.description import Floats, Robot
from keystride.task import rewards
from keystride.task.config import TaskConfig
from keystride.task.demonstrations import near_reference, replay_action, replayable_frames
from keystride.task.observations import features_of_library, features_of_state, state_observation
from keystride.task.sampling import EpisodeSampler
from keystride.task.terminations import at_joint_limit, fallen

Single = NDArray[np.float32]
MET = 0.2  # m: a keyframe nearer than this counts as met in the log
SMOOTHING = 0.98  # of the errors that the kernel widths follow, from one update to the next
SHOWN_BEND, SHOWN_DROP = 0.5, 0.15  # rad and m: further from the clip than this, its actions help no more
STANDING_TALL = 0.36  # m: whoever was higher when the last keyframe was due has to come down before standing still

RANDOMIZATIONS: dict[str, tuple[Randomization | None, SensorErrors]] = {
    "nothing": (None, NO_ERRORS),
    "paper": (Randomization(), NO_ERRORS),
    "robot": (ROBOT, ROBOT_ERRORS),
}
"""By the name that TaskConfig has: how robots differ, and what they mismeasure."""


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
    shown: Single | None  # (E, 12) the action that a demonstration shows where the step began, NaN where there is none


def joint_targets(robot: Robot, action: Floats) -> Floats:
    """Joint targets around the stance, inside the joints' limits; rad."""
    return np.clip(robot.stance + robot.action_scale * action, robot.lower, robot.upper)


class KeyframeEnvironment:
    """With demonstrations, steps say which action replays a rare motion, for a learner that imitates."""

    def __init__(
        self,
        robot: Robot,
        physics: Simulator,
        library: Library,
        config: TaskConfig,
        *,
        demonstrations: bool = False,
        seed: int = 0,
    ) -> None:
        self.robot, self.physics, self.config = robot, physics, config
        self.sampler = EpisodeSampler(robot, library, config)
        self.library_features = features_of_library(library).astype(np.float32)
        self._library = library
        self._replayable = replayable_frames(robot, library) if demonstrations else None
        self._random = np.random.default_rng(seed)
        count = physics.environments
        self._goals = empty_goals(count, config.max_keyframes)
        self._now, self._end = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._last = np.zeros(count, dtype=np.int64)  # control step of the last keyframe
        self._action = np.zeros((count, len(robot.joint_names)))
        self._frame, self._turn = np.zeros(count, dtype=np.intp), np.zeros(count)  # of the clip that an episode follows
        self._follows, self._rare = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self._place = np.zeros((count, 3))  # where the robot was when its last keyframe was due
        self._sensors = Sensors(RANDOMIZATIONS[config.randomize][1], count, seed=seed + 1)
        self._random_share = config.ranges.random_share[0]
        self._reached = rewards.paper_widths(config.goal_widths) * config.goal_widths.start
        self._tally: dict[str, tuple[float, float]] = {}
        self._state = self._measured = physics.state()
        self._features = features_of_state(self._state)
        self._restart(np.arange(count))
        # Environments that all start together make every curve oscillate.
        self._end = self._random.integers(1, self._end + 1)

    def step(self, action: Single) -> Step:
        before, previous, features, shown = self._state, self._action, self._features, self._shown()
        self._action = action.astype(np.float64)
        targets = self._sensors.command(joint_targets(self.robot, self._action))
        self._state = _finite(self.physics.advance(targets), before)
        self._measured = self._sensors.measure(self._state)
        self._features = features_of_state(self._state)
        self._now += 1
        earned = self._rewards(before, previous)
        terminated, truncated = self._ends()
        transition = np.concatenate([features, self._features], axis=1).astype(np.float32)
        arrived = self.observe(np.flatnonzero(truncated))
        self._restart(np.flatnonzero(terminated | truncated))
        return Step(self.observe(), arrived, earned, terminated, truncated, transition, shown)

    def observe(self, rows: NDArray[np.intp] | slice = slice(None)) -> Observation:
        state, goals, now = _rows(self._measured, rows), self._goals[rows], self._now[rows]
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

    def curriculum(self) -> dict[str, Any]:
        """What `progress` has moved."""
        return {"reached": self._reached.copy(), "random_share": self._random_share}

    def set_curriculum(self, saved: dict[str, Any]) -> None:
        self._reached, self._random_share = np.array(saved["reached"]), float(saved["random_share"])

    def snapshot(self) -> dict[str, Any]:
        return {
            "physics": self.physics.snapshot(),
            "sensors": self._sensors.snapshot(),
            "measured": {field.name: getattr(self._measured, field.name).copy() for field in fields(State)},
            **{name: getattr(self, f"_{name}").copy() for name in _PER_ROBOT},
            "goals": {field.name: getattr(self._goals, field.name).copy() for field in fields(Goals)},
            "random": self._random.bit_generator.state,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self.physics.restore(saved["physics"])
        self._goals = Goals(**{name: np.array(values) for name, values in saved["goals"].items()})
        for name in _PER_ROBOT:
            setattr(self, f"_{name}", np.array(saved[name]))
        self._sensors.restore(saved["sensors"])
        self._random.bit_generator.state = saved["random"]
        self._state = self.physics.state()
        self._measured = State(**{name: np.array(values) for name, values in saved["measured"].items()})
        self._features = features_of_state(self._state)

    def _rewards(self, before: State, previous: Floats) -> dict[str, Single]:
        terms = rewards.regularization(
            self.robot, self.config.regularization, self._state, before, self._action, previous, CONTROL_DT
        )
        for name, values in terms.items():
            self._count(f"term/{name}", values)
        goal = self._goal_reward()
        earned = {
            "goal": goal,
            "regularization": np.prod(list(terms.values()), axis=0),
            "tracking": self._tracking_reward(),
            "stillness": self._stillness_reward(),
        }
        return {name: values.astype(np.float32) for name, values in earned.items()}

    def _tracking_reward(self) -> Floats:
        """NaN where an episode follows no clip, or has come to its end."""
        rows = self._frame + self._now
        applies = np.flatnonzero(self._follows & (rows <= self._library.last[self._frame]))
        reward = np.full(len(rows), np.nan)
        if len(applies):
            reward[applies] = rewards.tracking(_rows(self._state, applies), self._clip_state(applies, rows[applies]))
        return reward

    def _clip_state(self, ids: NDArray[np.intp], rows: NDArray[np.intp]) -> State:
        """The clip's state at frames `rows`, where the episodes `ids` began and turned as they are."""
        frames, origin, turn = self._library.frames[rows], self._library.frames[self._frame[ids]], self._turn[ids]
        position = geometry.rotate_yaw(turn, frames.position - origin.position)
        position[:, 2] = frames.position[:, 2]
        return replace(
            _rows(self._state, ids),
            position=position,
            orientation=geometry.multiply(geometry.from_yaw(turn), frames.orientation),
            linear_velocity=geometry.rotate_yaw(turn, frames.linear_velocity),
            joint_angles=frames.joint_angles,
            joint_velocities=frames.joint_velocities,
        )

    def _stillness_reward(self) -> Floats:
        """NaN until the last keyframe has been due."""
        due = self._now == self._last
        self._place[due] = np.minimum(self._state.position[due], [np.inf, np.inf, STANDING_TALL])
        reward = np.full(len(due), np.nan)
        after = np.flatnonzero(self._now > self._last)
        if len(after):
            reward[after] = rewards.stillness(_rows(self._state, after), self._place[after])
        return reward

    def _shown(self) -> Single | None:
        if self._replayable is None:
            return None
        library, rows = self._library, self._frame + self._now
        inside = self._follows & self._rare & (rows < library.last[self._frame])
        rows = np.where(inside, rows, self._frame)
        near = near_reference(library, rows, self._state, SHOWN_BEND, SHOWN_DROP)
        valid = inside & near & self._replayable[rows]
        shown = np.full(self._action.shape, np.nan, dtype=np.float32)
        shown[valid] = replay_action(self.robot, library, rows[valid])
        return shown

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
        terminated = fallen(self.robot, self._state) | self._state.diverged
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
        self._last[ids] = np.where(used(episodes.goals), episodes.goals.step, 0).max(axis=1)
        self._end[ids] = self._last[ids] + self.sampler.tails(self._random, len(ids))
        self._frame[ids], self._turn[ids] = episodes.frame, episodes.turn
        self._follows[ids], self._rare[ids] = episodes.follows, episodes.rare
        self._place[ids] = episodes.start.position
        self._action[ids] = (episodes.start.joint_angles - self.robot.stance) / self.robot.action_scale
        self._state = self.physics.state()
        self._features[ids] = features_of_state(_rows(self._state, ids))
        self._sensors.reset(ids, self._state)
        self._measured = _replaced(self._measured, self._state, ids)

    def _count_errors(self, sizes: Floats, present: NDArray[np.bool_]) -> None:
        for i, name in enumerate(COMPONENTS):
            self._count(f"kernel_error/{name}", sizes[..., i][present[..., i]])
        self._count("met", sizes[..., 0][present[..., 0]] < MET)

    def _count(self, name: str, values: NDArray[Any]) -> None:
        if len(values):
            total, count = self._tally.get(name, (0.0, 0.0))
            self._tally[name] = (total + float(np.sum(values)), count + values.size)


_PER_ROBOT = ("now", "end", "last", "action", "frame", "turn", "follows", "rare", "place")


def _replaced(state: State, other: State, ids: NDArray[np.intp]) -> State:
    """The state with the rows `ids` of another: a robot that was just put somewhere is measured as it is."""
    values = {field.name: getattr(state, field.name).copy() for field in fields(State)}
    for name, column in values.items():
        column[ids] = getattr(other, name)[ids]
    return State(**values)


def _rows(state: State, rows: NDArray[np.intp] | slice) -> State:
    return State(*(getattr(state, field.name)[rows] for field in fields(State)))


def _finite(state: State, before: State) -> State:
    """Rows that diverged are replaced by the state before: they end here, and must not spread."""
    bad = np.flatnonzero(state.diverged)
    for field in fields(State) if len(bad) else ():
        if field.name != "diverged":
            getattr(state, field.name)[bad] = getattr(before, field.name)[bad]
    return replace(state)
