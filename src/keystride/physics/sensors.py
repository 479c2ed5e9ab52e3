"""Measurement errors of a robot: noise, bias, delay, wrong joint zeros, and poses that fail to arrive."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.physics.simulator import State
from keystride.robot.description import Floats


@dataclass(frozen=True)
class SensorErrors:
    """Standard deviations unless stated otherwise. With all of them zero, measurements are exact."""

    joint_zero: float = 0.0
    """Largest error of a joint's zero in rad, drawn for each episode. The motor's own control is off by the same amount."""
    joint_angle: float = 0.0
    """rad"""
    joint_velocity: float = 0.0
    """rad/s"""
    angular_velocity: float = 0.0
    """rad/s"""
    tilt: float = 0.0
    """rad, of roll and pitch"""
    velocity: float = 0.0
    """m/s"""
    velocity_bias: float = 0.0
    """m/s along each axis at most, for a whole episode"""
    height: float = 0.0
    """m"""
    height_bias: float = 0.0
    """m at most, for a whole episode"""
    delay: float = 0.0
    """Longest age of a measurement in control steps, at most 1; drawn for each episode."""
    dropout_every: float = 0.0
    """Mean number of control steps from one loss of the pose to the next; 0: the pose is never lost."""
    dropout_steps: int = 10
    """Control steps for which position and heading then keep their last values."""
    share: float = 1.0
    """Share of the robots, the first ones, that have these errors; the others measure exactly."""


NO_ERRORS = SensorErrors()

ROBOT_ERRORS = SensorErrors(
    joint_zero=0.02,
    joint_angle=0.01,
    joint_velocity=1.0,
    angular_velocity=0.2,
    tilt=0.05,
    velocity=0.1,
    velocity_bias=0.1,
    height=0.01,
    height_bias=0.02,
    delay=1.0,
    dropout_every=200.0,
)
"""Commonly assumed errors of the sensors and state estimators of a Go2."""


class Sensors:
    """The sensors of many robots. Equal seeds and equal calls give equal measurements."""

    def __init__(self, errors: SensorErrors, environments: int, joints: int = 12, *, seed: int = 0) -> None:
        self.errors = errors
        self._random = np.random.default_rng(seed)
        exact = replace(errors, share=1.0) == NO_ERRORS
        self._wrong_count = 0 if exact else round(errors.share * environments)
        self._zero = np.zeros((environments, joints))
        self._velocity_bias = np.zeros((environments, 3))
        self._height_bias = np.zeros(environments)
        self._age = np.zeros(environments)  # control steps
        self._lost = np.zeros(environments, dtype=np.int64)  # control steps for which the pose stays lost
        self._held = np.zeros((environments, 3))  # x, y, yaw when it was lost
        self._before: State | None = None

    def reset(self, ids: NDArray[np.intp], state: State) -> None:
        """Draw the errors that last for an episode. `state` holds all robots, including those that were just reset."""
        errors, count = self.errors, len(ids)
        self._zero[ids] = self._random.uniform(-errors.joint_zero, errors.joint_zero, (count, self._zero.shape[1]))
        self._velocity_bias[ids] = self._random.uniform(-errors.velocity_bias, errors.velocity_bias, (count, 3))
        self._height_bias[ids] = self._random.uniform(-errors.height_bias, errors.height_bias, count)
        self._age[ids] = self._random.uniform(0.0, errors.delay, count)
        self._lost[ids] = 0
        self._zero[self._wrong_count :] = 0.0
        before = {field.name: getattr(self._before or state, field.name).copy() for field in fields(State)}
        for name, values in before.items():
            values[ids] = getattr(state, name)[ids]
        self._before = State(**before)

    def command(self, targets: Floats) -> Floats:
        """Return the joint angles that motors really aim at when given `targets` (E, 12) rad."""
        return targets - self._zero

    def measure(self, state: State) -> State:
        """Return what the robots measure in this state. Call it once each control step."""
        if not self._wrong_count:
            return state
        old = _between(state, self._before or state, self._age)
        self._before = state
        position, orientation = self._hold_lost(self._noisy_height(old.position), self._tilted(old.orientation))
        velocity = self._with_noise(old.linear_velocity, self.errors.velocity) + self._velocity_bias
        measured = replace(
            old,
            position=position,
            orientation=orientation,
            linear_velocity=velocity,
            angular_velocity=self._with_noise(old.angular_velocity, self.errors.angular_velocity),
            joint_angles=self._with_noise(old.joint_angles, self.errors.joint_angle) + self._zero,
            joint_velocities=self._with_noise(old.joint_velocities, self.errors.joint_velocity),
        )
        for field in fields(State) if self._wrong_count < len(state.position) else ():
            getattr(measured, field.name)[self._wrong_count :] = getattr(state, field.name)[self._wrong_count :]
        return measured

    def snapshot(self) -> dict[str, Any]:
        """Return everything that future measurements depend on."""
        before = self._before
        kept = {} if before is None else {f.name: getattr(before, f.name).copy() for f in fields(State)}
        return {
            "random": self._random.bit_generator.state,
            "before": kept,
            **{name: getattr(self, f"_{name}").copy() for name in _PER_ROBOT},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._random.bit_generator.state = saved["random"]
        for name in _PER_ROBOT:
            setattr(self, f"_{name}", np.array(saved[name]))
        before = saved["before"]
        self._before = State(**{name: np.array(values) for name, values in before.items()}) if before else None

    def _with_noise(self, values: Floats, deviation: float) -> Floats:
        return values + deviation * self._random.standard_normal(values.shape) if deviation else values

    def _noisy_height(self, position: Floats) -> Floats:
        position = position.copy()
        position[:, 2] = self._with_noise(position[:, 2], self.errors.height) + self._height_bias
        return position

    def _tilted(self, orientation: Floats) -> Floats:
        if not self.errors.tilt:
            return orientation
        tilt = np.zeros((len(orientation), 3))
        tilt[:, :2] = self.errors.tilt * self._random.standard_normal((len(orientation), 2))
        return geometry.multiply(orientation, geometry.from_rotation_vector(tilt))

    def _hold_lost(self, position: Floats, orientation: Floats) -> tuple[Floats, Floats]:
        """Keep horizontal position and heading while the pose is lost; gravity is still measured."""
        if not self.errors.dropout_every:
            return position, orientation
        yaw = geometry.yaw_of(orientation)
        begins = (self._lost == 0) & (self._random.random(len(yaw)) < 1.0 / self.errors.dropout_every)
        self._lost = np.where(begins, self.errors.dropout_steps, np.maximum(self._lost - 1, 0))
        lost = self._lost > 0
        here = np.concatenate([position[:, :2], yaw[:, None]], axis=1)
        self._held = np.where((lost & ~begins)[:, None], self._held, here)
        position = np.concatenate([self._held[:, :2], position[:, 2:]], axis=1)
        turn = np.where(lost, self._held[:, 2] - yaw, 0.0)
        return position, geometry.multiply(geometry.from_yaw(turn), orientation)


_PER_ROBOT = ("zero", "velocity_bias", "height_bias", "age", "lost", "held")


def _between(now: State, before: State, age: Floats) -> State:
    """Return the state `age` (E,) control steps ago, interpolated between the previous state and this one."""

    def mix(name: str) -> Floats:
        new, old = getattr(now, name), getattr(before, name)
        share = age.reshape(-1, *[1] * (new.ndim - 1))
        return new + share * (old - new)

    sign = np.sign(np.sum(now.orientation * before.orientation, axis=1, keepdims=True))
    turned = now.orientation + age[:, None] * (np.where(sign == 0, 1.0, sign) * before.orientation - now.orientation)
    names = ("position", "linear_velocity", "angular_velocity", "joint_angles", "joint_velocities")
    return replace(
        now,
        orientation=turned / np.linalg.norm(turned, axis=1, keepdims=True),
        **{name: mix(name) for name in names},
    )
