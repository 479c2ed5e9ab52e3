"""A padded batch of keyframes as arrays, and its errors as a robot observes them.

Works on NumPy arrays and torch tensors alike: the environment, the exported graph and the measurements share it.
E is environments, K keyframes. An unused row has no component present, and is never visible.
"""

from dataclasses import dataclass, fields

import numpy as np
from array_api_compat import array_namespace

from keystride import geometry
from keystride.geometry import Array

CONTROL_DT = 0.02  # s
COMPONENTS = ("position", "roll", "pitch", "yaw", "posture")
NEVER_DUE = 2**30  # a control step that no script reaches
VISIBLE_STEPS_AFTER = 50  # a keyframe stays visible for one second after it was due (paper, observation space)

ERROR_SIZE = 18  # 3 position in the base frame, 3 angles, 12 joints
HEIGHT_GAIN = 5.0  # factor on height errors in the token: they are centimetres where distances are metres
GOAL_SIZE = ERROR_SIZE + 1 + len(COMPONENTS)


@dataclass(frozen=True)
class Goals:
    """Keyframes of many environments. Absent components hold zeros."""

    step: Array  # (E, K) control step at which the keyframe is due
    position: Array  # (E, K, 3) world, m
    angles: Array  # (E, K, 3) roll, pitch, yaw, rad
    posture: Array  # (E, K, 12) rad
    presence: Array  # (E, K, 5) bool, in the order of COMPONENTS
    height: Array  # (E, K) bool: whether z belongs to the position

    def __getitem__(self, rows: Array) -> "Goals":
        return Goals(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __setitem__(self, rows: Array, other: "Goals") -> None:
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)


def empty_goals(environments: int, keyframes: int, joints: int = 12) -> Goals:
    shape = (environments, keyframes)
    return Goals(
        step=np.zeros(shape, dtype=np.int64),
        position=np.zeros((*shape, 3)),
        angles=np.zeros((*shape, 3)),
        posture=np.zeros((*shape, joints)),
        presence=np.zeros((*shape, len(COMPONENTS)), dtype=bool),
        height=np.zeros(shape, dtype=bool),
    )


def used(goals: Goals) -> Array:
    """Return (E, K) which rows hold a keyframe."""
    return array_namespace(goals.presence).any(goals.presence, axis=-1)


def with_components(goals: Goals, presence: Array) -> Goals:
    """Return the goals with only the components in presence (E, K, 5); the others become zero, even if they were NaN."""
    xp = array_namespace(goals.position)

    def kept(values: Array, bits: Array) -> Array:
        return xp.where(bits, values, xp.zeros_like(values))  # a product would keep NaN

    return Goals(
        step=goals.step,
        position=kept(goals.position, presence[..., :1]),
        angles=kept(goals.angles, presence[..., 1:4]),
        posture=kept(goals.posture, presence[..., 4:]),
        presence=presence,
        height=goals.height & presence[..., 0],
    )


def visible(goals: Goals, now: Array) -> Array:
    """Return (E, K) which keyframes the policy sees at control step now (E,)."""
    return used(goals) & (now[:, None] - goals.step <= VISIBLE_STEPS_AFTER)


def next_only(goals: Goals, now: Array) -> Array:
    """Return (E, K) visibility of the next-goal-aware baseline: the earliest keyframe that is not yet due, alone."""
    xp = array_namespace(goals.step)
    coming = used(goals) & (goals.step >= now[:, None])
    step = xp.where(coming, goals.step, NEVER_DUE)
    return coming & (step == xp.min(step, axis=-1, keepdims=True))


def goal_errors(goals: Goals, position: Array, orientation: Array, joints: Array) -> Array:
    """Return the error to each keyframe, (E, K, 18): 3 m in the base frame, 3 rad wrapped, 12 rad; 0 where absent."""
    xp = array_namespace(position)
    offset = goals.position - position[:, None, :]  # (E, K, 3) world
    up = offset[..., 2:] * xp.astype(goals.height[..., None], offset.dtype)
    offset = xp.concat([offset[..., :2], up], axis=-1)
    base = geometry.rotate_inverse(orientation[:, None, :], offset)  # (E, K, 3) base
    turn = geometry.wrap(goals.angles - geometry.roll_pitch_yaw(orientation)[:, None, :])
    bend = goals.posture - joints[:, None, :]
    bits = xp.astype(goals.presence, offset.dtype)  # (E, K, 5)
    return xp.concat([base * bits[..., :1], turn * bits[..., 1:4], bend * bits[..., 4:]], axis=-1)


def goal_observation(goals: Goals, wait: Array, position: Array, orientation: Array, joints: Array) -> Array:
    """Return the goal part of each token, (E, K, 24): errors with the height along the vertical, wait (E, K) in s, presence bits."""
    xp = array_namespace(position)
    error = goal_errors(goals, position, orientation, joints)
    bits = xp.astype(goals.presence, error.dtype)
    # Along the vertical, not the base's z: at a metre's distance 3 degrees of pitch would look like 5 cm of height.
    asked = xp.astype(goals.height, error.dtype) * bits[..., 0]
    up = (HEIGHT_GAIN * asked * (goals.position[..., 2] - position[:, None, 2]))[..., None]
    return xp.concat([error[..., :2], up, error[..., 3:], wait[..., None], bits], axis=-1)
