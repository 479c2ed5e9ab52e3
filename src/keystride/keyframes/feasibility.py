"""What a script asks of the robot's body between keyframes, and where that is more than a Go2 does."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import degrees, inf, pi

import numpy as np

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.limits import angle_unit
from keystride.keyframes.postures import named_postures
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import Keyframe, Script, posture_angles
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints

# Averages from keyframe to keyframe. Learned policies miss by far beyond the first (measured in training trials);
# the second is below the 3.7 m/s that the maker names for a runner on the flat.
STANDING_START_SPEED = 1.5  # m/s
RUNNING_SPEED = 3.0  # m/s
TURN_RATE = pi  # rad/s
HEIGHTS = (0.1, 0.45)  # m: the head touches the ground below; straight legs end at 0.41, the rest is a jump
TILTS = {"roll": pi / 6, "pitch": pi / 4}  # rad: beyond, the feet no longer reach the ground under the body
GROUND_MARGIN = 0.03  # m
JUMP_CLEARANCE = 0.35  # m under the lowest foot


@dataclass(frozen=True)
class Demand:
    """What one keyframe asks since the last one of its kind, or since the start; None where it asks nothing."""

    speed: float | None = None  # m/s over the ground
    turn_rate: float | None = None  # rad/s, to the left
    winding: float = 0.0  # rad, a turn by more than half a circle, as yaws beyond half a circle write it
    joint_speed: Floats | None = None  # (12,) rad/s
    standing_start: bool = False  # nothing said where to be before


@dataclass(frozen=True)
class Warning:
    """A keyframe, counted from 0, and what is doubtful about it."""

    row: int
    message: str


@dataclass
class _Before:
    """The last of each kind: when it was, and what."""

    joints: tuple[float, Floats]
    place: tuple[float, Spot] = (0.0, Spot())
    heading: tuple[float, float] = (0.0, 0.0)
    standing: bool = True


def demands(script: Script, robot: Robot = GO2) -> list[Demand]:
    """Return the demand of each keyframe. The robot stands at the start, in its stance."""
    before = _Before((0.0, robot.stance))
    return [_demand(*pair, script.angles, before, robot) for pair in zip(script.keyframes, spots(script), strict=True)]


def warnings(script: Script, robot: Robot = GO2) -> list[Warning]:
    """Return what the robot can hardly do. Nothing here makes a script invalid; speeds and heights are those of a Go2."""
    return [
        Warning(row, message)
        for row, (keyframe, demand) in enumerate(zip(script.keyframes, demands(script, robot), strict=True))
        for message in (*_too_fast(demand, robot), *_odd_pose(keyframe, script.angles, robot))
    ]


def _demand(keyframe: Keyframe, spot: Spot, unit: str, before: _Before, robot: Robot) -> Demand:
    now = keyframe.step * CONTROL_DT
    speed, turn_rate, winding, joint_speed, standing = None, None, 0.0, None, before.standing
    if keyframe.position is not None:
        (then, last), before.place = before.place, (now, spot)
        speed = _rate(np.hypot(spot.x - last.x, spot.y - last.y), now - then)
        before.standing = False
    if keyframe.yaw is not None:
        (then, heading), before.heading = before.heading, (now, spot.yaw)
        turn = spot.yaw - heading
        winding = turn if abs(turn) > pi + 1e-9 and max(abs(spot.yaw), abs(heading)) > pi + 1e-9 else 0.0
        turn_rate = _rate(float(geometry.wrap(np.array(turn))), now - then)
    if keyframe.posture is not None:
        (then, joints), before.joints = before.joints, (now, posture_angles(keyframe.posture, unit, robot))
        joint_speed = np.array([_rate(bend, now - then) for bend in np.abs(before.joints[1] - joints)])
    return Demand(speed, turn_rate, winding, joint_speed, standing)


def _rate(distance: float, seconds: float) -> float:
    if seconds > 0:
        return float(distance) / seconds
    return inf if abs(distance) > 1e-9 else 0.0


def _too_fast(demand: Demand, robot: Robot) -> Iterator[str]:
    if inf in (demand.speed, abs(demand.turn_rate or 0.0)):
        yield "is due at the start, and leaves no time to get there"
        return
    limit = STANDING_START_SPEED if demand.standing_start else RUNNING_SPEED
    if demand.speed is not None and demand.speed > limit:
        start = " from a standstill" if demand.standing_start else ""
        yield f"{demand.speed:.1f} m/s{start} is more than a Go2 does ({limit:g} m/s)"
    if demand.turn_rate is not None and abs(demand.turn_rate) > TURN_RATE + 1e-9:
        rate, most = abs(degrees(demand.turn_rate)), degrees(TURN_RATE)
        yield f"{rate:.0f} degrees/s is a faster turn than a Go2 makes ({most:g} degrees/s)"
    if demand.winding:
        yield f"a turn by {degrees(demand.winding):.0f} degrees is taken the shorter way round: add a keyframe between"
    if demand.joint_speed is not None and np.any(demand.joint_speed > robot.speed_limit):
        joint = int(np.argmax(demand.joint_speed / robot.speed_limit))
        speed, most = demand.joint_speed[joint], robot.speed_limit[joint]
        yield f"{robot.joint_names[joint]} has to move at {speed:.1f} rad/s, its motor does {most:g} rad/s"


def _odd_pose(keyframe: Keyframe, unit: str, robot: Robot) -> Iterator[str]:
    for name, limit in TILTS.items():
        tilt = (getattr(keyframe, name) or 0.0) * angle_unit(unit)
        if abs(tilt) > limit + 1e-9:
            yield f"{name} {degrees(tilt):.0f} degrees is more than a standing Go2 holds ({degrees(limit):g} degrees)"
    height = keyframe.position[2] if keyframe.position and len(keyframe.position) == 3 else None
    if height is None:
        return
    if not HEIGHTS[0] <= height <= HEIGHTS[1]:
        yield f"base height {height:.3g} m is outside what a Go2 reaches ({HEIGHTS[0]:g} to {HEIGHTS[1]:g} m)"
    if keyframe.posture is not None:
        yield from _feet_and_ground(lowest_foot(keyframe, height, unit, robot))


def _feet_and_ground(gap: float) -> Iterator[str]:
    if gap < -GROUND_MARGIN:
        yield f"the posture puts a foot {-gap:.2f} m into the ground at this height and tilt"
    if gap > JUMP_CLEARANCE:
        yield f"the posture's lowest foot is {gap:.2f} m above the ground, higher than a Go2 jumps"


def lowest_foot(keyframe: Keyframe, height: float, unit: str, robot: Robot = GO2) -> float:
    """Return the metres between the ground and the lowest foot; an open tilt is that of the named posture, or level."""
    named = named_postures(robot)[keyframe.posture] if isinstance(keyframe.posture, str) else None
    roll = named.roll if named and keyframe.roll is None else (keyframe.roll or 0.0) * angle_unit(unit)
    pitch = named.pitch if named and keyframe.pitch is None else (keyframe.pitch or 0.0) * angle_unit(unit)
    feet = feet_from_joints(robot, posture_angles(keyframe.posture, unit, robot))  # (4, 3) base
    feet = geometry.rotate(geometry.from_roll_pitch_yaw(np.array([roll, pitch, 0.0])), feet)
    return float(height + feet[:, 2].min() - robot.foot_radius)
