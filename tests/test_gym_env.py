"""The vector environment against Gymnasium's checks, and under another project's learner."""

import warnings
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium comes with the extra gym")

from gymnasium.utils.env_checker import check_env, check_step_determinism  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402
from gymnasium.wrappers.vector import RecordEpisodeStatistics  # noqa: E402

import keystride  # noqa: E402
from keystride.gym_env import KeyframeVectorEnv  # noqa: E402
from keystride.task.rewards import ControlStep  # noqa: E402


@pytest.fixture(scope="module")
def env() -> KeyframeVectorEnv:
    return keystride.make_env(6, seed=1)


class OneRobot(gymnasium.Env):
    """A single environment on the vector environment of one, for Gymnasium's checks of single ones."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, flat: bool) -> None:
        self.env = keystride.make_env(1, flat=flat)
        self.observation_space, self.action_space = self.env.single_observation_space, self.env.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        seen, info = self.env.reset(seed=seed, options=options)
        return self._first(seen), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, _ = self.env.step(action[None])
        return self._first(seen), float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    @staticmethod
    def _first(seen: Any) -> Any:
        return {name: values[0] for name, values in seen.items()} if isinstance(seen, dict) else seen[0]


@pytest.mark.parametrize("flat", [True, False])
def test_gymnasium_finds_nothing_wrong(flat: bool) -> None:
    one = OneRobot(flat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on bounds and on registering
        check_env(one, skip_render_check=True)
        check_step_determinism(one)


def test_batches_lie_in_the_spaces(env: KeyframeVectorEnv) -> None:
    seen, _ = env.reset(seed=3)
    assert env.observation_space.contains(seen)
    env.action_space.seed(3)
    for _ in range(3):
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen)
        assert (reward.shape, terminated.dtype, truncated.dtype) == ((6,), np.bool_, np.bool_)
        np.testing.assert_allclose(reward, 25.0 * info["rewards"]["goal"] + 0.1 * info["rewards"]["regularization"])


def test_episodes_that_end_start_again_and_show_their_last_observation(env: KeyframeVectorEnv) -> None:
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    wrapped: Any = RecordEpisodeStatistics(env)
    seen, _ = wrapped.reset(seed=4)
    ended = 0
    for _ in range(150):
        seen, _, terminated, truncated, info = wrapped.step(np.zeros((6, 12), np.float32))
        if truncated.any():
            np.testing.assert_array_equal(info["_final_obs"], truncated)
            row = int(np.flatnonzero(truncated)[0])
            assert not np.array_equal(info["final_obs"][row], seen[row])
        ended += int((terminated | truncated).sum())
    assert ended > 3
    assert np.isfinite(seen).all()


def test_rewards_of_your_own_count_with_their_weights() -> None:
    def height(step: ControlStep) -> np.ndarray:
        return step.state.position[:, 2]

    env = keystride.make_env(4, rewards={"height": height}, reward_weights={"height": 2.0, "stillness": 1.0}, seed=0)
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.zeros((4, 12), np.float32))
    still = np.nan_to_num(info["rewards"]["stillness"])  # NaN before the last keyframe: it does not count there
    np.testing.assert_allclose(reward, 2.0 * info["rewards"]["height"] + still, rtol=1e-6)
    assert (info["rewards"]["height"] > 0.05).all()
    with pytest.raises(ValueError, match="unknown reward 'hight'; choose from goal"):
        keystride.make_env(4, reward_weights={"hight": 1.0})


def test_an_action_at_the_bounds_asks_for_the_joint_limits(env: KeyframeVectorEnv) -> None:
    robot = keystride.load_robot("go2")
    space: Any = env.single_action_space
    np.testing.assert_allclose(robot.stance + robot.action_scale * space.high, robot.upper, atol=1e-6)
    np.testing.assert_allclose(robot.stance + robot.action_scale * space.low, robot.lower, atol=1e-6)


def test_rsl_rl_trains_on_it() -> None:
    pytest.importorskip("rsl_rl", reason="rsl-rl-lib comes with the extra bench")
    import torch
    from rsl_rl.algorithms import PPO
    from rsl_rl.models import MLPModel
    from rsl_rl.storage import RolloutStorage
    from tensordict import TensorDict

    torch.manual_seed(0)
    robots, horizon = 16, 12
    env = keystride.make_env(robots, seed=0)

    def tensors(seen: Any) -> TensorDict:
        return TensorDict({"policy": torch.as_tensor(seen)}, batch_size=[robots])

    seen = tensors(env.reset(seed=0)[0])
    sets, normal = {"actor": ["policy"], "critic": ["policy"]}, {"class_name": "GaussianDistribution"}
    actor = MLPModel(seen, sets, "actor", 12, hidden_dims=(32,), distribution_cfg=normal)
    critic = MLPModel(seen, sets, "critic", 1, hidden_dims=(32,))
    storage = RolloutStorage("rl", robots, horizon, seen, [12], "cpu")
    learner = PPO(actor, critic, storage, num_learning_epochs=2, num_mini_batches=2)
    before = [values.clone() for values in actor.parameters()]
    for _ in range(3):
        with torch.no_grad():
            for _ in range(horizon):
                action = learner.act(seen)
                following, reward, terminated, truncated, _ = env.step(action.numpy())
                seen, ended = tensors(following), torch.as_tensor(terminated | truncated)
                timed_out = torch.as_tensor(truncated)
                learner.process_env_step(seen, torch.as_tensor(reward).float(), ended, {"time_outs": timed_out})
            learner.compute_returns(seen)
        losses = learner.update()
        assert all(np.isfinite(loss) for loss in losses.values())
    assert any(not torch.equal(old, new) for old, new in zip(before, actor.parameters(), strict=True))
