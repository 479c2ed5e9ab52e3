"""What a script asks of the robot's body between keyframes, and where that is more than a Go2 does."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import degrees, inf, pi

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes import stage as shapes
from keystride.keyframes.goals import CONTROL_DT, used
from keystride.keyframes.inbetween.planner import WaypointPlan
from keystride.keyframes.postures import named_postures
from keystride.keyframes.resolve import Spot, spots
from keystride.keyframes.script import Keyframe, Script, angle_unit, check_joint_limits, posture_angles
from keystride.keyframes.stage import Stage
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

# Averages from keyframe to keyframe. Learned policies miss by a wide margin above the first (measured in training trials);
# the second is below the 3.7 m/s that the maker names for a runner on the flat.
STANDING_START_SPEED = 1.5  # m/s
RUNNING_SPEED = 3.0  # m/s
TURN_RATE = pi  # rad/s
BASE_HEIGHTS = (0.22, 1.01)  # of a straight leg: the head touches the ground below; above, the robot jumps
TILTS = {"roll": pi / 6, "pitch": pi / 4}  # rad: beyond, the feet no longer reach the ground under the body
GROUND_MARGIN = 0.03  # m
JUMP_CLEARANCE = 0.35  # m under the lowest foot
ROBOT_RADIUS = 0.38  # m around the base: half the diagonal of the 0.70 by 0.31 m that a Go2 stands on
SHORTEST_LEG = 0.01  # m: shorter legs of a path are ignored


Ints = NDArray[np.int64]


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


def demands(script: Script, robot: Robot) -> list[Demand]:
    """Return the demand of each keyframe, for a robot that starts in its stance. ScriptError if joints exceed their limits."""
    check_joint_limits(script, robot)
    before = _Before((0.0, robot.stance))
    return [_demand(*pair, script.angles, before, robot) for pair in zip(script.keyframes, spots(script), strict=True)]


def warnings(script: Script, robot: Robot, plan: WaypointPlan | None = None) -> list[Warning]:
    """Return what the robot can hardly do, and where it leaves the stage. Nothing here makes a script invalid.

    Joint limits and heights are the robot's, speeds and width those of a Go2. The path follows the waypoints of a plan, or is
    straight without one.
    """
    found = [
        Warning(row, message)
        for row, (keyframe, demand) in enumerate(zip(script.keyframes, demands(script, robot), strict=True))
        for message in (*_too_fast(demand, robot), *_odd_pose(keyframe, script.angles, robot))
    ]
    if script.stage is not None:
        found += _off_stage(script.stage, *(_straight_path(script) if plan is None else _planned_path(script, plan)))
    return sorted(found, key=lambda warning: warning.row)


def _straight_path(script: Script) -> tuple[Floats, Ints]:
    """Legs (L, 2, 2) from the start over the positions that are asked for, and the keyframe (L,) that each leads to."""
    rows = [row for row, keyframe in enumerate(script.keyframes) if keyframe.position is not None]
    found = spots(script)
    return _legs(np.array([(found[row].x, found[row].y) for row in rows]).reshape(-1, 2), np.array(rows, dtype=int))


def _planned_path(script: Script, plan: WaypointPlan) -> tuple[Floats, Ints]:
    """As `_straight_path`, over the waypoints of the first robot of a plan."""
    there = used(plan.goals)[0]
    hard = ~plan.soft[0, there]
    first = sum(keyframe.step <= 0 for keyframe in script.keyframes)  # those at the start are not planned
    rows = np.minimum(first + np.cumsum(hard) - hard, len(script.keyframes) - 1)
    return _legs(plan.path[0, there, :2], rows)


def _legs(places: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """From the start; a leg without a way is left out, unless it is the only one."""
    places = np.concatenate([np.zeros((1, 2)), places])
    legs = np.stack([places[:-1], places[1:]], axis=1)
    moves = np.linalg.norm(legs[:, 1] - legs[:, 0], axis=1) > SHORTEST_LEG
    if moves.any():
        return legs[moves], rows[moves]
    return np.zeros((1, 2, 2)), np.zeros(1, dtype=int)


def _off_stage(stage: Stage, legs: Floats, rows: Ints) -> Iterator[Warning]:
    """Return where the path to a keyframe comes nearest to the edge of the floor, to any obstacle and to the audience."""
    if stage.floor is not None:
        apart = _distance(legs, np.array(stage.floor))
        outside = ~(shapes.inside(legs[:, 0], stage.floor) & shapes.inside(legs[:, 1], stage.floor))
        yield from _too_near(np.where(outside, 0.0, apart), rows, "leaves", ["the floor"])
    if stage.obstacles:
        outlines = [obstacle.outline for obstacle in stage.obstacles]
        apart = np.stack([_distance(legs, corners) for corners in outlines], axis=1)  # (L, O)
        within = np.stack([shapes.inside(legs[:, 1], corners) for corners in outlines], axis=1)
        names = [f"the {each.label}" if each.label else f"obstacle {n}" for n, each in enumerate(stage.obstacles, 1)]
        yield from _too_near(np.where(within, 0.0, apart), rows, "meets", names)
    if stage.audience is not None:
        apart = shapes.distances(legs, np.array([stage.audience]))[:, 0]
        yield from _too_near(apart, rows, "crosses", ["the audience's side"])


def _distance(legs: Floats, corners: Floats) -> Floats:
    """Return (L,) from the outline; only those that come near are looked at closely."""
    lowest, highest = legs.min(axis=1) - ROBOT_RADIUS, legs.max(axis=1) + ROBOT_RADIUS  # (L, 2)
    near = np.all((lowest <= corners.max(axis=0)) & (highest >= corners.min(axis=0)), axis=1)
    apart = np.full(len(legs), inf)
    apart[near] = shapes.distances(legs[near], shapes.outline(corners)).min(axis=1)
    return apart


def _too_near(apart: Floats, rows: Ints, verb: str, names: list[str]) -> Iterator[Warning]:
    """apart is (L,) or (L, O) m, between each leg and each of what the names stand for."""
    apart = apart.reshape(len(rows), -1)
    least, nearest = apart.min(axis=1), apart.argmin(axis=1)  # (L,)
    found: dict[int, int] = {}
    for leg in np.flatnonzero(least < ROBOT_RADIUS).tolist():
        row = int(rows[leg])
        if row not in found or least[leg] < least[found[row]]:
            found[row] = leg
    for row, leg in found.items():
        name = names[nearest[leg]]
        if least[leg] <= 0.0:
            yield Warning(row, f"the path to it {verb} {name}")
        else:
            edge = "the edge of " if verb == "leaves" else ""
            size = f"a Go2 needs {ROBOT_RADIUS:g} m"
            yield Warning(row, f"the path to it is {least[leg]:.2f} m from {edge}{name}; {size}")


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
    lowest, highest = base_heights(robot)
    if not lowest <= height <= highest:
        yield f"base height {height:.3g} m is outside what the robot reaches ({lowest:.2f} to {highest:.2f} m)"
    if keyframe.posture is not None:
        yield from _feet_and_ground(lowest_foot(keyframe, height, unit, robot))


def base_heights(robot: Robot) -> tuple[float, float]:
    """Return the lowest and the highest plausible height of the base in metres."""
    leg = max(leg.thigh_length + leg.calf_length for leg in robot.legs) + robot.foot_radius
    return BASE_HEIGHTS[0] * leg, BASE_HEIGHTS[1] * leg


def _feet_and_ground(gap: float) -> Iterator[str]:
    if gap < -GROUND_MARGIN:
        yield f"the posture puts a foot {-gap:.2f} m into the ground at this height and tilt"
    if gap > JUMP_CLEARANCE:
        yield f"the posture's lowest foot is {gap:.2f} m above the ground, higher than a Go2 jumps"


def lowest_foot(keyframe: Keyframe, height: float, unit: str, robot: Robot) -> float:
    """Return the metres between the ground and the lowest foot; an open tilt is that of the named posture, or level."""
    named = named_postures(robot)[keyframe.posture] if isinstance(keyframe.posture, str) else None
    roll = named.roll if named and keyframe.roll is None else (keyframe.roll or 0.0) * angle_unit(unit)
    pitch = named.pitch if named and keyframe.pitch is None else (keyframe.pitch or 0.0) * angle_unit(unit)
    feet = feet_from_joints(robot, posture_angles(keyframe.posture, unit, robot))  # (4, 3) base
    feet = geometry.rotate(geometry.from_roll_pitch_yaw(np.array([roll, pitch, 0.0])), feet)
    return float(height + feet[:, 2].min() - robot.foot_radius)
