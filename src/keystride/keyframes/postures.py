"""Named postures: joint angles with the base height and tilt that put their feet on the ground.

Each is described by where the trunk and the feet are, and solved by inverse kinematics, so that it fits the robot.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from keystride import geometry
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import joints_from_feet, standing_height

LEG_LENGTH = 0.426  # m, thigh and calf of the Go2, for which footings are written
REACHED = 1e-6  # m by which a foot may miss its target


@dataclass(frozen=True)
class Posture:
    """Joint angles, and the height and tilt of the base at which the feet are on the ground."""

    joints: Floats  # (12,) rad
    height: float  # m, base over flat ground
    roll: float = 0.0  # rad, left side up
    pitch: float = 0.0  # rad, nose down
    airborne: bool = False  # the feet are above the ground at that height: for keyframes in the middle of a jump


@dataclass(frozen=True)
class Footing:
    """A posture described by its feet: shifts from the points below the hips, forward, to the left and up, in m."""

    height: float
    roll: float = 0.0  # degrees, left side up
    pitch: float = 0.0  # degrees, nose down
    front_left: tuple[float, float, float] = (0.0, 0.0, 0.0)
    front_right: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rear_left: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rear_right: tuple[float, float, float] = (0.0, 0.0, 0.0)
    airborne: bool = False

    @property
    def shifts(self) -> Floats:
        return np.array([self.front_left, self.front_right, self.rear_left, self.rear_right])  # (4, 3)


def solve(footing: Footing, robot: Robot) -> Posture:
    """Return the joint angles of a footing; ValueError names the legs that cannot reach."""
    tilt = np.radians([footing.roll, footing.pitch, 0.0])
    feet = _feet_under_hips(robot) + footing.shifts - [0.0, 0.0, footing.height]  # (4, 3) level, from the base
    joints, miss = joints_from_feet(robot, geometry.rotate_inverse(geometry.from_roll_pitch_yaw(tilt), feet))
    if miss.max() > REACHED:
        legs = [f"{leg} by {gap:.3f} m" for leg, gap in zip(robot.leg_names, miss, strict=True) if gap > REACHED]
        raise ValueError(f"feet out of reach: {', '.join(legs)}")
    return Posture(joints, footing.height, float(tilt[0]), float(tilt[1]), footing.airborne)


def reflect_posture(posture: Posture, robot: Robot) -> Posture:
    """Return the posture as seen in a mirror: left legs become right legs."""
    return Posture(robot.mirror_joints(posture.joints), posture.height, -posture.roll, posture.pitch, posture.airborne)


def posture(pose: str | Footing | Posture, robot: Robot) -> Posture:
    """Return the robot's posture by name, or that of a footing written for the Go2; KeyError lists the known names."""
    if isinstance(pose, Posture):
        return pose
    if isinstance(pose, Footing):
        return solve(_scaled(pose, _leg_length(robot) / LEG_LENGTH), robot)
    known = named_postures(robot)
    if pose not in known:
        raise KeyError(f"unknown posture {pose!r}; choose from {', '.join(known)}")
    return known[pose]


def mirror_name(name: str) -> str:
    """Return the name of a posture's mirror image."""
    return {**MIRRORED, **{image: original for original, image in MIRRORED.items()}}.get(name, name)


def stand(robot: Robot) -> Posture:
    return Posture(robot.stance, float(standing_height(robot, robot.stance)))


def _feet_under_hips(robot: Robot) -> Floats:
    """Return (4, 3) centres of feet that stand on the ground straight under the thigh joints of a level trunk."""
    hips = np.array([np.add(leg.hip_in_base, leg.thigh_in_hip) for leg in robot.legs])
    hips[:, 2] = robot.foot_radius
    return hips


