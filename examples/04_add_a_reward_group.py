"""Add a reward of your own to the environment: here, for a level trunk. Needs pip install 'keystride[gym]'."""

from typing import Any

import numpy as np
from gymnasium.vector import VectorWrapper

import keystride


def level(observation: dict[str, np.ndarray], width: float = 0.2) -> np.ndarray:
    """(E,) 1 with the trunk level, falling with the sine of its tilt."""
    gravity = observation["state"][:, 30:33]  # in the base frame; see keystride.task.observations
    return np.exp(-np.square(gravity[:, :2]).sum(axis=1) / width**2)


class LevelTrunk(VectorWrapper):
    """Adds the group to info["rewards"], and its share to the reward."""

    def step(self, actions: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        info["rewards"]["level"] = level(observation)
        return observation, reward + 0.2 * info["rewards"]["level"], terminated, truncated, info


env = LevelTrunk(keystride.make_env(num_envs=8, flat=False))
env.reset(seed=0)
for _ in range(50):
    *_, info = env.step(np.zeros((8, 12), np.float32))
print({name: float(values.mean().round(3)) for name, values in info["rewards"].items()})
