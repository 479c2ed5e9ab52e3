"""Compute the speeds that a script requires between keyframes, and warn where they exceed what the robot can do."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import degrees, hypot, inf, pi, sqrt

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
from keystride.robot.kinematics import feet_from_joints, standing_height

# Averages from keyframe to keyframe, for legs of any length: animals and robots of different size move alike if speeds
# scale with sqrt(g h), and rates with sqrt(g / h), h being the standing height. For the Go2 these are 1.5 m/s, above which
# learned policies miss by a wide margin, 3 m/s, below the 3.7 m/s that its maker states, and 180 degrees/s.
STANDING_START_SPEED = 0.82954  # times sqrt(g h)
RUNNING_SPEED = 1.65907  # times sqrt(g h)
TURN_RATE = 0.57909  # times sqrt(g / h)
BASE_HEIGHTS = (0.22, 1.01)  # of a straight leg: the head touches the ground below; above, the robot jumps
TILTS = {"roll": pi / 6, "pitch": pi / 4}  # rad: beyond, the feet no longer reach the ground under the body
GROUND_MARGIN = 0.03  # m
JUMP_CLEARANCE = 1.05  # times the standing height, under the lowest foot
BODY_RADIUS = 1.5838  # times the distance of the hips from the base: 0.38 m for the 0.70 by 0.31 m that a Go2 takes up
SHORTEST_SEGMENT = 0.01  # m: shorter segments of a path are ignored


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Demand:
    """What a keyframe demands relative to the previous one of its kind, or to the start; None where it demands nothing."""

    speed: float | None = None  # m/s over the ground
    turn_rate: float | None = None  # rad/s, to the left
    winding: float = 0.0  # rad, a turn of more than 180 degrees, written as a yaw beyond +-180
    joint_speed: Floats | None = None  # (12,) rad/s
    standing_start: bool = False  # no earlier keyframe has a position


@dataclass(frozen=True)
class ScriptWarning:
    """A keyframe, counted from 0, and what is doubtful about it."""

    row: int
    message: str


@dataclass
class _Before:
    """Time and value of the last keyframe of each kind."""

    joints: tuple[float, Floats]
    place: tuple[float, Spot] = (0.0, Spot())
    heading: tuple[float, float] = (0.0, 0.0)
    standing: bool = True


def demands(script: Script, robot: Robot) -> list[Demand]:
    """Return the demand of each keyframe, for a robot that starts in its stance. ScriptError if joints exceed their limits."""
    check_joint_limits(script, robot)
    before = _Before((0.0, robot.stance))
    return [_demand(*pair, script.angles, before, robot) for pair in zip(script.keyframes, spots(script), strict=True)]


def script_warnings(script: Script, robot: Robot, plan: WaypointPlan | None = None) -> list[ScriptWarning]:
    """Return what the robot can hardly do, and where it leaves the stage. Nothing here makes a script invalid.

    The path follows the waypoints of a plan, or is straight without one.
    """
    found = [
        ScriptWarning(row, message)
        for row, (keyframe, demand) in enumerate(zip(script.keyframes, demands(script, robot), strict=True))
        for message in (*_too_fast(demand, robot), *_odd_pose(keyframe, script.angles, robot))
    ]
    if script.stage is not None:
        path = _straight_path(script) if plan is None else _planned_path(script, plan)
        found += _off_stage(script.stage, *path, body_radius(robot))
    return sorted(found, key=lambda warning: warning.row)


def _straight_path(script: Script) -> tuple[Floats, Ints]:
    """Return segments (S, 2, 2) from the start through the requested positions, and the keyframe (S,) that each leads to."""
    rows = [row for row, keyframe in enumerate(script.keyframes) if keyframe.position is not None]
    found = spots(script)
    return _segments(np.array([(found[row].x, found[row].y) for row in rows]).reshape(-1, 2), np.array(rows, dtype=int))


def _planned_path(script: Script, plan: WaypointPlan) -> tuple[Floats, Ints]:
    """Return the same as `_straight_path`, through the waypoints of the first robot of a plan."""
    there = used(plan.goals)[0]
    hard = ~plan.soft[0, there]
    first = sum(keyframe.step <= 0 for keyframe in script.keyframes)  # keyframes at the start are not in the plan
    rows = np.minimum(first + np.cumsum(hard) - hard, len(script.keyframes) - 1)
    return _segments(plan.path[0, there, :2], rows)


def _segments(places: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """Return segments from the start through all places. Segments of no length are left out, unless there are no others."""
    places = np.concatenate([np.zeros((1, 2)), places])
    segments = np.stack([places[:-1], places[1:]], axis=1)
    moves = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1) > SHORTEST_SEGMENT
    if moves.any():
        return segments[moves], rows[moves]
    return np.zeros((1, 2, 2)), np.zeros(1, dtype=int)


def _off_stage(stage: Stage, segments: Floats, rows: Ints, radius: float) -> Iterator[ScriptWarning]:
    """Yield a warning where the path to a keyframe comes too close to the edge of the floor, an obstacle or the audience."""
    if stage.floor is not None:
        apart = _distance(segments, np.array(stage.floor), radius)
        outside = ~(shapes.inside(segments[:, 0], stage.floor) & shapes.inside(segments[:, 1], stage.floor))
        yield from _too_near(np.where(outside, 0.0, apart), rows, radius, "leaves", ["the floor"])
    if stage.obstacles:
        outlines = [obstacle.outline for obstacle in stage.obstacles]
        apart = np.stack([_distance(segments, corners, radius) for corners in outlines], axis=1)  # (S, O)
        within = np.stack([shapes.inside(segments[:, 1], corners) for corners in outlines], axis=1)
        names = [f"the {each.label}" if each.label else f"obstacle {n}" for n, each in enumerate(stage.obstacles, 1)]
        yield from _too_near(np.where(within, 0.0, apart), rows, radius, "meets", names)
    if stage.audience is not None:
        apart = shapes.distances(segments, np.array([stage.audience]))[:, 0]
        yield from _too_near(apart, rows, radius, "crosses", ["the audience's side"])


def _distance(segments: Floats, corners: Floats, radius: float) -> Floats:
    """Return the distance (S,) of each segment from an outline, infinity where it is clearly beyond the radius."""
    lowest, highest = segments.min(axis=1) - radius, segments.max(axis=1) + radius  # (S, 2)
    near = np.all((lowest <= corners.max(axis=0)) & (highest >= corners.min(axis=0)), axis=1)
    apart = np.full(len(segments), inf)
    apart[near] = shapes.distances(segments[near], shapes.outline(corners)).min(axis=1)
    return apart


def _too_near(apart: Floats, rows: Ints, radius: float, verb: str, names: list[str]) -> Iterator[ScriptWarning]:
    """Yield one warning per keyframe, for the nearest thing. apart (S,) or (S, O) is the distance of segments from named things, m."""
    apart = apart.reshape(len(rows), -1)
    least, nearest = apart.min(axis=1), apart.argmin(axis=1)  # (S,)
    found: dict[int, int] = {}
    for segment in np.flatnonzero(least < radius).tolist():
        row = int(rows[segment])
        if row not in found or least[segment] < least[found[row]]:
            found[row] = segment
    for row, segment in found.items():
        name = names[nearest[segment]]
        if least[segment] <= 0.0:
            yield ScriptWarning(row, f"the path to it {verb} {name}")
        else:
            edge = "the edge of " if verb == "leaves" else ""
            size = f"the robot needs {radius:.2f} m"
            yield ScriptWarning(row, f"the path to it is {least[segment]:.2f} m from {edge}{name}; {size}")


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
    height = float(standing_height(robot, robot.stance))
    limit = (STANDING_START_SPEED if demand.standing_start else RUNNING_SPEED) * sqrt(geometry.GRAVITY * height)
    fastest_turn = TURN_RATE * sqrt(geometry.GRAVITY / height)
    if demand.speed is not None and demand.speed > limit:
        start = " from a standstill" if demand.standing_start else ""
        yield f"{demand.speed:.1f} m/s{start} exceeds the robot's limit of {limit:.2g} m/s"
    if demand.turn_rate is not None and abs(demand.turn_rate) > fastest_turn + 1e-9:
        rate = abs(degrees(demand.turn_rate))
        yield f"a turn at {rate:.0f} degrees/s exceeds the robot's limit of {degrees(fastest_turn):.0f} degrees/s"
    if demand.winding:
        yield f"a turn by {degrees(demand.winding):.0f} degrees is made the shorter way round; add a keyframe in between"
    if demand.joint_speed is not None and np.any(demand.joint_speed > robot.speed_limit):
        joint = int(np.argmax(demand.joint_speed / robot.speed_limit))
        speed, most = demand.joint_speed[joint], robot.speed_limit[joint]
        yield f"{robot.joint_names[joint]} would have to move at {speed:.1f} rad/s, but its motor is limited to {most:g} rad/s"


def _odd_pose(keyframe: Keyframe, unit: str, robot: Robot) -> Iterator[str]:
    for name, limit in TILTS.items():
        tilt = (getattr(keyframe, name) or 0.0) * angle_unit(unit)
        if abs(tilt) > limit + 1e-9:
            yield f"{name} {degrees(tilt):.0f} degrees exceeds the {degrees(limit):g} degrees that a standing robot can hold"
    height = keyframe.position[2] if keyframe.position and len(keyframe.position) == 3 else None
    if height is None:
        return
    lowest, highest = base_heights(robot)
    if not lowest <= height <= highest:
        yield f"base height {height:.3g} m is outside what the robot reaches ({lowest:.2f} to {highest:.2f} m)"
    if keyframe.posture is not None:
        yield from _feet_and_ground(lowest_foot(keyframe, height, unit, robot), robot)


def base_heights(robot: Robot) -> tuple[float, float]:
    """Return the lowest and the highest plausible height of the base in metres."""
    leg = max(leg.thigh_length + leg.calf_length for leg in robot.legs) + robot.foot_radius
    return BASE_HEIGHTS[0] * leg, BASE_HEIGHTS[1] * leg


def body_radius(robot: Robot) -> float:
    """Return the radius of the circle around the base that the robot takes up when standing, m."""
    hips = [
        hypot(*(a + b for a, b in zip(leg.hip_in_base[:2], leg.thigh_in_hip[:2], strict=True))) for leg in robot.legs
    ]
    return BODY_RADIUS * max(hips)


def _feet_and_ground(gap: float, robot: Robot) -> Iterator[str]:
    if gap < -GROUND_MARGIN:
        yield f"the posture puts a foot {-gap:.2f} m into the ground at this height and tilt"
    if gap > JUMP_CLEARANCE * standing_height(robot, robot.stance):
        yield f"the posture's lowest foot is {gap:.2f} m above the ground, higher than the robot can jump"


def lowest_foot(keyframe: Keyframe, height: float, unit: str, robot: Robot) -> float:
    """Return the metres between the ground and the lowest foot; an open tilt is that of the named posture, or level."""
    named = named_postures(robot)[keyframe.posture] if isinstance(keyframe.posture, str) else None
    roll = named.roll if named and keyframe.roll is None else (keyframe.roll or 0.0) * angle_unit(unit)
    pitch = named.pitch if named and keyframe.pitch is None else (keyframe.pitch or 0.0) * angle_unit(unit)
    feet = feet_from_joints(robot, posture_angles(keyframe.posture, unit, robot))  # (4, 3) base
    feet = geometry.rotate(geometry.from_roll_pitch_yaw(np.array([roll, pitch, 0.0])), feet)
    return float(height + feet[:, 2].min() - robot.foot_radius)
