"""The keyframe task as a `gymnasium.vector.VectorEnv`, for other learners."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from keystride.keyframes.goals import GOAL_SIZE
from keystride.motion.library import Library
from keystride.physics.simulator import CpuSimulator
from keystride.robot.description import Robot
from keystride.task.config import TaskConfig
from keystride.task.environment import KeyframeEnvironment, Observation, randomization
from keystride.task.observations import STATE_SIZE
from keystride.task.rewards import REWARDS, Reward

EnvObservation = NDArray[np.float32] | dict[str, NDArray[Any]]

REWARD_WEIGHTS = {"goal": 25.0, "regularization": 0.1}
"""As in the single-critic baseline. The style reward is missing: it needs a discriminator, see info["transition"]."""


class KeyframeVectorEnv(VectorEnv[EnvObservation, NDArray[np.float32], NDArray[Any]]):
    """Robots that have to meet keyframes on time, one environment each.

    An action is a joint target relative to the stance in units of the robot's action scale, (12,) for each robot. Rewards are
    the weighted sum of the task's rewards, with those that do not apply to a robot left out. info["rewards"] has each of
    them, NaN where it does not apply, and info["transition"] the features of the step that a style discriminator reads.

    `rewards` are functions of your own by name (`keystride.task.rewards.Reward`); they count if `reward_weights` names them.

    Episodes that end are restarted in the same step. info["final_obs"] then holds the last observation of the truncated
    episodes (mask: info["_final_obs"]), which value bootstrapping needs; terminated ones have no next value.
    """

    def __init__(
        self,
        robot: Robot,
        library: Library,
        task: TaskConfig,
        num_envs: int,
        *,
        flat: bool = True,
        reward_weights: Mapping[str, float] | None = None,
        rewards: Mapping[str, Reward] | None = None,
        seed: int = 0,
    ) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}
        self.num_envs, self.flat = num_envs, flat
        self.reward_weights = dict(REWARD_WEIGHTS if reward_weights is None else reward_weights)
        self._robot, self._library, self._task = robot, library, task
        self._rewards = {**REWARDS, **(rewards or {})}
        for name in self.reward_weights:
            if name not in self._rewards:
                raise ValueError(f"unknown reward {name!r}; choose from {', '.join(self._rewards)}")
        self.single_observation_space = _observation_space(task.max_keyframes, flat)
        low = ((robot.lower - robot.stance) / robot.action_scale).astype(np.float32)
        high = ((robot.upper - robot.stance) / robot.action_scale).astype(np.float32)
        self.single_action_space = spaces.Box(low, high)  # beyond it, joint targets are clipped to the limits
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._environment = self._make(seed)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[EnvObservation, dict[str, Any]]:
        """Start new episodes. With a seed, everything that follows is reproducible; the environments share one seed."""
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first, options=options)
        self._environment = self._make(int(self.np_random.integers(2**31)))
        return self._shape(self._environment.observe()), {}

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[EnvObservation, NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take a control step of 20 ms; return observation, reward, terminated, truncated and info."""
        step = self._environment.step(np.asarray(actions, dtype=np.float32))
        reward = np.zeros(self.num_envs)
        for name, weight in self.reward_weights.items():
            reward += weight * np.nan_to_num(step.rewards[name])
        info: dict[str, Any] = {"rewards": step.rewards, "transition": step.transition}
        if step.truncated.any():
            info["final_obs"] = self._final(self._shape(step.arrived), step.truncated)
            info["_final_obs"] = step.truncated.copy()
        return self._shape(step.observation), reward, step.terminated, step.truncated, info

    def real_transitions(self, count: int) -> NDArray[np.float32]:
        """Return features of successive frames of the clips (count, 2 x 46): the real samples of a style discriminator."""
        return self._environment.real_transitions(count)

    def _make(self, seed: int) -> KeyframeEnvironment:
        bodies, _ = randomization(self._task)
        physics = CpuSimulator(self._robot, self.num_envs, randomization=bodies, seed=seed)
        return KeyframeEnvironment(
            self._robot, physics, self._library, self._task, rewards=self._rewards, seed=seed + 1
        )

    def _shape(self, observation: Observation) -> EnvObservation:
        if not self.flat:
            return {
                "state": observation.state,
                "goals": observation.goals,
                "visible": observation.visible.astype(np.int8),
            }
        shown = observation.visible[..., None]
        tokens = np.concatenate([observation.goals * shown, shown], axis=-1)  # (E, K, G + 1), zero where not visible
        return np.concatenate([observation.state, tokens.reshape(len(tokens), -1)], axis=1, dtype=np.float32)

    def _final(self, arrived: EnvObservation, truncated: NDArray[np.bool_]) -> NDArray[Any]:
        """Return one entry per environment, None where the episode continues, as Gymnasium's own vector environments do."""
        final = np.full(self.num_envs, None, dtype=object)
        for row, environment in enumerate(np.flatnonzero(truncated)):
            one = {k: v[row] for k, v in arrived.items()} if isinstance(arrived, dict) else arrived[row]
            final[environment] = one
        return final


def _observation_space(keyframes: int, flat: bool) -> spaces.Space[Any]:
    if flat:
        return spaces.Box(-np.inf, np.inf, (STATE_SIZE + keyframes * (GOAL_SIZE + 1),), np.float32)
    return spaces.Dict(
        {
            "state": spaces.Box(-np.inf, np.inf, (STATE_SIZE,), np.float32),
            "goals": spaces.Box(-np.inf, np.inf, (keyframes, GOAL_SIZE), np.float32),
            "visible": spaces.MultiBinary(keyframes),
        }
    )
