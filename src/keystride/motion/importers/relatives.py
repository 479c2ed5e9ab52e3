"""Other four-legged robots of the same build: their feet are taken over, and our legs are solved for them."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from keystride import geometry
from keystride.motion.importers.poses import Poses, at_clip_rate, checked
from keystride.motion.retargeting.fitting import FitSettings, Take, fit
from keystride.motion.retargeting.planting import detect_planted
from keystride.motion.retargeting.trunk import Trunk, half_length, trunk_length
from keystride.motion.signals import smooth
from keystride.robot.description import Floats, Leg, Robot
from keystride.robot.kinematics import feet_from_joints

SMOOTHING = 0.012  # s, Gaussian: light, these motions have been smoothed before


def _relative(name: str, *, hip: tuple[float, float], side: float, upper: float, lower: float, radius: float) -> Robot:
    """Only its lengths matter: limits and motors are our own robot's."""
    legs = [
        Leg(
            name=leg,
            hip_in_base=(x * hip[0], y * hip[1], 0.0),
            thigh_in_hip=(0.0, y * side, 0.0),
            thigh_length=upper,
            calf_length=lower,
            lower=(-np.pi, -np.pi, -np.pi),
            upper=(np.pi, np.pi, np.pi),
            torque=(1.0, 1.0, 1.0),
            speed=(100.0, 100.0, 100.0),
            stance=(0.0, 0.8, -1.5),
        )
        for leg, x, y in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1))
    ]
    return Robot(
        name,
        Path(),
        (legs[0], legs[1], legs[2], legs[3]),
        radius,
        stiffness=0.0,
        damping=0.0,
        full_torque_speed=0.0,
        action_scale=0.0,
        trunk_half_size=(0.0, 0.0, 0.0),
    )


A1 = _relative("unitree_a1", hip=(0.183, 0.047), side=0.08505, upper=0.2, lower=0.2, radius=0.02)
MAX = _relative("tencent_max", hip=(0.195, 0.06), side=0.09, upper=0.2115, lower=0.24, radius=0.025)


def take_from_relative(poses: Poses, source: Robot, robot: Robot, settings: FitSettings | None = None) -> Take:
    """The same base and the same soles on the ground, with our own robot's legs."""
    settings = settings or FitSettings()
    poses = at_clip_rate(_smoothed(checked(poses)))
    feet = feet_from_joints(source, poses.joints)
    soles = poses.position[:, None] + geometry.rotate(poses.orientation[:, None], feet)
    soles[..., 2] -= source.foot_radius
    level = ground_level(soles)
    soles[..., 2] -= level
    planted = detect_planted(soles, poses.position, np.zeros(4), settings.planting)
    trunk = _trunk(poses, robot).lifted(-level, -level)
    return fit(trunk, soles, planted, name=poses.name, robot=robot, settings=settings)


def ground_level(soles: Floats) -> float:
    """Where the ground is: mostly the lowest sole stands on it. Retargeted files float or sink by a centimetre."""
    return float(np.median(soles[..., 2].min(axis=1)))


def _smoothed(poses: Poses) -> Poses:
    sigma = SMOOTHING * poses.fps
    return replace(poses, position=smooth(poses.position, sigma), joints=smooth(poses.joints, sigma))


def _trunk(poses: Poses, robot: Robot) -> Trunk:
    roll, pitch, yaw = np.moveaxis(geometry.roll_pitch_yaw(poses.orientation), -1, 0)
    rise = -0.5 * trunk_length(robot) * np.sin(pitch)  # nose up is a negative pitch
    front, rear = poses.position[:, 2] + rise, poses.position[:, 2] - rise
    half = half_length(front, rear, robot)
    return Trunk(poses.position[:, :2], front, rear, np.unwrap(yaw), roll, np.zeros(len(poses)), half)
