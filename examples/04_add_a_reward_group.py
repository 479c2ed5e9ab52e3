"""Add a reward of your own, for a level trunk: a function, and an entry in the configuration.

The environment part needs pip install 'keystride[gym]', the training part 'keystride[train]'.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import keystride
from keystride.geometry import projected_gravity
from keystride.learner.config import RewardGroup
from keystride.task.rewards import ControlStep, kernel

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")


def level(step: ControlStep) -> np.ndarray:
    """(E,) 1 with the trunk level, falling with the sine of its tilt."""
    return kernel(projected_gravity(step.state.orientation)[:, :2], sigma=0.2)


# In the Gymnasium environment, rewards are added up with weights.
env = keystride.make_env(num_envs=8, rewards={"level": level}, reward_weights={"goal": 25.0, "level": 0.2})
env.reset(seed=0)
for _ in range(50):
    *_, info = env.step(np.zeros((8, 12), np.float32))
print("level trunk", info["rewards"]["level"].round(3))

# In training, each group of rewards has a critic of its own. A few iterations with a small configuration:
config = keystride.TrainingConfig(name="level", runs=out, processes=1)
ppo = replace(config.learner.ppo, groups=(*config.learner.ppo.groups, RewardGroup("level", 0.2, (("level", 1.0),))))
learner = replace(config.learner, environments=16, horizon=8, steps=256, ppo=ppo)
evaluation = replace(config.evaluation, robots=2, control_steps=30, export=False)
outcome = keystride.train(replace(config, learner=learner, evaluation=evaluation), rewards={"level": level})
print(outcome.message)
