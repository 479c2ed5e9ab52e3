"""Players: robot state and keyframes in, joint targets out, 50 times per second."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.safety import Gains
from keystride.keyframes.goals import Goals
from keystride.policy.guide import guided
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats, Robot


@dataclass(frozen=True)
class MeasuredState:
    base: BaseState
    joint_angles: Floats  # (12,) rad
    joint_velocities: Floats  # (12,) rad/s


class ScriptPlayer(Protocol):
    @property
    def gains(self) -> Gains: ...

    def reset(self) -> None:
        """Prepare for the first step of a script."""
        ...

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        """Return joint targets (12,) for control step `step`; `goals` is a batch of one with all keyframes."""
        ...


@dataclass(frozen=True)
class BatchOfOne:
    """A batch of one robot, with the field names that a policy expects."""

    position: Floats  # (1, 3)
    orientation: Floats  # (1, 4)
    base_velocity: Floats  # (1, 3)
    angular_velocity: Floats  # (1, 3)
    joint_angles: Floats  # (1, 12)
    joint_velocities: Floats  # (1, 12)


def batch(state: MeasuredState) -> BatchOfOne:
    base = state.base
    values = (base.position, base.orientation, base.linear_velocity, base.angular_velocity)
    return BatchOfOne(*(value[None] for value in (*values, state.joint_angles, state.joint_velocities)))


class PolicyPlayer:
    """Plays a script with an exported policy."""

    def __init__(self, policy: Policy, robot: Robot, *, inbetween: bool = True) -> None:
        self.policy, self.robot, self.inbetween = policy, robot, inbetween
        self._driver = guided(policy, robot, inbetween=inbetween)
        stiffness, damping = policy.metadata.joint_stiffness, policy.metadata.joint_damping
        self.gains = Gains(np.array(stiffness), np.array(damping))
        self._action: Floats | None = None  # (1, 12)

    def reset(self) -> None:
        self._action = None
        self._driver = guided(self.policy, self.robot, inbetween=self.inbetween)

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        robots = batch(state)
        if self._action is None:
            self._action = self._driver.resting_action(robots.joint_angles)
        targets, self._action = self._driver.step(robots, goals, np.array([step]), self._action)
        return targets[0]
