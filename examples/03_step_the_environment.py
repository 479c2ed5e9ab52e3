"""Step the training task as a Gymnasium vector environment. Needs pip install 'keystride[gym]'."""

import numpy as np

import keystride

env = keystride.make_env(num_envs=8, seed=0)
print("observation", env.single_observation_space.shape, "action", env.single_action_space.shape)

observation, _ = env.reset(seed=0)
total, ended = np.zeros(env.num_envs), 0
for _ in range(100):  # two seconds
    action = np.zeros(env.action_space.shape, np.float32)  # hold the stance
    observation, reward, terminated, truncated, info = env.step(action)
    total += reward
    ended += int((terminated | truncated).sum())
print("reward", total.round(1), "episodes ended", ended)
print("groups", {name: values.mean().round(3) for name, values in info["rewards"].items()})
env.close()
