"""The rewards: kernels named after the rows of the paper's tables, and one function of a control step for each reward.

A reward is a function of a `ControlStep` with an entry in `REWARDS`; a group of `learner.ppo.groups` names the rewards it adds up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT, NEVER_DUE, Goals
from keystride.physics.simulator import State, state_rows
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import calf_rates
from keystride.task.config import GoalWidths, RegularizationWidths, TaskConfig

Bools = NDArray[np.bool_]
CLEARANCE = 0.05  # m: how high dogs of this size lift their feet
SWING = 0.24  # s for which dogs of this size have a foot in the air
SHORT_SWING_MARGIN = 0.1  # s: a swing shorter than `SWING` by this much costs all that a swing can cost
FOOT_DRAG = 1.0  # m/s over all feet at which the reward for footwork falls to 1 / e
PACE = 0.3  # m/s or rad/s, error at which the reward for pace falls to 1 / e if the wanted pace is zero
PACE_SHARE = 0.5  # share of the wanted pace by which that width grows
FASTEST_PACE = 1.8  # m/s and rad/s, largest wanted pace, however far away the keyframe is
LAST_MOMENT = 0.1  # s before a keyframe is due; from then on the wanted pace is the distance divided by this


def kernel(x: Floats, sigma: Floats | float, delta: float = 0.0) -> Floats:
    """Return exp(-(max(0, |x| - delta) / sigma)^2) over the last axis; 1 inside the tolerance delta."""
    excess = np.maximum(np.sqrt(np.sum(x * x, axis=-1)) - delta, 0.0)
    return np.exp(-((excess / sigma) ** 2))


def action_rate(action: Floats, previous: Floats, sigma: float) -> Floats:
    """Return the kernel of the plain difference of raw actions over a control step.

    Divided by the 20 ms it would be some 100 under exploration noise, and the product of the terms always zero;
    undivided it is 1 to 3, where a width of 8 still distinguishes smooth from rough.
    """
    return kernel(action - previous, sigma)


def base_horizontal_acceleration(velocity: Floats, previous: Floats, dt: float, sigma: float) -> Floats:
    """Return the kernel of the finite difference of world velocities (E, 3) over a control step, m/s^2."""
    return kernel((velocity - previous)[:, :2] / dt, sigma)


def joint_acceleration(velocity: Floats, previous: Floats, dt: float, sigma: float, delta: float) -> Floats:
    """Return the kernel of the finite difference of joint velocities over a control step, rad/s^2."""
    return kernel((velocity - previous) / dt, sigma, delta)


def joint_soft_limits(angles: Floats, lower: Floats, upper: Floats, sigma: float) -> Floats:
    """Return the kernel of how far joints lie beyond their soft limits, rad."""
    return kernel(np.maximum(np.maximum(angles - upper, lower - angles), 0.0), sigma)


def soft_limits(robot: Robot, share: float) -> tuple[Floats, Floats]:
    """Return the bounds of the middle share of every joint's range."""
    middle, half = (robot.lower + robot.upper) / 2, (robot.upper - robot.lower) / 2
    return middle - share * half, middle + share * half


def regularization_terms(
    robot: Robot, widths: RegularizationWidths, state: State, before: State, action: Floats, previous: Floats, dt: float
) -> dict[str, Floats]:
    """Return the terms of the regularization reward, (E,) each."""
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


