"""The keyframe task for many robots at once."""

from collections.abc import Mapping
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
from keystride.physics.simulator import ROBOT_RANDOMIZATION, Randomization, Simulator, State, state_rows
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.task.config import TaskConfig
from keystride.task.demonstrations import near_reference, replay_action, replayable_frames
from keystride.task.observations import features_of_library, features_of_state, state_observation
from keystride.task.rewards import REWARDS, ControlStep, Reward, error_sizes, followed_widths, paper_widths
from keystride.task.sampling import STANDING_TALL, EpisodeSampler
from keystride.task.terminations import at_joint_limit, fallen

Single = NDArray[np.float32]
MET_DISTANCE = 0.2  # m: a keyframe nearer than this counts as met in the metrics
ERROR_SMOOTHING = 0.98  # share of the smoothed errors, which the kernel widths follow, that is kept at each update
BEHIND = -0.03  # m: closer keyframes do not say which way to walk
SHOWN_AFTER = 12  # control steps after its keyframe for which a clip is still shown: a leap has to be landed
SHOWN_BEND, SHOWN_DROP = 0.5, 0.15  # rad and m, distance from the clip beyond which its actions no longer help
CONTACT_FORCE = 1.0  # N on a foot that is on the ground
UNKNOWN_SWING = (
    50  # control steps that a foot counts as having been in the air when an episode begins: no swing is that short
)

RANDOMIZATIONS: dict[str, tuple[Randomization | None, SensorErrors]] = {
    "nothing": (None, NO_ERRORS),
    "paper": (Randomization(), NO_ERRORS),
    "robot": (ROBOT_RANDOMIZATION, ROBOT_ERRORS),
}
"""How robots differ and how far off their sensors are, by the names that `TaskConfig.randomize` takes."""


def randomization(config: TaskConfig) -> tuple[Randomization | None, SensorErrors]:
    """Return how robots differ and how far off their sensors are in a task."""
    bodies, errors = RANDOMIZATIONS[config.randomize]
    share = config.randomized_share
    return bodies and replace(bodies, share=share), replace(errors, share=share)


@dataclass(frozen=True)
class Observation:
    """What the policy sees of E robots."""

    state: Single  # (E, 46)
    goals: Single  # (E, K, 24)
    visible: NDArray[np.bool_]  # (E, K)


@dataclass(frozen=True)
class Step:
    """The result of a control step."""

    observation: Observation  # after restarts
    arrived: Observation  # of the truncated environments alone, before their restart: time-outs bootstrap from it
    rewards: dict[str, Single]  # (E,) each; the style reward is the discriminator's
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    transition: Single  # (E, 2 x 46) style features before and after, the latter before restarts
    demonstration: Single | None  # (E, 12) action to imitate in the state where the step began, NaN where there is none


def joint_targets(robot: Robot, action: Floats) -> Floats:
    """Return joint targets around the stance, inside the joints' limits; rad."""
    return np.clip(robot.stance + robot.action_scale * action, robot.lower, robot.upper)


