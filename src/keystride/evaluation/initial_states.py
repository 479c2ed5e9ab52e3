"""Where the robots of a scenario start: in their stance, each a little differently."""

from dataclasses import dataclass

import numpy as np

from keystride import geometry
from keystride.physics.simulator import StartState, standing_start
from keystride.robot.description import Robot
from keystride.robot.kinematics import standing_height


@dataclass(frozen=True)
class StanceNoise:
    """Half widths of even draws. Physics and policy are deterministic: without this all episodes would be the same."""

    joints: float = 0.05  # rad
    joint_speed: float = 0.1  # rad/s
    velocity: float = 0.05  # m/s
    turning: float = 0.05  # rad/s
    tilt: float = 0.01  # rad of roll and pitch; the yaw is exact, since goals are seen from it


def exact_stance(robot: Robot, count: int = 1) -> StartState:
    """At the origin, facing x, at rest."""
    return standing_start(count, float(standing_height(robot, robot.stance)), robot.stance)


def noisy_stance(robot: Robot, count: int, random: np.random.Generator, noise: StanceNoise | None = None) -> StartState:
    """At the origin, facing x, nearly in the stance and nearly at rest, feet on the ground."""
    noise = noise or StanceNoise()

    def even(width: float, columns: int) -> np.ndarray:
        return random.uniform(-width, width, size=(count, columns))

    joints = np.clip(robot.stance + even(noise.joints, len(robot.stance)), robot.lower, robot.upper)
    tilt = np.concatenate([even(noise.tilt, 2), np.zeros((count, 1))], axis=1)
    position = np.zeros((count, 3))
    position[:, 2] = standing_height(robot, joints)
    return StartState(
        position=position,
        orientation=geometry.from_roll_pitch_yaw(tilt),
        linear_velocity=even(noise.velocity, 3),
        angular_velocity=even(noise.turning, 3),
        joint_angles=joints,
        joint_velocities=even(noise.joint_speed, len(robot.stance)),
    )
