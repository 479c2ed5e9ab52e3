"""The rewards: each a plain function of arrays, named after its row in the paper's tables; a group is their product."""

import numpy as np

from keystride.physics.simulator import State
from keystride.robot.description import Floats, Robot
from keystride.task.config import GoalWidths, RegularizationWidths


def kernel(x: Floats, sigma: Floats | float, delta: float = 0.0) -> Floats:
    """exp(-(max(0, |x| - delta) / sigma)^2) over the last axis; 1 inside the tolerance delta."""
    excess = np.maximum(np.sqrt(np.sum(x * x, axis=-1)) - delta, 0.0)
    return np.exp(-((excess / sigma) ** 2))


def action_rate(action: Floats, previous: Floats, sigma: float) -> Floats:
    """On the plain difference of raw actions over a control step.

    Divided by the 20 ms it would be some 100 under exploration noise, and the product of the group zero throughout;
    undivided it is 1 to 3, where a width of 8 still tells smooth from rough.
    """
    return kernel(action - previous, sigma)


def base_horizontal_acceleration(velocity: Floats, previous: Floats, dt: float, sigma: float) -> Floats:
    """Finite difference of world velocities (E, 3) over a control step, m/s^2."""
    return kernel((velocity - previous)[:, :2] / dt, sigma)


def joint_acceleration(velocity: Floats, previous: Floats, dt: float, sigma: float, delta: float) -> Floats:
    """Finite difference of joint velocities over a control step, rad/s^2."""
    return kernel((velocity - previous) / dt, sigma, delta)


def joint_soft_limits(angles: Floats, lower: Floats, upper: Floats, sigma: float) -> Floats:
    return kernel(np.maximum(np.maximum(angles - upper, lower - angles), 0.0), sigma)


def soft_limits(robot: Robot, share: float) -> tuple[Floats, Floats]:
    """The middle share of every joint's range."""
    middle, half = (robot.lower + robot.upper) / 2, (robot.upper - robot.lower) / 2
    return middle - share * half, middle + share * half


def regularization(
    robot: Robot, widths: RegularizationWidths, state: State, before: State, action: Floats, previous: Floats, dt: float
) -> dict[str, Floats]:
    """The terms of the regularisation group, (E,) each."""
    lower, upper = soft_limits(robot, widths.soft_limit_share)
    return {
        "action_rate": action_rate(action, previous, widths.action_rate),
        "base_acceleration": base_horizontal_acceleration(
            state.linear_velocity, before.linear_velocity, dt, widths.base_acceleration
        ),
        "joint_acceleration": joint_acceleration(
            state.joint_velocities,
            before.joint_velocities,
            dt,
            widths.joint_acceleration,
            widths.joint_acceleration_tolerance,
        ),
        "soft_limits": joint_soft_limits(state.joint_angles, lower, upper, widths.soft_limits),
    }


def tracking(state: State, clip: State) -> Floats:
    """How closely a robot follows a clip (E,), in [0, 1]: joints and base, places and velocities.

    A weighted sum, not a product: a robot that is off in one respect still learns about the others.
    """
    turned = 2.0 * np.arccos(np.clip(np.abs(np.sum(clip.orientation * state.orientation, axis=1)), 0.0, 1.0))
    away = state.position - clip.position
    return (
        0.35 * kernel(state.joint_angles - clip.joint_angles, 0.8)
        + 0.1 * kernel(state.joint_velocities - clip.joint_velocities, 14.0)
        + 0.15 * kernel(away[:, :2], 0.2)
        + 0.2 * kernel(away[:, 2:], 0.06)
        + 0.1 * kernel(turned[:, None], 0.3)
        + 0.1 * kernel(state.linear_velocity - clip.linear_velocity, 0.5)
    )


def stillness(state: State, position: Floats) -> Floats:
    """How still a robot stands where it was when its last keyframe was due (E,), in [0, 1]; position (E, 3) is that place."""
    away = state.position - position
    return (
        0.25 * kernel(state.linear_velocity, 0.25)
        + 0.2 * kernel(state.angular_velocity, 0.6)
        + 0.2 * kernel(state.joint_velocities, 4.0)
        + 0.2 * kernel(away[:, :2], 0.12)
        + 0.15 * kernel(away[:, 2:], 0.06)
    )


def error_sizes(error: Floats) -> Floats:
    """(..., 18) goal errors to the (..., 5) sizes that the goal kernels see: m, rad, rad, rad, rad (norm of 12)."""
    distance = np.linalg.norm(error[..., :3], axis=-1, keepdims=True)
    bend = np.linalg.norm(error[..., 6:], axis=-1, keepdims=True)
    return np.concatenate([distance, np.abs(error[..., 3:6]), bend], axis=-1)


def goal(sizes: Floats, presence: Floats, due: Floats, widths: Floats) -> Floats:
    """Product over the components present of the goal kernels, on the one step when a keyframe is due; (E,).

    sizes and presence (E, K, 5), due (E, K) bool, widths (5,). Absent components are met by definition.
    """
    terms = np.where(presence, np.exp(-((sizes / widths) ** 2)), 1.0)
    return np.sum(np.prod(terms, axis=-1) * due, axis=-1)


def paper_widths(widths: GoalWidths) -> Floats:
    """(5,) in the order of the goal components."""
    return np.array([widths.position, widths.roll, widths.pitch, widths.yaw, widths.posture])


def followed_widths(widths: GoalWidths, reached: Floats) -> Floats:
    """Widths tied to the mean error reached (5,), from the start's down to the narrowest."""
    narrow = paper_widths(widths)
    return np.clip(widths.follow * reached, widths.narrowest * narrow, widths.start * narrow)
