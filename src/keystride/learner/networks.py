"""The networks: a sequence-to-token transformer encoder, the actor and the critics.

A sample is a state and its visible keyframes. Samples with equally many keyframes are computed together, so that no masked
token is ever computed. `forward_padded` is the same function with a mask, for export.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from keystride.learner.config import NetworkConfig


@dataclass(frozen=True)
class Observations:
    """N samples; visible keyframes come first (see `packed`)."""

    state: Tensor  # (N, S)
    goals: Tensor  # (N, K, G)
    visible: Tensor  # (N, K) bool

    def __getitem__(self, rows: Tensor | slice) -> "Observations":
        return Observations(self.state[rows], self.goals[rows], self.visible[rows])

    def __len__(self) -> int:
        return len(self.state)


def packed(observations: Observations) -> Observations:
    """Return the same samples with the visible keyframes first: their order means nothing to the encoder."""
    order = torch.argsort(observations.visible.to(torch.uint8), dim=1, descending=True, stable=True)
    goals = observations.goals.gather(1, order[..., None].expand_as(observations.goals))
    return Observations(observations.state, goals, observations.visible.gather(1, order))


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return x (n, L, W) after attention; mask (n, L) of tokens that may be attended to."""
        n, length, width = x.shape
        q, k, v = (
            part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=-1)
        )  # (n, H, L, W/H)
        allowed = None if mask is None else mask[:, None, None, :]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.out(mixed.transpose(1, 2).reshape(n, length, width))


class EncoderLayer(nn.Module):
    """Attention and feed-forward, each with a residual connection and layer normalization."""

    def __init__(self, config: NetworkConfig, width: int) -> None:
        super().__init__()
        self.attention = Attention(width, config.heads)
        self.expand = nn.Linear(width, config.feedforward)
        self.contract = nn.Linear(config.feedforward, width)
        self.norm_attention, self.norm_feedforward = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm_attention(x + self.attention(x, mask))
        return self.norm_feedforward(x + self.contract(F.elu(self.expand(x))))


class Encoder(nn.Module):
    """Encodes state and keyframes as one token: the paper's sequence-to-token transformer."""

    def __init__(self, config: NetworkConfig, state_size: int, goal_size: int) -> None:
        super().__init__()
        token = state_size + goal_size
        self.width = config.width or token
        self.goal_size = goal_size
        self.embed = nn.Linear(token, config.width) if config.width else nn.Identity()
        self.layers = nn.ModuleList(EncoderLayer(config, self.width) for _ in range(config.layers))

    def forward(self, state: Tensor, goals: Tensor) -> Tensor:
        """Return (n, W) for state (n, S) and goals (n, L, G), all visible. The self-goal token comes first: zero error, zero time."""
        x = self.embed(self._tokens(state, goals))
        for layer in self.layers:
            x = layer(x)
        return x.amax(dim=1)

    def forward_padded(self, state: Tensor, goals: Tensor, visible: Tensor) -> Tensor:
        """Return the same with a mask (n, K) over padded keyframes; hidden rows have no effect."""
        seen = torch.cat([torch.ones_like(visible[:, :1]), visible], dim=1)
        x = self.embed(self._tokens(state, goals.masked_fill(~visible[..., None], 0.0)))
        for layer in self.layers:
            x = layer(x, seen)
        return x.masked_fill(~seen[..., None], float("-inf")).amax(dim=1)

    def _tokens(self, state: Tensor, goals: Tensor) -> Tensor:
        sequence = (
            torch.cat([torch.zeros_like(goals[:, :1]), goals], dim=1)
            if goals.shape[1]
            else goals.new_zeros(len(state), 1, self.goal_size)
        )
        return torch.cat([state[:, None].expand(-1, sequence.shape[1], -1), sequence], dim=-1)


class Normalizer(nn.Module):
    """Normalizes by a running mean and variance, which are exported with the network. Samples older than `memory` fade."""

    def __init__(self, size: int, memory: float = 20e6) -> None:
        super().__init__()
        self.memory = memory
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.zeros(size, dtype=torch.float64))
        self.mean: Tensor
        self.variance: Tensor
        self.count: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) * torch.rsqrt(self.variance + 1e-5)).clamp(-10.0, 10.0)

    @property
    def std(self) -> Tensor:
        return torch.sqrt(self.variance + 1e-5)

    @torch.no_grad()
    def update(self, count: Tensor, mean: Tensor, variance: Tensor) -> None:
        """Merge the moments of a new batch (population variance). Each column has its own count, which may be zero."""
        total = self.count + count
        share = (count / total.clamp(min=1.0)).to(self.mean.dtype)
        delta = mean - self.mean
        self.variance += share * (variance - self.variance) + share * (1 - share) * delta**2
        self.mean += share * delta
        self.count.copy_(total.clamp(max=self.memory))


