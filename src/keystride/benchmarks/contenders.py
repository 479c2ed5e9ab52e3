"""The contenders of `keystride benchmark learner`. Each runs in its own process, on one thread."""

import time
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keystride.learner.config import LEARNER_PRESETS, LearnerConfig, NetworkConfig
from keystride.learner.networks import (
    Actor,
    Critics,
    Observations,
    SequenceNetwork,
    by_length,
    packed,
    sorted_by_length,
    upcoming,
)
from keystride.learner.parallel import settle_process
from keystride.learner.ppo import Ppo, Samples
from keystride.learner.rollout import log_probability

STATE_COLUMNS, GOAL_COLUMNS, SLOTS, ACTIONS = 46, 24, 5, 12


def samples(count: int, groups: int) -> Samples:
    """Return random samples with a uniformly distributed number of keyframes: 3.5 of 6 tokens on average, as in training."""
    generator = torch.Generator().manual_seed(0)
    seen = torch.randint(SLOTS + 1, (count, 1), generator=generator)
    visible = torch.arange(SLOTS) < seen
    observations = Observations(
        torch.randn(count, STATE_COLUMNS, generator=generator),
        torch.randn(count, SLOTS, GOAL_COLUMNS, generator=generator),
        visible,
    )
    action = torch.randn(count, ACTIONS, generator=generator)
    return Samples(
        observations,
        mean=torch.zeros(count, ACTIONS),
        action=action,
        log_prob=log_probability(action, torch.zeros(ACTIONS), torch.ones(ACTIONS)),
        weight=torch.ones(count),
        demonstration=torch.full((count, ACTIONS), float("nan")),
        advantage=torch.randn(count, generator=generator),
        returns=torch.randn(count, groups, generator=generator),
    )


def learner(preset: str) -> Ppo:
    """Return the PPO update of a preset, with new networks."""
    torch.manual_seed(0)
    config: LearnerConfig = LEARNER_PRESETS[preset]
    actor = Actor(config.network, STATE_COLUMNS, GOAL_COLUMNS, ACTIONS)
    critics = Critics(config.network, STATE_COLUMNS, GOAL_COLUMNS, len(config.ppo.groups))
    return Ppo(replace(config.ppo, symmetry=False), actor, critics, torch.Generator().manual_seed(0))


class PlainNetwork(nn.Module):
    """The same function written the usual way: padded tokens through `nn.TransformerEncoder` with a mask."""

    def __init__(self, config: NetworkConfig, ours: SequenceNetwork) -> None:
        super().__init__()
        width = ours.encoder.width
        layer = nn.TransformerEncoderLayer(
            width, config.heads, config.feedforward, dropout=0.0, activation=F.elu, batch_first=True
        )
        self.embed, self.mlp, self.head = ours.encoder.embed, ours.mlp, ours.head
        self.state_to_mlp, self.next_goal_time_column = config.state_to_mlp, config.next_goal_time_column
        self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        for theirs, own in zip(self.encoder.layers, ours.encoder.layers, strict=True):
            _copy_layer(theirs, own)

    def forward(self, state: Tensor, goals: Tensor, visible: Tensor) -> Tensor:
        beside = [] if self.next_goal_time_column is None else [upcoming(goals, self.next_goal_time_column, visible)]
        goals = torch.cat([torch.zeros_like(goals[:, :1]), goals], dim=1)
        hidden = torch.cat([torch.zeros_like(visible[:, :1]), ~visible], dim=1)
        tokens = torch.cat([state[:, None].expand(-1, goals.shape[1], -1), goals], dim=-1)
        encoded = self.encoder(self.embed(tokens), src_key_padding_mask=hidden)
        x = encoded.masked_fill(hidden[..., None], float("-inf")).amax(dim=1)
        x = torch.cat([x, *([state] if self.state_to_mlp else []), *beside], dim=-1)
        for layer in self.mlp:
            x = F.elu(layer(x))
        return self.head(x)


def _copy_layer(theirs: nn.Module, own: nn.Module) -> None:
    pairs = {
        "self_attn.in_proj_weight": "attention.qkv.weight",
        "self_attn.in_proj_bias": "attention.qkv.bias",
        "self_attn.out_proj.weight": "attention.out.weight",
        "self_attn.out_proj.bias": "attention.out.bias",
        "linear1.weight": "expand.weight",
        "linear1.bias": "expand.bias",
        "linear2.weight": "contract.weight",
        "linear2.bias": "contract.bias",
        "norm1.weight": "norm_attention.weight",
        "norm1.bias": "norm_attention.bias",
        "norm2.weight": "norm_feedforward.weight",
        "norm2.bias": "norm_feedforward.bias",
    }
    source = own.state_dict()
    theirs.load_state_dict({name: source[ours] for name, ours in pairs.items()})