def clip_tracking(state: State, clip: State) -> Floats:
    """Return how closely robots follow a clip (E,), in [0, 1]: joints and base, positions and velocities.

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


def standing_still(state: State, position: Floats) -> Floats:
    """Return how still robots stand at a position (E, 3), in [0, 1]; (E,)."""
    away = state.position - position
    return (
        0.25 * kernel(state.linear_velocity, 0.25)
        + 0.2 * kernel(state.angular_velocity, 0.6)
        + 0.2 * kernel(state.joint_velocities, 4.0)
        + 0.2 * kernel(away[:, :2], 0.12)
        + 0.15 * kernel(away[:, 2:], 0.06)
    )


def foot_drag(feet: Floats, previous: Floats, rates: Floats, dt: float, foot_radius: float) -> Floats:
    """Return how fast the lowest points of feet (E, 4, 3) slide, m/s, summed over the feet; those lifted by `CLEARANCE` do not count.

    rates (E, 4, 3) are the angular velocities of the calves in the world: a foot that only rolls does not slide.
    """
    rolling = foot_radius * np.stack([-rates[..., 1], rates[..., 0]], axis=-1)
    speed = np.linalg.norm((feet - previous)[..., :2] / dt + rolling, axis=-1)  # (E, 4)
    nearness = np.clip(1.0 - (feet[..., 2] - foot_radius) / CLEARANCE, 0.0, 1.0)
    return np.sum(speed * nearness, axis=-1)


def short_swing_penalty(swing: Floats) -> Floats:
    """Return how far the swings of landing feet fell short of `SWING`, up to 1 per foot, summed; swing (E, 4) s, 0 where none lands."""
    return np.sum(np.clip((SWING - swing) / SHORT_SWING_MARGIN, 0.0, 1.0) * (swing > 0), axis=-1)


def pace_match(rate: Floats, left: Floats, seconds: Floats) -> Floats:
    """Return how close rates (..., N) come to covering what is left (..., N) in the time left (...,), in [0, 1]."""
    wanted = left / np.maximum(seconds, LAST_MOMENT)[..., None]
    size = np.linalg.norm(wanted, axis=-1)
    wanted = wanted * (np.minimum(size, FASTEST_PACE) / np.maximum(size, 1e-9))[..., None]
    return kernel(rate - wanted, PACE + PACE_SHARE * np.minimum(size, FASTEST_PACE))


def error_sizes(error: Floats) -> Floats:
    """Return the sizes (..., 5) of goal errors (..., 18) that the goal kernels see: m, rad, rad, rad, rad (norm of 12)."""
    distance = np.linalg.norm(error[..., :3], axis=-1, keepdims=True)
    bend = np.linalg.norm(error[..., 6:], axis=-1, keepdims=True)
    return np.concatenate([distance, np.abs(error[..., 3:6]), bend], axis=-1)


def goals_met(sizes: Floats, presence: Bools, due: Bools, widths: Floats) -> Floats:
    """Return the product of the goal kernels over the components present, on the one step when a keyframe is due; (E,).

    sizes and presence (E, K, 5), due (E, K) bool, widths (5,). Absent components are met by definition.
    """
    terms = np.where(presence, np.exp(-((sizes / widths) ** 2)), 1.0)
    return np.sum(np.prod(terms, axis=-1) * due, axis=-1)


def goal_parts_met(sizes: Floats, presence: Bools, due: Bools, widths: Floats) -> Floats:
    """Return the mean over the components present of 1 / (1 + (error / width)^2), on the one step when a keyframe is due; (E,).

    A robot that missed the place still learns about the posture, and errors far beyond the widths still matter.
    """
    terms = np.where(presence, 1.0 / (1.0 + (sizes / widths) ** 2), 0.0)
    return np.sum(terms.sum(axis=-1) / np.maximum(presence.sum(axis=-1), 1) * due, axis=-1)


def paper_widths(widths: GoalWidths) -> Floats:
    """Return the paper's kernel widths (5,) in the order of the goal components."""
    return np.array([widths.position, widths.roll, widths.pitch, widths.yaw, widths.posture])


def followed_widths(widths: GoalWidths, reached: Floats) -> Floats:
    """Return kernel widths that follow the mean error reached (5,), between the starting and the narrowest widths."""
    narrow = paper_widths(widths)
    return np.clip(widths.follow * reached, widths.narrowest * narrow, widths.start * narrow)


# The rewards themselves.


@dataclass(frozen=True)
class ControlStep:
    """What rewards are computed from: E robots after a control step, and what they were asked for."""

    robot: Robot
    config: TaskConfig
    state: State
    before: State  # one control step earlier
    action: Floats  # (E, 12)
    previous_action: Floats  # (E, 12)
    goals: Goals
    now: NDArray[np.int64]  # (E,) control steps since the episode began
    due: Bools  # (E, K) keyframes that are due on this step
    errors: Floats  # (E, K, 5) sizes of the goal errors of robots with a keyframe due, NaN elsewhere
    widths: Floats  # (5,) of the goal kernels
    following: NDArray[np.intp]  # (n,) robots whose episode follows a clip
    clip: State  # of those: the clip's state at this moment
    swing: Floats  # (E, 4) s that a foot which lands on this step was in the air, 0 for the others
    waiting: Bools  # (E,) the last keyframe was due before this step
    waiting_position: Floats  # (E, 3) where the robot was then
    log: Callable[[str, NDArray[Any]], None]  # add values to a metric; its mean is written with every iteration


Reward = Callable[[ControlStep], Floats]
"""(E,) one value for each robot, NaN where the reward does not apply."""


