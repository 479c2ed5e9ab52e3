"""Gait in figures, from foot positions alone, so that policies and clips are measured by one ruler."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.motion.clip import FPS, difference
from keystride.motion.signals import foot_clearance, planted_feet
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

MOVING = 0.15  # m/s of the base: below, it stands, and a gait means nothing
LOW = 0.005  # m: a foot this near to the ground touches it
SKATING = 0.4  # m/s of a foot that touches the ground


@dataclass(frozen=True)
class Gait:
    """One value an episode or stretch of a clip, NaN where it holds no such thing; (E,) each."""

    duty_factor: Floats  # share of the time that a foot is planted, while moving
    stride_hz: Floats  # touch-downs a second and foot, while moving
    clearance_m: Floats  # highest point of a swing, mean over swings
    slide_m_s: Floats  # of planted feet
    skating_share: Floats  # of the time that a foot touches the ground, moving faster than a planted one
    joint_acceleration: Floats  # rad/s^2, root mean square: trembling shows here


def feet_in_world(robot: Robot, position: Floats, orientation: Floats, joints: Floats) -> Floats:
    """(..., 4, 3) m"""
    feet = feet_from_joints(robot, joints)
    return position[..., None, :] + geometry.rotate(orientation[..., None, :], feet)


def measure_gait(robot: Robot, feet: Floats, base_velocity: Floats, joint_velocities: Floats) -> Gait:
    """feet (T, E, 4, 3) m and base_velocity (T, E, 3) m/s in the world, joint_velocities (T, E, 12) rad/s."""
    height = foot_clearance(feet, robot)  # (T, E, 4)
    down = planted_feet(feet, robot, FPS)
    speed = np.linalg.norm(difference(feet)[..., :2], axis=-1)  # (T, E, 4) m/s
    moving = np.broadcast_to((np.linalg.norm(base_velocity[..., :2], axis=-1) > MOVING)[..., None], down.shape)
    landing = down & ~np.roll(down, 1, axis=0)
    landing[0] = False
    touching = height < LOW
    return Gait(
        duty_factor=_share(down & moving, moving),
        stride_hz=FPS * _share(landing & moving, moving),
        clearance_m=np.array([swing_height(height[:, e], down[:, e]) for e in range(feet.shape[1])]),
        slide_m_s=_share(speed * down, down),
        skating_share=_share(touching & (speed > SKATING), touching),
        joint_acceleration=np.sqrt(np.mean(difference(joint_velocities)[1:] ** 2, axis=(0, 2))),
    )


def swing_height(height: Floats, down: NDArray[np.bool_]) -> float:
    """Mean over the swings of a robot's feet of their highest point; (T, 4) each. Unfinished swings do not count."""
    tops = [top for foot in range(height.shape[1]) for top in _swing_tops(height[:, foot], down[:, foot])]
    return float(np.mean(tops)) if tops else float("nan")


def _swing_tops(height: Floats, down: NDArray[np.bool_]) -> list[float]:
    edges = np.flatnonzero(np.diff(down.astype(np.int8)))  # the last frame before each change
    lifts = [edge for edge in edges if down[edge]]
    return [float(height[lift + 1 : edges[edges > lift][0] + 1].max()) for lift in lifts if (edges > lift).any()]


def _share(part: Floats | NDArray[np.bool_], whole: NDArray[np.bool_]) -> Floats:
    """Sum of part over time and feet, by that of the whole; (E,)."""
    total = whole.sum(axis=(0, 2))
    return np.divide(part.sum(axis=(0, 2)), total, out=np.full(len(total), np.nan), where=total > 0)