PAST_WAIT = 1e3  # s, added to the wait of keyframes that are past


def upcoming(goals: Tensor, time: int, visible: Tensor | None = None) -> Tensor:
    """Return the keyframe (n, G) that is due next of (n, L, G), by its column `time`; else the one just past, else zeros."""
    if not goals.shape[1]:
        return goals.new_zeros(len(goals), goals.shape[2])
    wait = goals[..., time]
    wait = torch.where(wait < 0.0, PAST_WAIT - wait, wait)
    if visible is not None:
        wait, goals = wait.masked_fill(~visible, 2 * PAST_WAIT), goals.masked_fill(~visible[..., None], 0.0)
    nearest = wait.argmin(dim=1)[:, None, None].expand(-1, 1, goals.shape[2])
    return goals.gather(1, nearest)[:, 0]


def urgency(goal: Tensor, time: int, scales: Tensor) -> Tensor:
    """Return how soon the keyframe (n, G) is due at each time scale (S,): from 0 far ahead to 1 when due, then from -1 back to 0.

    Without a keyframe, which is all zeros, it is 0.
    """
    wait = goal[:, time : time + 1]
    nearness = torch.exp(-wait.abs() / scales)
    there = (goal != 0.0).any(dim=1, keepdim=True)
    return torch.where(wait < 0.0, -nearness, nearness) * there


class SequenceNetwork(nn.Module):
    """The encoder, then an MLP."""

    def __init__(self, config: NetworkConfig, state_size: int, goal_size: int, outputs: int) -> None:
        super().__init__()
        self.encoder = Encoder(config, state_size, goal_size)
        self.state_to_mlp, self.next_goal_time_column = config.state_to_mlp, config.next_goal_time_column
        beside = state_size * config.state_to_mlp + goal_size * (config.next_goal_time_column is not None)
        beside += len(config.time_scales)
        self.register_buffer("time_scales", torch.tensor(config.time_scales), persistent=False)
        self.time_scales: Tensor
        sizes = [self.encoder.width + beside, *config.mlp]
        self.mlp = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.head = nn.Linear(sizes[-1], outputs)

    def forward(self, state: Tensor, goals: Tensor) -> Tensor:
        """Return the outputs for state (n, S), normalized, and goals (n, L, G), all visible."""
        return self._head(state, self.encoder(state, goals), goals)

    def forward_padded(self, state: Tensor, goals: Tensor, visible: Tensor) -> Tensor:
        return self._head(state, self.encoder.forward_padded(state, goals, visible), goals, visible)

    def _head(self, state: Tensor, token: Tensor, goals: Tensor, visible: Tensor | None = None) -> Tensor:
        parts = [token]
        if self.state_to_mlp:
            parts.append(state)
        if self.next_goal_time_column is not None:
            goal = upcoming(goals, self.next_goal_time_column, visible)
            parts.append(goal)
            if len(self.time_scales):
                parts.append(urgency(goal, self.next_goal_time_column, self.time_scales))
        x = torch.cat(parts, dim=-1)
        for layer in self.mlp:
            x = F.elu(layer(x))
        return self.head(x)


CHUNK_TOKENS = 4096  # computed at once: more do not fit into the cache


