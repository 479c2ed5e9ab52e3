"""The exported graphs: everything between the robot's state with its keyframes and the joint targets.

Goal tokens, masking, normalisation and action scaling are inside, so that nothing of it is written a second time
wherever the policy runs.
"""

import numpy as np
import torch
from torch import Tensor, nn

from keystride.keyframes.goals import COMPONENTS, Goals, goal_observation
from keystride.learner.networks import Actor, Critics, Normalizer, SequenceNetwork
from keystride.policy.interface import INPUTS
from keystride.robot.description import Robot
from keystride.task.observations import state_observation


class Sight(nn.Module):
    """The graph's inputs to what the networks were trained on: state (B, 46), goals (B, K, 24), visible (B, K)."""

    def __init__(self, components: tuple[str, ...]) -> None:
        super().__init__()
        self.register_buffer("learnt", torch.tensor([name in components for name in COMPONENTS]))
        self.learnt: Tensor

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        given = dict(zip(INPUTS, inputs, strict=True))
        position, orientation, joints = (given[name] for name in ("base_position", "base_orientation", "joint_angles"))
        state = state_observation(
            orientation,
            position[:, 2],
            given["base_linear_velocity"],
            given["base_angular_velocity"],
            joints,
            given["joint_velocities"],
            given["previous_action"],
        )
        goals = self._goals(given)
        tokens = goal_observation(goals, given["goal_time"], position, orientation, joints)
        return state, tokens, given["goal_visible"] & goals.presence.any(dim=-1)

    def _goals(self, given: dict[str, Tensor]) -> Goals:
        """What is absent may hold anything, even NaN, which no multiplication by zero removes."""
        bits = given["goal_presence"] & self.learnt  # (B, K, 5)
        return Goals(
            step=given["goal_time"],
            position=given["goal_position"].masked_fill(~bits[..., :1], 0.0),
            angles=given["goal_angles"].masked_fill(~bits[..., 1:4], 0.0),
            posture=given["goal_posture"].masked_fill(~bits[..., 4:], 0.0),
            presence=bits,
            height=given["goal_height"],
        )


class PolicyGraph(nn.Module):
    """Joint targets (B, 12) rad, and the action (B, 12)."""

    def __init__(self, actor: Actor, robot: Robot, components: tuple[str, ...]) -> None:
        super().__init__()
        self.sight, self.actor, self.scale = Sight(components), actor, robot.action_scale
        for name, values in (("stance", robot.stance), ("lower", robot.lower), ("upper", robot.upper)):
            self.register_buffer(name, torch.tensor(np.array(values), dtype=torch.float32))
        self.stance: Tensor
        self.lower: Tensor
        self.upper: Tensor

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        action = self.actor.forward_padded(*self.sight(*inputs))
        return torch.clamp(self.stance + self.scale * action, self.lower, self.upper), action


class CriticGraph(nn.Module):
    """Values (B, G) in reward units."""

    def __init__(self, critics: Critics, normalizer: Normalizer, components: tuple[str, ...]) -> None:
        super().__init__()
        self.sight, self.critics, self.normalizer = Sight(components), critics, normalizer

    def forward(self, *inputs: Tensor) -> Tensor:
        state, goals, visible = self.sight(*inputs)
        state = self.normalizer(state)
        networks = (network for network in self.critics.networks if isinstance(network, SequenceNetwork))
        parts = [network.forward_padded(state, goals, visible) for network in networks]
        return self.critics.values(torch.cat(parts, dim=-1))
