"""Turn a trunk and four feet into joint angles that the motors can follow.

Planted feet stay where they are; the trunk moves only as much as the legs' reach and the ground require.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from keystride import geometry
from keystride.motion.clip import Clip, difference, make_clip
from keystride.motion.retargeting.planting import PlantingSettings, plant
from keystride.motion.retargeting.trunk import (
    Trunk,
    base_pose,
    knee_clearance,
    knee_radius,
    over_rear_feet,
    rearing,
    trunk_clearance,
    trunk_points,
)
from keystride.motion.signals import Flags, gaussian_smooth, soft_min
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet

EASE_FRAMES = 4  # frames over which a correction of the trunk comes and goes
CORRECTION_ROUNDS = 4  # each round leaves a small remainder
KNEELING_HIP = 0.22  # m: an animal that rears with lower hips sits on its haunches, and the robot on its knees
CLAMPED = 0.01  # m: a frame counts as clamped from this correction on
SMOOTHING_ROUNDS = 12
SPEED_MARGIN = 0.97  # of the motor's speed


@dataclass(frozen=True)
class FitSettings:
    reach: float = 0.380  # m between thigh joint and foot that a planted leg may use
    margin: float = 0.05  # rad kept from every joint limit
    planting: PlantingSettings = field(default_factory=PlantingSettings)


@dataclass(frozen=True)
class FittedClip:
    """A clip and its deviations from the requested motion."""

    clip: Clip
    residual: Floats  # (T, 4) m between the robot's feet and the wanted ones; no rows if nothing was retargeted
    clamped: Flags  # (T,) frames in which reach, limits or ground moved trunk or feet


def fit(trunk: Trunk, wanted: Floats, planted: Flags, *, name: str, robot: Robot, settings: FitSettings) -> FittedClip:
    """Fit the robot to wanted soles (T, 4, 3), whose height is measured from the ground."""
    robot = _with_margin(robot, settings.margin)
    centre = np.array([0.0, 0.0, robot.foot_radius])
    reaching = _within_reach(trunk, wanted + centre, planted, robot, settings)
    pulled = _within_knees(wanted, reaching, robot)
    soles, stands = plant(pulled, planted, settings.planting)
    feet = soles + centre
    fitted = _fit_trunk(over_rear_feet(reaching, feet, robot), feet, stands, robot, settings)
    joints = np.clip(within_motor_speed(_solve(fitted, feet, robot), robot), robot.lower, robot.upper)
    position, orientation, reached = _above_ground(*base_pose(fitted, robot), joints, robot)
    residual = np.linalg.norm(reached - wanted - centre, axis=-1)
    clamped = _moved(trunk, fitted, robot) | (np.linalg.norm(pulled - wanted, axis=-1) > CLAMPED).any(axis=-1)
    return FittedClip(make_clip(name, robot, position, orientation, joints), residual, clamped)


def _above_ground(position: Floats, orientation: Floats, joints: Floats, robot: Robot) -> tuple[Floats, Floats, Floats]:
    """Return the base, raised where smoothing for the motors let a foot dip into the ground, and the resulting feet."""
    reached = position[:, None] + geometry.rotate(orientation[:, None], feet_from_joints(robot, joints))
    lift = _eased(np.maximum(robot.foot_radius - reached[..., 2], 0.0).max(axis=1))[:, None] * [0.0, 0.0, 1.0]
    return position + lift, orientation, reached + lift[:, None]


def _with_margin(robot: Robot, margin: float) -> Robot:
    """Return the same robot with its joints' ranges narrowed."""
    legs = [
        replace(leg, lower=tuple(np.add(leg.lower, margin)), upper=tuple(np.subtract(leg.upper, margin)))
        for leg in robot.legs
    ]
    return replace(robot, legs=tuple(legs))


def _moved(before: Trunk, after: Trunk, robot: Robot) -> Flags:
    return np.linalg.norm(base_pose(before, robot)[0] - base_pose(after, robot)[0], axis=-1) > CLAMPED


def _solve(trunk: Trunk, feet: Floats, robot: Robot) -> Floats:
    """Return joint angles (T, 12) for feet (T, 4, 3) in the world; a foot out of reach gets the nearest angles."""
    position, orientation = base_pose(trunk, robot)
    return joints_from_feet(robot, geometry.rotate_inverse(orientation[:, None], feet - position[:, None]))[0]


def _thigh_joints(trunk: Trunk, robot: Robot) -> Floats:
    """Return world positions (T, 4, 3) of the four thigh joints, without abduction."""
    position, orientation = base_pose(trunk, robot)
    local = np.array([np.add(leg.hip_in_base, leg.thigh_in_hip) for leg in robot.legs])
    return position[:, None] + geometry.rotate(orientation[:, None], local[None])


def _within_knees(wanted: Floats, trunk: Trunk, robot: Robot) -> Floats:
    """Pull feet back where a low hip would push the knee, which points backwards, into the ground."""
    hips = _thigh_joints(trunk, robot)  # (T, 4, 3)
    ahead = _turned(-trunk.yaw, wanted[..., :2] - hips[..., :2])  # (T, 4, 2)
    thigh = np.array([leg.thigh_length for leg in robot.legs])
    calf = np.array([leg.calf_length for leg in robot.legs])
    sine = np.clip((hips[..., 2] - knee_radius(robot)) / thigh, 0.0, 1.0)  # of the thigh, its knee on the ground
    most = calf - thigh * np.sqrt(1 - sine**2)
    free = np.clip((wanted[..., 2] - 0.03) / 0.05, 0.0, 1.0)  # a raised foot raises its knee
    limited = np.where(sine < 1.0, soft_min(ahead[..., 0], most, 0.01), ahead[..., 0])
    ahead[..., 0] = limited * (1 - free) + ahead[..., 0] * free
    return np.concatenate([hips[..., :2] + _turned(trunk.yaw, ahead), wanted[..., 2:]], axis=-1)


