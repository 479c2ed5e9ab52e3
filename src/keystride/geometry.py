"""Quaternions (w x y z), yaw frames and angles.

Every function works on NumPy arrays and on torch tensors (through the array API), so that the environment, the exported
graph and the evaluation share one set of formulas. Leading axes broadcast.
"""

from math import pi
from typing import Any

import numpy as np
from array_api_compat import array_namespace

Array = Any  # a NumPy array or a torch tensor

GRAVITY = 9.81  # m/s2, along -z of the world frame


def wrap(angle: Array) -> Array:
    """Return the same angle in (-pi, pi]."""
    xp = array_namespace(angle)
    return angle - 2 * pi * xp.ceil((angle - pi) / (2 * pi))


def multiply(a: Array, b: Array) -> Array:
    """Return the Hamilton product: the rotation by b, then by a."""
    xp = array_namespace(a)
    aw, ax, ay, az = (a[..., i] for i in range(4))
    bw, bx, by, bz = (b[..., i] for i in range(4))
    return xp.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: Array) -> Array:
    """Return the inverse of unit quaternions."""
    xp = array_namespace(q)
    return xp.concat([q[..., :1], -q[..., 1:]], axis=-1)


def normalize(q: Array) -> Array:
    """Return quaternions scaled to unit length."""
    xp = array_namespace(q)
    return q / xp.sqrt(xp.sum(q * q, axis=-1, keepdims=True))


def cross(a: Array, b: Array) -> Array:
    """Return the cross product of vectors (..., 3)."""
    xp = array_namespace(a)
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return xp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def rotate(q: Array, v: Array) -> Array:
    """Return a vector of the inner frame in the outer one: world_from_base applied to a base vector."""
    axis = q[..., 1:]
    twice = 2.0 * cross(axis, v)
    return v + q[..., :1] * twice + cross(axis, twice)


def rotate_inverse(q: Array, v: Array) -> Array:
    """Return a vector of the outer frame in the inner one."""
    return rotate(conjugate(q), v)


def projected_gravity(q: Array) -> Array:
    """Return the direction of gravity in the base frame, as a unit vector."""
    xp = array_namespace(q)
    w, x, y, z = (q[..., i] for i in range(4))
    return xp.stack([2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1], axis=-1)


def yaw_of(q: Array) -> Array:
    """Return the yaw of unit quaternions."""
    xp = array_namespace(q)
    w, x, y, z = (q[..., i] for i in range(4))
    return xp.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def roll_pitch_yaw(q: Array) -> Array:
    """Return the intrinsic z-y-x angles (yaw, then pitch, then roll) of unit quaternions, as (..., 3) roll pitch yaw."""
    xp = array_namespace(q)
    w, x, y, z = (q[..., i] for i in range(4))
    roll = xp.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    sine = 2 * (w * y - x * z)
    cosine = xp.sqrt((w * w + x * x - y * y - z * z) ** 2 + (2 * (x * y + w * z)) ** 2)
    return xp.stack([roll, xp.atan2(sine, cosine), yaw_of(q)], axis=-1)


def from_roll_pitch_yaw(angles: Array) -> Array:
    """Return unit quaternions for angles (..., 3); the inverse of `roll_pitch_yaw`."""
    xp = array_namespace(angles)
    cr, cp, cy = (xp.cos(angles[..., i] / 2) for i in range(3))
    sr, sp, sy = (xp.sin(angles[..., i] / 2) for i in range(3))
    return xp.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=-1,
    )


def from_yaw(yaw: Array) -> Array:
    """Return the rotations about the vertical by these angles."""
    xp = array_namespace(yaw)
    zero = xp.zeros_like(yaw)
    return xp.stack([xp.cos(yaw / 2), zero, zero, xp.sin(yaw / 2)], axis=-1)


def rotate_yaw(yaw: Array, v: Array) -> Array:
    """Rotate vectors about the vertical; v has 2 or 3 components, yaw one angle for each vector."""
    xp = array_namespace(yaw)
    c, s = xp.cos(yaw), xp.sin(yaw)
    turned = xp.stack([c * v[..., 0] - s * v[..., 1], s * v[..., 0] + c * v[..., 1]], axis=-1)
    return xp.concat([turned, v[..., 2:]], axis=-1)


def rotation_vector(q: Array) -> Array:
    """Return the rotation as axis times angle (angle at most pi)."""
    xp = array_namespace(q)
    q = xp.where(q[..., :1] < 0, -q, q)
    sine = xp.sqrt(xp.sum(q[..., 1:] ** 2, axis=-1, keepdims=True))
    angle = 2 * xp.atan2(sine, q[..., :1])
    tiny = sine < 1e-9
    scale = xp.where(tiny, 2 * xp.ones_like(sine), angle / xp.where(tiny, xp.ones_like(sine), sine))
    return scale * q[..., 1:]


def from_rotation_vector(v: Array) -> Array:
    """Return unit quaternions for rotation vectors; the inverse of `rotation_vector`."""
    xp = array_namespace(v)
    angle = xp.sqrt(xp.sum(v * v, axis=-1, keepdims=True))
    tiny = angle < 1e-9
    safe = xp.where(tiny, xp.ones_like(angle), angle)
    scale = xp.where(tiny, 0.5 * xp.ones_like(angle), xp.sin(angle / 2) / safe)
    return xp.concat([xp.cos(angle / 2), scale * v], axis=-1)


def slerp(a: Array, b: Array, t: Array) -> Array:
    """Interpolate from a to b along the shorter arc; t in [0, 1] with one trailing axis fewer than a."""
    return multiply(a, from_rotation_vector(t[..., None] * rotation_vector(multiply(conjugate(a), b))))


# Reflection in the robot's x-z plane: left becomes right. On quaternions it negates x and z.
MIRROR_VECTOR = np.array([1.0, -1.0, 1.0])
MIRROR_ROTATION = np.array([-1.0, 1.0, -1.0])  # roll, pitch, yaw; and angular velocity
MIRROR_QUATERNION = np.array([1.0, -1.0, 1.0, -1.0])
