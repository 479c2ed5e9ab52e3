"""The description of a robot: one frozen record, the only source of joint names and their order."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEG_JOINTS = ("hip", "thigh", "calf")
JOINT_NAMES = tuple(f"{leg}_{joint}_joint" for leg in ("FL", "FR", "RL", "RR") for joint in LEG_JOINTS)
"""The joints in scripts and files: front left, front right, rear left, rear right. Every robot has them in this order."""
MIRROR_ORDER = (3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8)
"""Index of each joint's mirror image: left and right legs swap."""
MIRROR_SIGN = (-1.0, 1.0, 1.0) * 4


@dataclass(frozen=True)
class Leg:
    """A three-joint leg: abduction about x, then two joints about y. Metres, in the frame of its parent."""

    name: str
    hip_in_base: tuple[float, float, float]
    thigh_in_hip: tuple[float, float, float]
    thigh_length: float
    calf_length: float
    lower: tuple[float, float, float]  # rad: hip, thigh, calf
    upper: tuple[float, float, float]
    torque: tuple[float, float, float]  # N m
    speed: tuple[float, float, float]  # rad/s
    stance: tuple[float, float, float]  # rad


@dataclass(frozen=True)
class Robot:
    """A quadruped with four three-joint legs, in the order of its model file."""

    name: str
    model_path: Path
    legs: tuple[Leg, Leg, Leg, Leg]  # front left, front right, rear left, rear right
    foot_radius: float
    stiffness: float  # N m / rad
    damping: float  # N m s / rad
    full_torque_speed: (
        float  # share of the rated speed up to which motors have their full torque; above, it falls to zero
    )
    action_scale: float  # rad of joint target per unit of action
    trunk_half_size: tuple[float, float, float]  # m, of the trunk's collision box around the base's origin
    base_body: str = "base"

    @cached_property
    def leg_names(self) -> tuple[str, ...]:
        return tuple(leg.name for leg in self.legs)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(f"{leg.name}_{joint}_joint" for leg in self.legs for joint in LEG_JOINTS)

    @cached_property
    def foot_sites(self) -> tuple[str, ...]:
        return tuple(f"{leg.name}_foot" for leg in self.legs)

    @cached_property
    def stance(self) -> Floats:
        return self._joints("stance")

    @cached_property
    def lower(self) -> Floats:
        return self._joints("lower")

    @cached_property
    def upper(self) -> Floats:
        return self._joints("upper")

    @cached_property
    def torque_limit(self) -> Floats:
        return self._joints("torque")

    @cached_property
    def speed_limit(self) -> Floats:
        return self._joints("speed")

    @cached_property
    def mirror_order(self) -> NDArray[np.intp]:
        return np.array(MIRROR_ORDER)

    @cached_property
    def mirror_sign(self) -> Floats:
        return np.array(MIRROR_SIGN)

    def mirror_joints(self, joints: Floats) -> Floats:
        """Return joint angles, velocities, targets or actions (..., 12) of the mirrored robot."""
        return joints[..., self.mirror_order] * self.mirror_sign

    def _joints(self, field: str) -> Floats:
        values = np.array([getattr(leg, field) for leg in self.legs], dtype=np.float64).reshape(-1)
        values.flags.writeable = False
        return values