def _turned(yaw: Floats, points: Floats) -> Floats:
    """Turn points (T, 4, 2) about the vertical by one angle per frame."""
    return geometry.rotate_yaw(np.repeat(yaw[:, None], 4, axis=1), points)


def _fit_trunk(trunk: Trunk, feet: Floats, stands: Flags, robot: Robot, settings: FitSettings) -> Trunk:
    """Lower an end whose planted feet are out of reach, then raise an end whose knees or belly are in the ground."""
    trunk = _within_reach(trunk, feet, stands, robot, settings)
    upright = gaussian_smooth(
        rearing(feet, robot).astype(np.float64), 2.0 * EASE_FRAMES
    )  # (T,) then the front rises with the rear
    kneels = upright * np.clip((KNEELING_HIP - trunk.rear) / 0.05, 0.0, 1.0)  # (T,)
    for _ in range(CORRECTION_ROUNDS):
        front, rear = _ground_deficit(trunk, feet, robot)
        lift = _eased(rear)
        trunk = trunk.lifted(np.maximum(_eased(front), lift * upright), lift)
    for _ in range(CORRECTION_ROUNDS):
        position, orientation = base_pose(trunk, robot)
        clearance = knee_clearance(robot, position, orientation, _solve(trunk, feet, robot))[:, 2:].min(axis=1)
        drop = gaussian_smooth(kneels * clearance, EASE_FRAMES)
        trunk = trunk.lifted(-drop, -drop)
    return trunk


def _within_reach(trunk: Trunk, feet: Floats, stands: Flags, robot: Robot, settings: FitSettings) -> Trunk:
    for _ in range(CORRECTION_ROUNDS):
        excess = _reach_excess(trunk, feet, stands, robot, settings)  # (T, 4)
        trunk = trunk.lifted(-_eased(excess[:, :2].max(axis=1)), -_eased(excess[:, 2:].max(axis=1)))
    return trunk


def _eased(need: Floats) -> Floats:
    """Return a smooth curve that is at least the needed value at every frame."""
    padded = np.pad(need, EASE_FRAMES, mode="edge")
    widest = np.lib.stride_tricks.sliding_window_view(padded, 2 * EASE_FRAMES + 1).max(axis=-1)
    return gaussian_smooth(widest, EASE_FRAMES / 3)


def _reach_excess(trunk: Trunk, feet: Floats, stands: Flags, robot: Robot, settings: FitSettings) -> Floats:
    """Return (T, 4) m by which the hip has to come down for a planted foot to be reached."""
    gap = feet - _thigh_joints(trunk, robot)
    across = np.linalg.norm(gap[..., :2], axis=-1)
    tallest = np.sqrt(np.maximum(settings.reach**2 - across**2, 0.12**2))
    return np.where(stands, np.maximum(-gap[..., 2] - tallest, 0.0), 0.0)


def _ground_deficit(trunk: Trunk, feet: Floats, robot: Robot) -> tuple[Floats, Floats]:
    """Return (T,) m by which front and rear have to come up for feet, knees and trunk to clear the ground."""
    position, orientation = base_pose(trunk, robot)
    joints = _solve(trunk, feet, robot)
    reached = position[:, None] + geometry.rotate(orientation[:, None], feet_from_joints(robot, joints))
    sunk = robot.foot_radius - reached[..., 2]  # (T, 4) a folded leg that cannot fold any further
    knees = -knee_clearance(robot, position, orientation, joints)  # (T, 4)
    body = -trunk_clearance(robot, position, orientation)  # (T, N)
    ahead = trunk_points(robot)[0][:, 0] > 0
    legs = np.maximum(1.5 * knees, sunk)  # a knee rises by less than its hip does
    front = np.maximum(legs[:, :2].max(axis=1), body[:, ahead].max(axis=1))
    rear = np.maximum(legs[:, 2:].max(axis=1), body[:, ~ahead].max(axis=1))
    return np.maximum(front, 0.0), np.maximum(rear, 0.0)


def within_motor_speed(joints: Floats, robot: Robot) -> Floats:
    """Smooth each leg around the frames where a joint would have to outrun its motor; (T, 12) rad.

    Every round widens the smoothing, so that a lone spike is touched lightly and a long one as much as it needs.
    """
    joints = joints.copy()
    for rounds in range(SMOOTHING_ROUNDS):
        beyond = np.abs(difference(joints)) > SPEED_MARGIN * robot.speed_limit  # (T, 12)
        fast: Flags = np.any(beyond.reshape(-1, 4, 3), axis=-1)  # (T, 4) a leg is smoothed as a whole
        if not fast.any():
            break
        sigma = 1.0 + 0.5 * rounds
        share = np.repeat(_around(fast, sigma), 3, axis=1)
        joints = joints * (1 - share) + gaussian_smooth(joints, sigma) * share
    return joints


def _around(flags: Flags, sigma: float) -> Floats:
    """Return weights that are 1 at and near the flags and fall smoothly to 0."""
    return np.clip(gaussian_smooth(flags.astype(np.float64), 1.5 * sigma) * (4 * sigma), 0.0, 1.0)
