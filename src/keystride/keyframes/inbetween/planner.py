"""Waypoints between the keyframes of a script, so that a policy always sees keyframes like those it was trained on.

A script may ask for five metres in ten seconds, or for nothing at all for a minute; a policy was trained on keyframes
half a second to a second apart. The planner fills such gaps: it waits, turns, walks and arrives when due. Everything
is computed for all robots and all gaps at once. E is robots, N events (the present and the coming keyframes), W waypoints.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import (
    COMPONENTS,
    CONTROL_DT,
    VISIBLE_STEPS_AFTER,
    Goals,
    empty_goals,
    used,
    with_components,
)
from keystride.keyframes.inbetween.ranges import Mask, TrainedRanges
from keystride.keyframes.inbetween.routing import (
    Present,
    RouteEvents,
    StepArray,
    find_events,
    latest_row,
    plan_segments,
    shape_of,
)
from keystride.keyframes.inbetween.segments import DEFAULT_PACE, Pace, Segments, sample
from keystride.keyframes.postures import Posture
from keystride.robot.description import Floats

WAYPOINT_SPACING = 0.75  # share of the longest trained gap: policies do worse at the edge of their training ranges


@dataclass(frozen=True)
class WaypointPlan:
    """Keyframes and waypoints in order of time; unused rows at the end."""

    goals: Goals  # (E, N + W)
    path: Floats  # (E, N + W, 3) x, y, yaw, with open values filled in
    soft: Mask  # (E, N + W) whether a row is a waypoint


def plan(
    goals: Goals, present: Present, ranges: TrainedRanges, stance: Posture, pace: Pace = DEFAULT_PACE
) -> WaypointPlan:
    """Return the keyframes still to come, with waypoints in gaps that are longer than in training.

    `stance` is the posture in which the robot stands.
    """
    events = find_events(goals, present, stance, pace)
    segments, facing = plan_segments(events, present, ranges, pace)
    counts = _pieces(events.step, segments, ranges) - 1  # (E, N - 1) waypoints in each gap
    return _merge(goals, events, facing, _waypoints(events, segments, counts, ranges, stance))


def hold(
    goals: Goals,
    pose: Floats,
    present: Present,
    ranges: TrainedRanges,
    stance: Posture,
    *,
    pace: Pace = DEFAULT_PACE,
    seconds: float = 10.0,
) -> WaypointPlan:
    """Return waypoints after the last keyframe: a slow path to a pose (E, 3) x, y, yaw, which is then held for some seconds.

    The robot keeps the posture that the last keyframe asked for, or stands.
    """
    still = _held(goals, pose, present, ranges, stance, pace, seconds)
    both = Goals(*(np.concatenate([getattr(part, f.name) for part in (goals, still)], axis=1) for f in fields(Goals)))
    found = plan(both, present, ranges, stance, pace)
    return replace(found, soft=found.soft | (found.goals.step > present.step[:, None]))


def _held(
    goals: Goals, pose: Floats, present: Present, ranges: TrainedRanges, stance: Posture, pace: Pace, seconds: float
) -> Goals:
    """Return two keyframes (E, 2) that hold the pose: when it is reached, and at the end."""
    away = np.linalg.norm(pose[:, :2] - present.position, axis=1)
    turn = np.abs(geometry.wrap(pose[:, 2] - present.yaw))
    turns = np.where(away > pace.still, 2 * np.pi, turn) / pace.turn_rate
    needed = np.where(away > pace.still, away / pace.speed + pace.ramp, 0.0) + turns + pace.turn_setup * (turns > 0.1)
    arrival = np.maximum(np.ceil(needed / CONTROL_DT).astype(np.int64), ranges.gap_steps[0])
    rows = latest_row(goals, present)
    asked = used(goals)[np.arange(len(pose)), rows[:, 0]]
    shape, _, _ = shape_of(goals, rows, asked[:, None], stance)
    last = present.step + arrival + round(seconds / CONTROL_DT)
    moment = [(present.step + arrival), last]
    parts = [
        _soft_goals(step, pose[:, :2], shape.height[:, 0], shape.tilt[:, 0], pose[:, 2], shape.posture[:, 0], ranges)
        for step in moment
    ]
    return Goals(*(np.stack([getattr(part, field.name)[0] for part in parts], axis=1) for field in fields(Goals)))


def _pieces(step: StepArray, segments: Segments, ranges: TrainedRanges) -> StepArray:
    """Return the number of parts (E, N - 1) into which each gap is divided: one if it is no longer than in training."""
    gap = np.diff(step, axis=1)
    shortest, longest = ranges.gap_steps
    seconds = gap * CONTROL_DT
    wanted = np.max(
        [
            np.ceil(gap / (WAYPOINT_SPACING * longest)),
            np.ceil(segments.top_speed * seconds / ranges.distance_m[1] - 1e-6),
            np.ceil(segments.top_turn_rate * seconds / ranges.turn_rad[1] - 1e-6) * ranges.knows("yaw"),
        ],
        axis=0,
    )
    most = np.maximum(gap // shortest, 1)
    return np.where(gap <= longest, 1, np.clip(wanted, 1, most)).astype(np.int64)


@dataclass(frozen=True)
class _Waypoints:
    """The waypoints of all robots, concatenated: W in total."""

    robot: NDArray[np.intp]  # (W,)
    goals: Goals  # (1, W)
    yaw: Floats  # (W,)


def _waypoints(
    events: RouteEvents, segments: Segments, counts: StepArray, ranges: TrainedRanges, stance: Posture
) -> _Waypoints:
    flat = counts.ravel()
    gap = np.repeat(np.arange(len(flat)), flat)  # (W,) which segment
    number = np.arange(len(gap)) - np.repeat(np.cumsum(flat) - flat, flat) + 1  # from 1 within its segment
    robot, segment = np.divmod(gap, max(counts.shape[1], 1))
    first, second = events.step[robot, segment], events.step[robot, segment + 1]
    step = np.rint(first + (second - first) * number / (flat[gap] + 1)).astype(np.int64)
    position, yaw, set_off, walks = sample(segments[robot, segment], CONTROL_DT * (step - first).astype(np.float64))
    held, stands = events.shape[robot, segment], events.stands[robot, segment]
    low = (
        ~stands & ~events.stands[robot, segment + 1] & ~np.isnan(held.height + events.shape.height[robot, segment + 1])
    )
    height = np.where(set_off & ~(walks & low), stance.height, held.height)
    tilt = np.where(set_off[:, None], [stance.roll, stance.pitch], held.tilt)
    posture = np.where(set_off[:, None], stance.joints, held.posture)
    posture = np.where(walks[:, None], np.nan, posture)
    tilt = np.where(walks[:, None], np.nan, tilt)
    return _Waypoints(robot, _soft_goals(step, position, height, tilt, yaw, posture, ranges), yaw)


def _soft_goals(
    step: StepArray, position: Floats, height: Floats, tilt: Floats, yaw: Floats, posture: Floats, ranges: TrainedRanges
) -> Goals:
    """Return keyframes (1, W) with the components that are known (not NaN) and that the policy was trained on."""
    known = np.isin(COMPONENTS, ranges.components)
    there = np.stack(
        [np.ones(len(step), bool), *~np.isnan(tilt.T), np.ones(len(step), bool), ~np.isnan(posture[:, 0])], axis=1
    )
    goals = Goals(
        step=step[None],
        position=np.concatenate([position, np.nan_to_num(height)[:, None]], axis=1)[None],
        angles=np.concatenate([tilt, yaw[:, None]], axis=1)[None],
        posture=posture[None],
        presence=there[None],
        height=~np.isnan(height)[None],
    )
    return with_components(goals, (there & known)[None])


def _merge(goals: Goals, events: RouteEvents, facing: Floats, found: _Waypoints) -> WaypointPlan:
    """Merge keyframes and waypoints of each robot by time; past keyframes that are still visible come first."""
    begin = events.step[:, :1]
    recent = used(goals) & (goals.step <= begin) & (goals.step >= begin - VISIBLE_STEPS_AFTER)
    passed, row = np.nonzero(recent)
    robot, event = np.nonzero(events.row >= 0)
    hard = (np.concatenate([passed, robot]), np.concatenate([row, events.row[robot, event]]))
    everyone = np.concatenate([hard[0], found.robot])
    values = {
        field.name: np.concatenate([getattr(goals, field.name)[hard], getattr(found.goals, field.name)[0]])
        for field in fields(Goals)
    }
    order = np.lexsort((values["step"], everyone))
    everyone = everyone[order]
    column = np.arange(len(everyone)) - np.searchsorted(everyone, everyone)
    merged = empty_goals(len(begin), int(column.max(initial=0)) + 1, goals.posture.shape[-1])
    for name, entries in values.items():
        getattr(merged, name)[everyone, column] = entries[order]
    path, soft = np.zeros((*merged.step.shape, 3)), np.zeros(merged.step.shape, bool)
    places = np.concatenate([events.position[passed, 0], events.position[robot, event], found.goals.position[0, :, :2]])
    headings = np.concatenate([facing[passed, 0], facing[robot, event], found.yaw])
    path[everyone, column] = np.concatenate([places, headings[:, None]], axis=1)[order]
    soft[everyone, column] = (np.arange(len(order)) >= len(hard[0]))[order]
    return WaypointPlan(merged, path, soft)
