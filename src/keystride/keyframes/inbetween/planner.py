"""Waypoints between the keyframes of a script, so that a policy always sees keyframes like those of its training.

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
    NEVER,
    VISIBLE_STEPS_AFTER,
    Goals,
    empty_goals,
    used,
    with_components,
)
from keystride.keyframes.inbetween.legs import PACE, Legs, Pace, sample
from keystride.keyframes.inbetween.ranges import TrainedRanges, exceeds
from keystride.keyframes.postures import Posture
from keystride.robot.description import Floats

Bools = NDArray[np.bool_]
StepArray = NDArray[np.int64]
SPACING = 0.75  # of the longest trained gap: the edge of what was trained is met less well
STANDING = 0.05  # m from the standing height: a keyframe that asks for no more than that stands


@dataclass(frozen=True)
class Present:
    """Where robots are when a plan begins."""

    step: StepArray  # (E,)
    position: Floats  # (E, 2) m, world
    yaw: Floats  # (E,)
    velocity: Floats  # (E, 2) m/s, world

    def __getitem__(self, rows: NDArray[np.intp]) -> "Present":
        return Present(self.step[rows], self.position[rows], self.yaw[rows], self.velocity[rows])


@dataclass(frozen=True)
class WaypointPlan:
    """Keyframes and waypoints in the order of their times; unused rows at the end."""

    goals: Goals  # (E, N + W)
    path: Floats  # (E, N + W, 3) x, y, yaw, with what keyframes leave open filled in
    soft: Bools  # (E, N + W) waypoints, which nobody asked for


@dataclass(frozen=True)
class _Shape:
    """How the robot holds itself; NaN where it is left open."""

    height: Floats  # (E, N)
    tilt: Floats  # (E, N, 2) roll, pitch
    posture: Floats  # (E, N, 12)

    def __getitem__(self, at: tuple[NDArray[np.intp], ...]) -> "_Shape":
        return _Shape(self.height[at], self.tilt[at], self.posture[at])


@dataclass(frozen=True)
class _Events:
    """The present, then each coming keyframe; unused ones repeat the last."""

    row: NDArray[np.intp]  # (E, N) in the goals; -1 for the present
    step: StepArray  # (E, N)
    position: Floats  # (E, N, 2) filled in where a keyframe leaves it open
    yaw: Floats  # (E, N) NaN where it is left open
    shape: _Shape
    stands: Bools  # (E, N) asks for no other shape than that of standing


def plan(goals: Goals, present: Present, ranges: TrainedRanges, stance: Posture, pace: Pace = PACE) -> WaypointPlan:
    """Keyframes that are still to come, with waypoints in the gaps that are longer than in training.

    stance is how the robot stands.
    """
    events = _events(goals, present, stance, pace)
    legs, facing = _legs(events, present, ranges, pace)
    counts = _pieces(events.step, legs, ranges) - 1  # (E, N - 1) waypoints in each gap
    return _merge(goals, events, facing, _waypoints(events, legs, counts, ranges, stance))


def hold(
    goals: Goals,
    pose: Floats,
    present: Present,
    ranges: TrainedRanges,
    stance: Posture,
    *,
    pace: Pace = PACE,
    seconds: float = 10.0,
) -> WaypointPlan:
    """After the last keyframe: the way to a pose (E, 3) x, y, yaw at leisure, and that pose kept for some seconds.

    The robot holds itself as the last keyframe asked, or stands.
    """
    still = _held(goals, pose, present, ranges, stance, pace, seconds)
    both = Goals(*(np.concatenate([getattr(part, f.name) for part in (goals, still)], axis=1) for f in fields(Goals)))
    found = plan(both, present, ranges, stance, pace)
    return replace(found, soft=found.soft | (found.goals.step > present.step[:, None]))


def _held(
    goals: Goals, pose: Floats, present: Present, ranges: TrainedRanges, stance: Posture, pace: Pace, seconds: float
) -> Goals:
    """(E, 2) the pose when it is reached, and at the end."""
    away = np.linalg.norm(pose[:, :2] - present.position, axis=1)
    turn = np.abs(geometry.wrap(pose[:, 2] - present.yaw))
    turns = np.where(away > pace.still, 2 * np.pi, turn) / pace.turn_rate
    needed = np.where(away > pace.still, away / pace.speed + pace.ramp, 0.0) + turns + pace.turn_setup * (turns > 0.1)
    arrival = np.maximum(np.ceil(needed / CONTROL_DT).astype(np.int64), ranges.gap_steps[0])
    rows = _latest(goals, present)
    asked = used(goals)[np.arange(len(pose)), rows[:, 0]]
    shape, _, _ = _shape(goals, rows, asked[:, None], stance)
    last = present.step + arrival + round(seconds / CONTROL_DT)
    moment = [(present.step + arrival), last]
    parts = [
        _soft_goals(step, pose[:, :2], shape.height[:, 0], shape.tilt[:, 0], pose[:, 2], shape.posture[:, 0], ranges)
        for step in moment
    ]
    return Goals(*(np.stack([getattr(part, field.name)[0] for part in parts], axis=1) for field in fields(Goals)))


def _events(goals: Goals, present: Present, stance: Posture, pace: Pace) -> _Events:
    environments = len(present.step)
    coming = used(goals) & (goals.step > present.step[:, None])  # (E, K)
    most = max(int(coming.sum(axis=1).max(initial=0)), 1)  # one at least, so that there is a leg
    order = np.argsort(np.where(coming, goals.step, NEVER), axis=1, kind="stable")[:, :most]
    here = np.arange(environments)[:, None]
    there = coming[here, order]
    step = np.concatenate([present.step[:, None], np.where(there, goals.step[here, order], 0)], axis=1)
    step = np.maximum.accumulate(step, axis=1)
    asked = np.concatenate([np.ones((environments, 1), bool), there & goals.presence[here, order, 0]], axis=1)
    place = np.concatenate([present.position[:, None], goals.position[here, order, :2]], axis=1)
    yaw = np.where(there & goals.presence[here, order, 3], goals.angles[here, order, 2], np.nan)
    yaw = np.concatenate([present.yaw[:, None], yaw], axis=1)
    position = _filled(place, asked, step, pace)
    shape, stands = _shapes(goals, present, there, order, position, yaw, stance)
    row = np.concatenate([np.full((environments, 1), -1), np.where(there, order, -1)], axis=1)
    return _Events(row, step, position, yaw, shape, stands)


def _filled(place: Floats, asked: Bools, step: StepArray, pace: Pace) -> Floats:
    """Positions where keyframes leave them open: still at the last one if the next can be reached from there, else on the way."""
    events = np.arange(place.shape[1])
    before = np.maximum.accumulate(np.where(asked, events, 0), axis=1)
    after = np.minimum.accumulate(np.where(asked, events, len(events))[:, ::-1], axis=1)[:, ::-1]
    after = np.where(after < len(events), after, before)
    here = np.arange(len(place))[:, None]
    begin, end = place[here, before], place[here, after]  # (E, N, 2)
    length = np.linalg.norm(end - begin, axis=-1)
    left = (step[here, after] - step) * CONTROL_DT
    share = (step - step[here, before]) / np.maximum(step[here, after] - step[here, before], 1)
    on_the_way = ~asked & (left < length / pace.speed + 2 * pace.ramp)
    return begin + np.where(on_the_way, share, 0.0)[..., None] * (end - begin)


def _latest(goals: Goals, present: Present) -> NDArray[np.intp]:
    """(E, 1) the row of the last keyframe that has been due; the first one where there was none."""
    past = used(goals) & (goals.step <= present.step[:, None])
    return np.where(past, goals.step, -1).argmax(axis=1)[:, None]


def _shape(goals: Goals, rows: NDArray[np.intp], given: Bools, stance: Posture) -> tuple[_Shape, Bools, Bools]:
    """What keyframes at rows (E, N) ask for, or standing; whether that is standing; whether they ask for anything."""
    here = np.arange(len(rows))[:, None]
    bits = goals.presence[here, rows] & given[..., None]  # (E, N, 5)
    tall = bits[..., 0] & goals.height[here, rows]
    height = np.where(tall, goals.position[here, rows, 2], np.nan)
    plain = ~bits[..., 1] & ~bits[..., 2] & ~bits[..., 4]
    stands = plain & ~(np.abs(height - stance.height) > STANDING)
    level = np.array([stance.roll, stance.pitch])
    tilt = np.where(bits[..., 1:3], goals.angles[here, rows, :2], np.nan)
    posture = np.where(bits[..., 4:], goals.posture[here, rows], np.nan)
    shape = _Shape(
        height=np.where(np.isnan(height) & stands, stance.height, height),
        tilt=np.where(stands[..., None], level, tilt),
        posture=np.where(stands[..., None], stance.joints, posture),
    )
    return shape, stands, tall | ~plain


def _shapes(
    goals: Goals,
    present: Present,
    there: Bools,
    order: NDArray[np.intp],
    position: Floats,
    yaw: Floats,
    stance: Posture,
) -> tuple[_Shape, Bools]:
    """How the robot holds itself from each event on, until something changes; and whether that is standing."""
    rows = np.concatenate([_latest(goals, present), order], axis=1)  # (E, N)
    here = np.arange(len(rows))[:, None]
    before = used(goals)[here, rows[:, :1]] & (goals.step[here, rows[:, :1]] <= present.step[:, None])
    shape, stands, asked = _shape(goals, rows, np.concatenate([before, there], axis=1), stance)
    moved = np.linalg.norm(np.diff(position, axis=1), axis=-1) > PACE.still
    changes = asked | np.pad(moved | ~np.isnan(yaw[:, 1:]), ((0, 0), (1, 0)), constant_values=True)
    source = np.maximum.accumulate(np.where(changes, np.arange(rows.shape[1]), 0), axis=1)
    return shape[here, source], stands[here, source]


def _legs(events: _Events, present: Present, ranges: TrainedRanges, pace: Pace) -> tuple[Legs, Floats]:
    """The legs (E, N - 1), and the yaw at each event (E, N)."""
    begin, end = events.position[:, :-1], events.position[:, 1:]
    chord = end - begin
    length = np.linalg.norm(chord, axis=-1)
    moves = length > pace.still
    way = np.arctan2(chord[..., 1], chord[..., 0])
    seconds = np.diff(events.step, axis=1) * CONTROL_DT
    asked = ~np.isnan(events.yaw)  # (E, N)
    walk = length / pace.speed + pace.ramp
    through, bisector = _through(way, moves & (seconds < walk + pace.least_wait), events, ranges)
    facing = _headings(events, way, moves, through, bisector)
    speed = np.divide(length, seconds, out=np.zeros_like(length), where=seconds > 0)
    passing = np.where(
        through, np.minimum(np.pad(speed, ((0, 0), (1, 0))), np.pad(speed, ((0, 0), (0, 1)))), 0.0
    )  # (E, N)
    depart = np.where(through[:, :-1], bisector[:, :-1], way)
    arrive = np.where(through[:, 1:], bisector[:, 1:], way)
    speed_in = passing[:, :-1].copy()
    ahead = (np.stack([np.cos(depart[:, 0]), np.sin(depart[:, 0])], axis=-1) * present.velocity).sum(axis=-1)
    speed_in[:, 0] = np.clip(ahead, 0.0, speed[:, 0]) * moves[:, 0]

    yaw, turn = facing[:, :-1], geometry.wrap(facing[:, 1:] - facing[:, :-1])
    turn_in, turn_out = geometry.wrap(yaw - depart), geometry.wrap(facing[:, 1:] - arrive)
    keeps = asked[:, 1:] & ~exceeds(turn, ranges.turn_rad) & (length <= ranges.distance_m[1])
    along = moves & ~keeps & ranges.knows("yaw")
    first = _on_the_spot(-turn_in, along, ranges, pace)
    last = _on_the_spot(turn_out, along, ranges, pace)
    hurried = (first + last + walk) / pace.hurry > seconds
    along &= ~(hurried & (first + last > 0))
    first, last = first * along, last * along
    only_turns = np.where(np.abs(turn) > 1e-6, np.abs(turn) / pace.turn_rate + pace.turn_setup, 0.0)
    needed = first + last + np.where(moves, walk, 0.0)
    needed = np.where(along, needed, np.maximum(needed, only_turns))
    wait = np.where((seconds - needed > pace.least_wait) & (speed_in <= 0.0), seconds - needed, 0.0)
    wait = np.where(moves, wait, np.maximum(seconds - needed, 0.0))
    shrink = np.minimum((seconds - wait) / np.maximum(needed, 1e-9), 1.0)
    first, last = first * shrink, last * shrink
    walk = np.maximum(seconds - wait - first - last, 0.0)
    reach = np.where(moves, length, 0.0)[..., None]
    return (
        Legs(
            begin=np.where(moves[..., None], begin, end),
            end=end,
            depart=reach * np.stack([np.cos(depart), np.sin(depart)], axis=-1),
            arrive=reach * np.stack([np.cos(arrive), np.sin(arrive)], axis=-1),
            speed_in=speed_in,
            speed_out=passing[:, 1:],
            yaw=yaw,
            turn=turn,
            turn_in=turn_in,
            turn_out=turn_out,
            along=along,
            wait=wait,
            first=first,
            walk=walk,
            last=last,
            ramp=np.minimum(pace.ramp, 0.5 * walk),
        ),
        facing,
    )


def _through(way: Floats, busy: Bools, events: _Events, ranges: TrainedRanges) -> tuple[Bools, Floats]:
    """(E, N) at which events the robot walks on without stopping, and in which direction it passes."""
    corner = geometry.wrap(np.diff(way, axis=1))
    middle = way[:, :-1] + 0.5 * corner
    goes = busy[:, :-1] & busy[:, 1:] & ~exceeds(corner, ranges.direction_rad) & events.stands[:, 1:-1]
    yaw = events.yaw[:, 1:-1]
    goes &= np.isnan(yaw) | ~exceeds(geometry.wrap(middle - np.nan_to_num(yaw)), ranges.direction_rad)
    sides = ((0, 0), (1, 1))
    return np.pad(goes, sides), np.pad(middle, sides)


def _headings(events: _Events, way: Floats, moves: Bools, through: Bools, bisector: Floats) -> Floats:
    """(E, N) as asked; else along the path by which the robot comes; else as before."""
    asked = ~np.isnan(events.yaw)
    arrival = np.pad(way, ((0, 0), (1, 0)))
    heading = np.where(asked, events.yaw, np.where(through, bisector, arrival))
    known = asked | np.pad(moves, ((0, 0), (1, 0)))
    source = np.maximum.accumulate(np.where(known, np.arange(heading.shape[1]), 0), axis=1)
    return np.take_along_axis(heading, source, axis=1)


def _on_the_spot(turn: Floats, along: Bools, ranges: TrainedRanges, pace: Pace) -> Floats:
    """s of turning on the spot; none where the policy can walk in that direction as it stands."""
    wide = along & exceeds(turn, ranges.direction_rad)
    return np.where(wide, np.abs(turn) / pace.turn_rate + pace.turn_setup, 0.0)


def _pieces(step: StepArray, legs: Legs, ranges: TrainedRanges) -> StepArray:
    """(E, N - 1) into how many parts each gap is divided: one where it is no longer than in training."""
    gap = np.diff(step, axis=1)
    shortest, longest = ranges.gap_steps
    seconds = gap * CONTROL_DT
    wanted = np.max(
        [
            np.ceil(gap / (SPACING * longest)),
            np.ceil(legs.top_speed * seconds / ranges.distance_m[1] - 1e-6),
            np.ceil(legs.top_turn_rate * seconds / ranges.turn_rad[1] - 1e-6) * ranges.knows("yaw"),
        ],
        axis=0,
    )
    most = np.maximum(gap // shortest, 1)
    return np.where(gap <= longest, 1, np.clip(wanted, 1, most)).astype(np.int64)


@dataclass(frozen=True)
class _Waypoints:
    """Of all robots, one after another: W in all."""

    robot: NDArray[np.intp]  # (W,)
    goals: Goals  # (1, W)
    yaw: Floats  # (W,)


def _waypoints(events: _Events, legs: Legs, counts: StepArray, ranges: TrainedRanges, stance: Posture) -> _Waypoints:
    flat = counts.ravel()
    gap = np.repeat(np.arange(len(flat)), flat)  # (W,) which leg
    number = np.arange(len(gap)) - np.repeat(np.cumsum(flat) - flat, flat) + 1  # from 1 within its leg
    robot, leg = np.divmod(gap, max(counts.shape[1], 1))
    first, second = events.step[robot, leg], events.step[robot, leg + 1]
    step = np.rint(first + (second - first) * number / (flat[gap] + 1)).astype(np.int64)
    position, yaw, set_off, walks = sample(legs[robot, leg], CONTROL_DT * (step - first).astype(np.float64))
    held, stands = events.shape[robot, leg], events.stands[robot, leg]
    low = ~stands & ~events.stands[robot, leg + 1] & ~np.isnan(held.height + events.shape.height[robot, leg + 1])
    height = np.where(set_off & ~(walks & low), stance.height, held.height)
    tilt = np.where(set_off[:, None], [stance.roll, stance.pitch], held.tilt)
    posture = np.where(set_off[:, None], stance.joints, held.posture)
    posture = np.where(walks[:, None], np.nan, posture)
    tilt = np.where(walks[:, None], np.nan, tilt)
    return _Waypoints(robot, _soft_goals(step, position, height, tilt, yaw, posture, ranges), yaw)


def _soft_goals(
    step: StepArray, position: Floats, height: Floats, tilt: Floats, yaw: Floats, posture: Floats, ranges: TrainedRanges
) -> Goals:
    """(1, W) keyframes of what is known (not NaN), and of what the policy has been trained for."""
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


def _merge(goals: Goals, events: _Events, facing: Floats, found: _Waypoints) -> WaypointPlan:
    """Keyframes and waypoints of each robot by time; keyframes that are past but still in sight come first."""
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