FOOTINGS = {
    "crouch": Footing(height=0.18, front_left=(0.01, 0.01, 0), front_right=(0.01, -0.01, 0)),
    "tall": Footing(height=0.39),
    # Haunches down on the folded hind legs, front legs straight.
    "sit": Footing(
        height=0.25,
        pitch=-36.0,
        front_left=(-0.02, 0.0, 0.0),
        front_right=(-0.02, 0.0, 0.0),
        rear_left=(0.06, 0.02, 0.0),
        rear_right=(0.06, -0.02, 0.0),
    ),
    # As low as the head allows.
    "lie": Footing(
        height=0.12,
        front_left=(0.0, 0.01, 0.0),
        front_right=(0.0, -0.01, 0.0),
        rear_left=(0.0, 0.01, 0.0),
        rear_right=(0.0, -0.01, 0.0),
    ),
    # An invitation to play: chest down, hindquarters up.
    "bow": Footing(
        height=0.25,
        pitch=22.0,
        front_left=(0.06, 0.02, 0.0),
        front_right=(0.06, -0.02, 0.0),
        rear_left=(-0.02, 0.0, 0.0),
        rear_right=(-0.02, 0.0, 0.0),
    ),
    # Long and low: front feet far ahead, hind feet far behind.
    "stretch": Footing(
        height=0.26,
        pitch=8.0,
        front_left=(0.13, 0.0, 0.0),
        front_right=(0.13, 0.0, 0.0),
        rear_left=(-0.16, 0.0, 0.0),
        rear_right=(-0.16, 0.0, 0.0),
    ),
    # The weight moves over the other three feet, so that it can be held.
    "paw_up": Footing(
        height=0.31,
        pitch=-5.0,
        front_left=(0.04, -0.06, 0.0),
        front_right=(0.2, -0.02, 0.24),
        rear_left=(0.05, -0.06, 0.0),
        rear_right=(0.05, -0.06, 0.0),
    ),
    "sit_paw_up": Footing(
        height=0.25,
        pitch=-36.0,
        front_left=(-0.02, -0.05, 0.0),
        front_right=(0.15, -0.05, 0.2),
        rear_left=(0.06, -0.03, 0.0),
        rear_right=(0.06, -0.07, 0.0),
    ),
    "lean_left": Footing(height=0.3, roll=-15.0),
    "look_up": Footing(height=0.29, pitch=-18.0),
    "look_down": Footing(height=0.3, pitch=16.0),
    "leap": Footing(
        height=0.45,
        pitch=-8.0,
        front_left=(0.15, 0.0, 0.25),
        front_right=(0.15, 0.0, 0.25),
        rear_left=(-0.22, 0.0, 0.17),
        rear_right=(-0.22, 0.0, 0.17),
        airborne=True,
    ),
    "tuck": Footing(
        height=0.45,
        front_left=(0.03, 0.0, 0.27),
        front_right=(0.03, 0.0, 0.27),
        rear_left=(0.03, 0.0, 0.27),
        rear_right=(0.03, 0.0, 0.27),
        airborne=True,
    ),
}

MIRRORED = {
    "paw_up": "paw_up_left",
    "sit_paw_up": "sit_paw_up_left",
    "lean_left": "lean_right",
}  # all others are their own mirror images

POSTURE_NAMES = ("stand", *FOOTINGS, *MIRRORED.values())


@lru_cache
def named_postures(robot: Robot) -> dict[str, Posture]:
    """Return all named postures of a robot. Footings are written for the Go2 and scaled by the length of the legs."""
    found = {"stand": stand(robot), **{name: posture(footing, robot) for name, footing in FOOTINGS.items()}}
    return found | {image: reflect_posture(found[name], robot) for name, image in MIRRORED.items()}


def _leg_length(robot: Robot) -> float:
    return float(np.mean([leg.thigh_length + leg.calf_length for leg in robot.legs]))


def _scaled(footing: Footing, scale: float) -> Footing:
    if scale == 1.0:
        return footing
    feet = {f"{end}_{side}" for end in ("front", "rear") for side in ("left", "right")}
    shifts = {foot: tuple(scale * part for part in getattr(footing, foot)) for foot in feet}
    return replace(footing, height=scale * footing.height, **shifts)