class KeyframeEnvironment:
    """Many robots that have to meet keyframes on time. Episodes that end are restarted in the same step.

    `rewards` are functions of a control step by their names. With `demonstrations`, steps also hold the action that replays
    a rare motion, for a learner that imitates.
    """

    def __init__(
        self,
        robot: Robot,
        physics: Simulator,
        library: Library,
        config: TaskConfig,
        *,
        rewards: Mapping[str, Reward] = REWARDS,
        demonstrations: bool = False,
        seed: int = 0,
    ) -> None:
        self.robot, self.physics, self.config, self.rewards = robot, physics, config, rewards
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
        self._follows, self._shown = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self._airborne = np.zeros((count, 4), dtype=np.int64)  # control steps since each foot was last on the ground
        self._place = np.zeros((count, 3))  # where the robot was when its last keyframe was due
        # A robot that was higher has to come down before standing still.
        self._tallest = STANDING_TALL * float(standing_height(robot, robot.stance))  # m
        self._sensors = Sensors(randomization(config)[1], count, seed=seed + 1)
        self._random_share = config.ranges.random_share[0]
        self._reached = paper_widths(config.goal_widths) * config.goal_widths.start
        self._tally: dict[str, tuple[float, float]] = {}
        self._state = self._measured = physics.state()
        self._features = features_of_state(self._state)
        self._restart(np.arange(count))
        # Environments that all start together make every curve oscillate.
        self._end = self._random.integers(1, self._end + 1)

    def step(self, action: Single) -> Step:
        """Take one control step with an action (E, 12) for each robot."""
        before, previous, features, demonstration = self._state, self._action, self._features, self._demonstration()
        self._action = action.astype(np.float64)
        targets = self._sensors.command(joint_targets(self.robot, self._action))
        self._state = _finite(self.physics.advance(targets), before)
        self._measured = self._sensors.measure(self._state)
        self._features = features_of_state(self._state)
        self._now += 1
        now = self._control_step(before, previous)
        earned = {name: reward(now).astype(np.float32) for name, reward in self.rewards.items()}
        terminated, truncated = self._ends()
        transition = np.concatenate([features, self._features], axis=1).astype(np.float32)
        arrived = self.observe(np.flatnonzero(truncated))
        self._restart(np.flatnonzero(terminated | truncated))
        return Step(self.observe(), arrived, earned, terminated, truncated, transition, demonstration)

    def observe(self, rows: NDArray[np.intp] | slice = slice(None)) -> Observation:
        """Return what the policy sees of all robots, or of some."""
        state, goals, now = state_rows(self._measured, rows), self._goals[rows], self._now[rows]
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
        """Return style features of successive frames drawn from the clips, (count, 2 x 46)."""
        first = self._library.draw(self._random, count, ahead=1)
        return np.concatenate([self.library_features[first], self.library_features[first + 1]], axis=1)

    def metrics(self) -> dict[str, tuple[float, float]]:
        """Return the sum and count of every metric since the last call."""
        tally, self._tally = self._tally, {}
        return tally

    def progress(self, steps: int, means: dict[str, float]) -> dict[str, float]:
        """Advance the curriculum by the control steps done and the errors that the policy reaches; return where it is."""
        first, last = self.config.ranges.random_share
        self._random_share = first + (last - first) * min(steps / max(self.config.ranges.random_ramp, 1), 1.0)
        for i, name in enumerate(COMPONENTS):
            if f"kernel_error/{name}" in means:
                self._reached[i] += (1 - ERROR_SMOOTHING) * (means[f"kernel_error/{name}"] - self._reached[i])
        widths = followed_widths(self.config.goal_widths, self._reached)
        return {
            "random_share": self._random_share,
            **{f"width/{n}": float(w) for n, w in zip(COMPONENTS, widths, strict=True)},
        }

    def curriculum(self) -> dict[str, Any]:
        """Return the state of the curriculum, which `progress` changes."""
        return {"reached": self._reached.copy(), "random_share": self._random_share}

    def set_curriculum(self, saved: dict[str, Any]) -> None:
        """Continue with a curriculum that `curriculum` returned."""
        self._reached, self._random_share = np.array(saved["reached"]), float(saved["random_share"])

    def snapshot(self) -> dict[str, Any]:
        """Return everything that the future of the episodes depends on."""
        return {
            "physics": self.physics.snapshot(),
            "sensors": self._sensors.snapshot(),
            "measured": {field.name: getattr(self._measured, field.name).copy() for field in fields(State)},
            **{name: getattr(self, f"_{name}").copy() for name in _PER_ROBOT},
            "goals": {field.name: getattr(self._goals, field.name).copy() for field in fields(Goals)},
            "random": self._random.bit_generator.state,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.physics.restore(saved["physics"])
        self._goals = Goals(**{name: np.array(values) for name, values in saved["goals"].items()})
        for name in _PER_ROBOT:
            setattr(self, f"_{name}", np.array(saved[name]))
        self._sensors.restore(saved["sensors"])
        self._random.bit_generator.state = saved["random"]
        self._state = self.physics.state()
        self._measured = State(**{name: np.array(values) for name, values in saved["measured"].items()})
        self._features = features_of_state(self._state)

    def _control_step(self, before: State, previous: Floats) -> ControlStep:
        """Return what rewards need to know of this step, and log the errors at keyframes that are due."""
        due = used(self._goals) & (self._goals.step == self._now[:, None])  # (E, K)
        arrived = self._now == self._last
        self._place[arrived] = np.minimum(self._state.position[arrived], [np.inf, np.inf, self._tallest])
        frames = self._frame + self._now
        following = np.flatnonzero(self._follows & (frames <= self._library.last[self._frame]))
        return ControlStep(
            robot=self.robot,
            config=self.config,
            state=self._state,
            before=before,
            action=self._action,
            previous_action=previous,
            goals=self._goals,
            now=self._now,
            due=due,
            errors=self._goal_errors(due),
            widths=followed_widths(self.config.goal_widths, self._reached),
            following=following,
            clip=self._clip_state(following, frames[following]),
            swing=self._swing(),
            waiting=self._now > self._last,
            waiting_position=self._place,
            log=self._count,
        )

    def _goal_errors(self, due: NDArray[np.bool_]) -> Floats:
        """Return sizes of the goal errors (E, K, 5) of robots with a keyframe due, NaN elsewhere, and log those that are due."""
        state, goals = self._state, self._goals
        sizes = np.full((*due.shape, len(COMPONENTS)), np.nan)
        rows = np.flatnonzero(due.any(axis=1))
        if len(rows):
            error = goal_errors(goals[rows], state.position[rows], state.orientation[rows], state.joint_angles[rows])
            sizes[rows] = error_sizes(error)
            self._count_errors(sizes[rows], goals.presence[rows] & due[rows][..., None])
        return sizes

    def _swing(self) -> Floats:
        """Update the air time of each foot; return that of feet landing on this step and 0 for the others, (E, 4) s."""
        down = self._state.contact > CONTACT_FORCE
        swing = np.where(down, self._airborne, 0) * CONTROL_DT
        self._airborne = np.where(down, 0, self._airborne + 1)
        return swing

    def _clip_state(self, ids: NDArray[np.intp], rows: NDArray[np.intp]) -> State:
        """Return the clip's state at frames `rows`, moved to where the episodes `ids` began and turned as they are."""
        frames, origin, turn = self._library.frames[rows], self._library.frames[self._frame[ids]], self._turn[ids]
        position = geometry.rotate_yaw(turn, frames.position - origin.position)
        position[:, 2] = frames.position[:, 2]
        return replace(
            state_rows(self._state, ids),
            position=position,
            orientation=geometry.multiply(geometry.from_yaw(turn), frames.orientation),
            linear_velocity=geometry.rotate_yaw(turn, frames.linear_velocity),
            joint_angles=frames.joint_angles,
            joint_velocities=frames.joint_velocities,
        )

    def _demonstration(self) -> Single | None:
        """Return the action that replays a rare motion, where that works."""
        if self._replayable is None:
            return None
        library, rows = self._library, self._frame + self._now
        inside = self._follows & self._shown & (rows < library.last[self._frame])
        rows = np.where(inside, rows, self._frame)
        near = near_reference(library, rows, self._state, SHOWN_BEND, SHOWN_DROP)
        valid = inside & near & self._replayable[rows] & self._asks_for_clip()
        shown = np.full(self._action.shape, np.nan, dtype=np.float32)
        shown[valid] = replay_action(self.robot, library, rows[valid])
        return shown

    def _asks_for_clip(self) -> NDArray[np.bool_]:
        """Return where the first keyframe says what the clip does and is ahead or just past (E,): a policy cannot know it otherwise."""
        high = self._goals.position[:, 0, 2] > self.sampler.leap_height
        away = self._goals.position[:, 0] - self._state.position
        behind = geometry.rotate_yaw(-geometry.yaw_of(self._state.orientation), away)[:, 0] < BEHIND
        asks = self._goals.presence[:, 0, 0] & (high | behind) | self._goals.presence[:, 0, 4]
        return asks & (self._now < self._goals.step[:, 0] + SHOWN_AFTER)

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
        self._follows[ids], self._shown[ids] = episodes.follows, episodes.shown
        self._place[ids] = episodes.start.position
        self._airborne[ids] = UNKNOWN_SWING
        self._action[ids] = (episodes.start.joint_angles - self.robot.stance) / self.robot.action_scale
        self._state = self.physics.state()
        self._features[ids] = features_of_state(state_rows(self._state, ids))
        self._sensors.reset(ids, self._state)
        self._measured = _replaced(self._measured, self._state, ids)

    def _count_errors(self, sizes: Floats, present: NDArray[np.bool_]) -> None:
        for i, name in enumerate(COMPONENTS):
            self._count(f"kernel_error/{name}", sizes[..., i][present[..., i]])
        self._count("met", sizes[..., 0][present[..., 0]] < MET_DISTANCE)

    def _count(self, name: str, values: NDArray[Any]) -> None:
        if len(values):
            total, count = self._tally.get(name, (0.0, 0.0))
            self._tally[name] = (total + float(np.sum(values)), count + values.size)


_PER_ROBOT = ("now", "end", "last", "action", "frame", "turn", "follows", "shown", "place", "airborne")


def _replaced(state: State, other: State, ids: NDArray[np.intp]) -> State:
    """Return the state with the rows `ids` of another one: a robot that was just put somewhere is measured as it is."""
    values = {field.name: getattr(state, field.name).copy() for field in fields(State)}
    for name, column in values.items():
        column[ids] = getattr(other, name)[ids]
    return State(**values)


def _finite(state: State, before: State) -> State:
    """Replace rows that diverged by the state before: their episodes end here, and NaN must not spread."""
    bad = np.flatnonzero(state.diverged)
    for field in fields(State) if len(bad) else ():
        if field.name != "diverged":
            getattr(state, field.name)[bad] = getattr(before, field.name)[bad]
    return replace(state)