def equal_length_chunks(visible: Tensor, tokens: int = CHUNK_TOKENS) -> Iterator[tuple[slice, int]]:
    """Split samples, sorted by their number of keyframes, into chunks with equally many, of at most `tokens` tokens.

    Yield the rows of each chunk and the number of keyframes.
    """
    start = 0
    for count, number in enumerate(torch.bincount(visible.sum(dim=1)).tolist()):
        size, end = max(tokens // (count + 1), 1), start + number
        for first in range(start, end, size):
            yield slice(first, min(first + size, end)), count
        start = end


def unsorted_chunks(visible: Tensor, tokens: int = CHUNK_TOKENS) -> Iterator[tuple[Tensor, int]]:
    """Yield the same for samples in any order."""
    order = sorted_by_length(visible)
    for piece, count in equal_length_chunks(visible[order], tokens):
        yield order[piece], count


def sorted_by_length(visible: Tensor) -> Tensor:
    """Return rows sorted by their number of keyframes."""
    return torch.argsort(visible.sum(dim=1), stable=True)


def by_length(function: Callable[[Tensor, Tensor], Tensor], observations: Observations) -> Tensor:
    """Apply a function of state and visible keyframes to samples with any number of keyframes, in their order."""
    pieces = list(unsorted_chunks(observations.visible))
    results = [function(observations.state[rows], observations.goals[rows, :count]) for rows, count in pieces]
    order = torch.argsort(torch.cat([rows for rows, _ in pieces]))
    return torch.cat(results)[order]


SERVO_TIME = 0.09  # s before a keyframe at which its joint errors begin to pull


class PostureServo(nn.Module):
    """Pulls the joints towards the posture of the keyframe that is due next, in the last tenth of a second before it."""

    def __init__(self, time: int, column: int, actions: int, gain: float) -> None:
        super().__init__()
        self.time, self.columns = time, slice(column, column + actions)
        self.gain = nn.Parameter(torch.full((actions,), gain))

    def forward(self, goals: Tensor, visible: Tensor | None = None) -> Tensor:
        """Return what to add to the actions (n, A) for keyframes (n, L, G); nothing once the keyframe is due."""
        goal = upcoming(goals, self.time, visible)
        wait = goal[:, self.time : self.time + 1]
        nearness = torch.exp(-((wait / SERVO_TIME) ** 2)) * (wait > 0.0)
        return self.gain * nearness * goal[:, self.columns]


class Actor(nn.Module):
    """The policy: mean and standard deviation of the actions."""

    def __init__(self, config: NetworkConfig, state_size: int, goal_size: int, actions: int) -> None:
        super().__init__()
        self.network = SequenceNetwork(config, state_size, goal_size, actions)
        self.servo = None
        if config.servo_column is not None:
            if config.next_goal_time_column is None or config.servo_column + actions > goal_size:
                raise ValueError("servo_column needs next_goal_time_column, and a column of the goal for each action")
            self.servo = PostureServo(config.next_goal_time_column, config.servo_column, actions, config.servo_gain)
        self.normalizer = Normalizer(state_size)
        self.log_std = nn.Parameter(torch.full((actions,), config.initial_std).log())
        nn.init.orthogonal_(self.network.head.weight, gain=0.01)
        nn.init.zeros_(self.network.head.bias)

    @property
    def std(self) -> Tensor:
        return self.log_std.exp()

    @torch.no_grad()
    def clamp_std(self, low: float, high: float) -> None:
        """Bound the parameter itself: with a bound on its exponential it could drift to where gradients cannot bring it back."""
        self.log_std.clamp_(math.log(low), math.log(high))

    def forward(self, state: Tensor, goals: Tensor) -> Tensor:
        """Return the mean action; all keyframes visible."""
        action = self.network(self.normalizer(state), goals)
        return action if self.servo is None else action + self.servo(goals)

    def act(self, observations: Observations) -> Tensor:
        """Return the mean action for packed samples with any number of keyframes."""
        return by_length(self, observations)

    def forward_padded(self, state: Tensor, goals: Tensor, visible: Tensor) -> Tensor:
        action = self.network.forward_padded(self.normalizer(state), goals, visible)
        return action if self.servo is None else action + self.servo(goals, visible)


class Critics(nn.Module):
    """A value for each reward group, from separate networks or from one with several outputs.

    Networks predict values in units of the returns' running deviation, so that the scale of a group does not matter.
    """

    def __init__(self, config: NetworkConfig, state_size: int, goal_size: int, groups: int) -> None:
        super().__init__()
        split = [1] * groups if config.critics == "separate" else [groups]
        self.networks = nn.ModuleList(SequenceNetwork(config, state_size, goal_size, n) for n in split)
        self.returns = Normalizer(groups, memory=1e6)

    def forward(self, state: Tensor, goals: Tensor) -> Tensor:
        """Return (n, groups) in units of the returns' deviation; state normalized, all keyframes visible."""
        return torch.cat([network(state, goals) for network in self.networks], dim=-1)

    def values(self, prediction: Tensor) -> Tensor:
        """Return predictions in the units of the rewards."""
        return prediction * self.returns.std + self.returns.mean