def goal_reward(step: ControlStep) -> Floats:
    """Reward meeting keyframes on the step when they are due; zero on all others."""
    reward = np.zeros(len(step.due))
    rows = np.flatnonzero(step.due.any(axis=1))
    if len(rows):
        reward[rows] = goals_met(step.errors[rows], step.goals.presence[rows], step.due[rows], step.widths)
        step.log("goal_reward_when_due", reward[rows])
    return reward


def goal_parts_reward(step: ControlStep) -> Floats:
    """Reward each component of a keyframe on its own, on the step when it is due; zero on all others."""
    reward = np.zeros(len(step.due))
    rows = np.flatnonzero(step.due.any(axis=1))
    if len(rows):
        reward[rows] = goal_parts_met(step.errors[rows], step.goals.presence[rows], step.due[rows], step.widths)
    return reward


def pace_reward(step: ControlStep) -> Floats:
    """Reward the velocity and the turn rate that would reach the next keyframe on time; NaN where it asks for neither."""
    reward, goals, state = np.full(len(step.due), np.nan), step.goals, step.state
    moves = goals.presence[..., 0] | goals.presence[..., 3]  # (E, K) keyframes with a position or a yaw
    due = np.where(moves & (goals.step >= step.now[:, None]), goals.step, NEVER_DUE)
    rows = np.flatnonzero(due.min(axis=1) < NEVER_DUE)
    if not len(rows):
        return reward
    following = due[rows].argmin(axis=1)
    seconds = (goals.step[rows, following] - step.now[rows]) * CONTROL_DT
    away = (goals.position[rows, following] - state.position[rows])[:, :2]
    turn = geometry.wrap(goals.angles[rows, following, 2] - geometry.yaw_of(state.orientation[rows]))[:, None]
    yaw_rate = geometry.rotate(state.orientation[rows], state.angular_velocity[rows])[:, 2:]
    asked = goals.presence[rows, following][:, [0, 3]]
    match = np.stack(
        [pace_match(state.linear_velocity[rows, :2], away, seconds), pace_match(yaw_rate, turn, seconds)], axis=1
    )
    reward[rows] = np.sum(match * asked, axis=1) / asked.sum(axis=1)
    return reward


def regularization_reward(step: ControlStep) -> Floats:
    """Reward smooth motion inside the joints' soft limits: a product of terms."""
    terms = regularization_terms(
        step.robot,
        step.config.regularization,
        step.state,
        step.before,
        step.action,
        step.previous_action,
        CONTROL_DT,
    )
    for name, values in terms.items():
        step.log(f"term/{name}", values)
    return np.prod(list(terms.values()), axis=0)


def tracking_reward(step: ControlStep) -> Floats:
    """Reward staying close to the clip that an episode follows; NaN where it follows none."""
    reward = np.full(len(step.due), np.nan)
    if len(step.following):
        reward[step.following] = clip_tracking(state_rows(step.state, step.following), step.clip)
    return reward


def stillness_reward(step: ControlStep) -> Floats:
    """Reward standing still after the last keyframe; NaN until it has been due."""
    reward = np.full(len(step.due), np.nan)
    rows = np.flatnonzero(step.waiting)
    if len(rows):
        reward[rows] = standing_still(state_rows(step.state, rows), step.waiting_position[rows])
    return reward


def footwork_reward(step: ControlStep) -> Floats:
    """Reward feet that stay where they stand and are lifted when they swing."""
    state = step.state
    turning = state.angular_velocity[:, None] + calf_rates(state.joint_angles, state.joint_velocities)
    rates = geometry.rotate(state.orientation[:, None], turning)
    drag = foot_drag(state.feet_in_world, step.before.feet_in_world, rates, CONTROL_DT, step.robot.foot_radius)
    step.log("foot_drag", drag)
    return np.exp(-drag / FOOT_DRAG)


def swing_reward(step: ControlStep) -> Floats:
    """Penalize feet that land after too short a swing."""
    step.log("swing_seconds", step.swing[step.swing > 0])
    return -short_swing_penalty(step.swing)


REWARDS: Mapping[str, Reward] = {
    "goal": goal_reward,
    "goal_parts": goal_parts_reward,
    "pace": pace_reward,
    "regularization": regularization_reward,
    "tracking": tracking_reward,
    "stillness": stillness_reward,
    "footwork": footwork_reward,
    "swing": swing_reward,
}
"""The rewards of the task by the names that reward groups use. The style reward is the discriminator's."""
