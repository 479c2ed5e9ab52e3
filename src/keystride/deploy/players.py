"""Players compute joint targets from the robot's state and the keyframes, 50 times per second.

`PolicyPlayer` runs an exported policy. The stubs need none: an open-loop trot towards the next keyframe, and faulty
variants of it. They ignore roll, pitch, posture and height, and are used only when the self-test or a test names one."""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from keystride import geometry
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.safety import Gains, uniform
from keystride.keyframes.goals import CONTROL_DT, Goals, used
from keystride.policy.guide import guided
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet


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


STIFFNESS, DAMPING = 120.0, 3.0  # stiffer than a policy's, because nothing here corrects sagging
TROT_PERIOD = 0.4  # s
STRIDE = 1.8  # factor on the ideal stride, to compensate for slip and lag
SWING_HEIGHT = 0.07  # m
TOP_SPEED = 0.5  # m/s
TOP_TURN = 0.8  # rad/s
PHASES = np.array([0.0, 0.5, 0.5, 0.0])  # diagonal pairs


class TrotStub:
    """Trots to the next keyframe, and stands once it is there."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.gains: Gains = uniform(STIFFNESS, DAMPING)
        self._home = feet_from_joints(robot, robot.stance)  # (4, 3) base

    def reset(self) -> None:
        pass

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        velocity, turn = self._wish(state, goals, step)  # (2,) base, rad/s
        moving = np.linalg.norm(velocity) > 0.02 or abs(turn) > 0.05
        feet = self._feet(state, velocity, turn, step * CONTROL_DT) if moving else self._home
        return joints_from_feet(self.robot, feet)[0]

    def _wish(self, state: MeasuredState, goals: Goals, step: int) -> tuple[Floats, float]:
        due = np.where(used(goals)[0], goals.step[0], -100)  # (K,)
        if step > due.max() + 25:
            return np.zeros(2), 0.0
        row = int(np.argmin(np.where(due > step, due, 10**6)) if (due > step).any() else np.argmax(due))
        left = max((goals.step[0, row] - step) * CONTROL_DT, 0.4)  # s
        yaw = float(geometry.yaw_of(state.base.orientation))
        offset = geometry.rotate_yaw(np.asarray(-yaw), (goals.position[0, row] - state.base.position)[:2])
        heading = float(goals.angles[0, row, 2]) if goals.presence[0, row, 3] else 0.0
        velocity = offset / left * goals.presence[0, row, 0]
        speed = float(np.linalg.norm(velocity))
        turn = float(geometry.wrap(np.asarray(heading - yaw))) / left
        return velocity * min(1.0, TOP_SPEED / max(speed, 1e-6)), float(np.clip(turn, -TOP_TURN, TOP_TURN))

    def _feet(self, state: MeasuredState, velocity: Floats, turn: float, t: float) -> Floats:
        """Return the feet in the base frame, (4, 3): those on the ground move back, the others swing forward."""
        phase = (t / TROT_PERIOD + PHASES) % 1.0  # (4,) on the ground for the first half
        stance = phase < 0.5
        along = np.where(stance, 0.5 - 2 * phase, 2 * phase - 1.5)  # (4,) from half a step forward to half a step back
        speed = np.zeros((4, 2)) + velocity + turn * np.stack([-self._home[:, 1], self._home[:, 0]], axis=-1)
        feet = self._home.copy()
        feet[:, :2] += along[:, None] * STRIDE * speed * TROT_PERIOD / 2
        feet[:, :2] += (
            0.08 * (state.base.linear_velocity[:2] - velocity) * ~stance[:, None]
        )  # step in the direction of the drift
        feet[:, 2] += np.where(stance, 0.0, SWING_HEIGHT * np.sin(2 * np.pi * (phase - 0.5)))
        return feet


class SlowStub(TrotStub):
    """Takes longer than 20 ms for each control step once it walks."""

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        if step > 50:
            time.sleep(0.15)
        return super().step(state, goals, step)


BLOCKED_AT = 50  # step


def hold_interpreter(seconds: float) -> None:
    """Sleep with the interpreter lock held, so that no other thread of the process runs."""
    ctypes.PyDLL(None).usleep(round(1e6 * seconds))


class HogStub(TrotStub):
    """Blocks the whole process for a while once it walks."""

    blocked = 0.5  # s

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self._has_blocked = False

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        if step >= BLOCKED_AT and not self._has_blocked:  # not ==, because a busy machine may skip a step
            self._has_blocked = True
            hold_interpreter(self.blocked)
        return super().step(state, goals, step)


class StiffStub(TrotStub):
    """Has a stiffness and a damping that differ from those used for standing up."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.gains = uniform(140.0, 4.0)


class LeapStub(HogStub):
    """Blocks the whole process for less than the guard's timeout, then folds a leg at once."""

    blocked = 0.03  # s

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        targets = super().step(state, goals, step)
        if BLOCKED_AT <= step < BLOCKED_AT + 3:
            targets[5] = self.robot.lower[5]
        return targets


class RunawayStub(TrotStub):
    """Swings its legs from one end of their range to the other, once it walks."""

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        if step > 40:
            return self.robot.upper if step // 5 % 2 else self.robot.lower
        return super().step(state, goals, step)


class ShapeStub(TrotStub):
    """Returns targets for 11 joints instead of 12."""

    def step(self, state: MeasuredState, goals: Goals, step: int) -> Floats:
        return super().step(state, goals, step)[:11]


STUBS: dict[str, Callable[[Robot], TrotStub]] = {
    "STUB-TROT": TrotStub,
    "STUB-SLOW": SlowStub,
    "STUB-HOG": HogStub,
    "STUB-LEAP": LeapStub,
    "STUB-STIFF": StiffStub,
    "STUB-RUNAWAY": RunawayStub,
    "STUB-SHAPE": ShapeStub,
}