def _rate(step: Callable[[], object], count: int, rounds: int) -> float:
    """Return samples per second of thread CPU time, after one warm-up round."""
    step()
    start = time.thread_time()
    for _ in range(rounds):
        step()
    return count * rounds / (time.thread_time() - start)


def ours(preset: str, count: int, rounds: int) -> float:
    """Return the rate of our update in samples per second."""
    settle_process()
    ppo = learner(preset)
    batch = samples(count, len(ppo.config.groups))
    batch = batch[sorted_by_length(batch.observations.visible)]
    return _rate(lambda: ppo._step(batch, update_critics=True), count, rounds)


def straightforward(preset: str, count: int, rounds: int) -> tuple[float, float]:
    """Return the rate of the straightforward version, and the largest difference between its outputs and ours."""
    torch.set_num_threads(1)
    ppo, config = learner(preset), LEARNER_PRESETS[preset].network
    networks = [PlainNetwork(config, net) for net in _networks(ppo)]
    batch = samples(count, len(ppo.config.groups))
    gap = _gap(ppo, networks[1], batch.observations[slice(0, 512)])
    optimizer = torch.optim.Adam([p for net in networks for p in net.parameters()], lr=1e-4)

    def step() -> None:
        seen = batch.observations
        mean, *values = [net(seen.state, seen.goals, seen.visible) for net in networks]
        ratio = (log_probability(batch.action, mean, ppo.actor.std) - batch.log_prob).exp()
        gain = torch.minimum(ratio * batch.advantage, ratio.clamp(0.8, 1.2) * batch.advantage).mean()
        loss = (torch.cat(values, dim=-1) - batch.returns).square().mean(dim=0).sum() - gain
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return _rate(step, count, rounds), gap


@torch.no_grad()
def _gap(ppo: Ppo, network: PlainNetwork, seen: Observations) -> float:
    """Return the largest difference for a critic; the outputs of an untrained actor are too small to compare."""
    seen = packed(seen)
    return float((by_length(ppo.critics.networks[0], seen) - network(seen.state, seen.goals, seen.visible)).abs().max())


def rsl_rl(count: int, rounds: int) -> float:
    """Return the rate of rsl-rl-lib's PPO with MLPs (512, 256, 128) on flattened observations, one pass over a batch of this size."""
    from rsl_rl.algorithms import PPO
    from rsl_rl.models import MLPModel
    from rsl_rl.storage import RolloutStorage
    from tensordict import TensorDict

    torch.set_num_threads(1)
    robots, horizon = count // 24, 24
    seen = TensorDict({"policy": torch.randn(robots, STATE_COLUMNS + SLOTS * GOAL_COLUMNS)}, batch_size=[robots])
    sets, hidden = {"actor": ["policy"], "critic": ["policy"]}, (512, 256, 128)
    normal = {"class_name": "GaussianDistribution"}
    actor = MLPModel(seen, sets, "actor", ACTIONS, hidden_dims=hidden, distribution_cfg=normal)
    critic = MLPModel(seen, sets, "critic", 1, hidden_dims=hidden)
    storage = RolloutStorage("rl", robots, horizon, seen, [ACTIONS], "cpu")
    algorithm = PPO(actor, critic, storage, num_learning_epochs=1, num_mini_batches=1)
    spent = 0.0
    for turn in range(rounds + 1):
        with torch.no_grad():
            for _ in range(horizon):
                algorithm.act(seen)
                algorithm.process_env_step(seen, torch.randn(robots), torch.zeros(robots), {})
            algorithm.compute_returns(seen)
        start = time.thread_time()
        algorithm.update()
        spent += (time.thread_time() - start) * (turn > 0)
    return robots * horizon * rounds / spent


def matmul(rounds: int = 20, size: int = 1024) -> float:
    """Return the floating-point operations per second of a large matrix product on one thread."""
    torch.set_num_threads(1)
    a, b = torch.randn(size, size), torch.randn(size, size)
    return _rate(lambda: a @ b, 1, rounds) * 2 * size**3


def operations(preset: str) -> float:
    """Return the floating-point operations in the forward and backward pass of one sample, counting matrix products only."""
    ppo = learner(preset)
    tokens = 1 + SLOTS / 2
    total = 0.0
    for network in _networks(ppo):
        inside, whole = _weights(network.encoder), _weights(network)
        total += tokens * inside + (whole - inside)
    return 2 * 3 * total


def _networks(ppo: Ppo) -> list[SequenceNetwork]:
    return [n for n in (ppo.actor.network, *ppo.critics.networks) if isinstance(n, SequenceNetwork)]


def _weights(module: nn.Module) -> int:
    return sum(m.weight.numel() for m in module.modules() if isinstance(m, nn.Linear))
