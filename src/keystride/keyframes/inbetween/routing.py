"""Plan how the robot gets from each event to the next: when it waits, turns and walks, and how fast.

The events are the present and the keyframes that are still to come, with what they leave open filled in.
E is robots, N events, so there are N - 1 segments.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT, NEVER_DUE, Goals, used
from keystride.keyframes.inbetween.ranges import Mask, TrainedRanges, exceeds
from keystride.keyframes.inbetween.segments import DEFAULT_PACE, Pace, Segments
from keystride.keyframes.postures import Posture
from keystride.robot.description import Floats

StepArray = NDArray[np.int64]
STANDING = 0.05  # m from the standing height within which a keyframe counts as standing


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
class Shape:
    """Height, tilt and posture of the robot; NaN where they are left open."""

    height: Floats  # (E, N)
    tilt: Floats  # (E, N, 2) roll, pitch
    posture: Floats  # (E, N, 12)

    def __getitem__(self, at: tuple[NDArray[np.intp], ...]) -> "Shape":
        return Shape(self.height[at], self.tilt[at], self.posture[at])


@dataclass(frozen=True)
class RouteEvents:
    """The present, then each coming keyframe; unused ones repeat the last."""

    row: NDArray[np.intp]  # (E, N) in the goals; -1 for the present
    step: StepArray  # (E, N)
    position: Floats  # (E, N, 2) filled in where a keyframe leaves it open
    yaw: Floats  # (E, N) NaN where it is left open
    shape: Shape
    stands: Mask  # (E, N) whether the shape is that of standing, or left open


def find_events(goals: Goals, present: Present, stance: Posture, pace: Pace) -> RouteEvents:
    """Return the present and the coming keyframes, with open positions filled in."""
    environments = len(present.step)
    coming = used(goals) & (goals.step > present.step[:, None])  # (E, K)
    most = max(int(coming.sum(axis=1).max(initial=0)), 1)  # one at least, so that there is a segment
    order = np.argsort(np.where(coming, goals.step, NEVER_DUE), axis=1, kind="stable")[:, :most]
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
    return RouteEvents(row, step, position, yaw, shape, stands)


def _filled(place: Floats, asked: Mask, step: StepArray, pace: Pace) -> Floats:
    """Fill in open positions: the previous one if the next can still be reached from there in time, else a point in between."""
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


def latest_row(goals: Goals, present: Present) -> NDArray[np.intp]:
    """Return the row (E, 1) of the latest keyframe that has been due, or the first row if none has."""
    past = used(goals) & (goals.step <= present.step[:, None])
    return np.where(past, goals.step, -1).argmax(axis=1)[:, None]


def shape_of(goals: Goals, rows: NDArray[np.intp], given: Mask, stance: Posture) -> tuple[Shape, Mask, Mask]:
    """Return the shape that keyframes at rows (E, N) require, or standing; whether it is standing; whether they require any."""
    here = np.arange(len(rows))[:, None]
    bits = goals.presence[here, rows] & given[..., None]  # (E, N, 5)
    tall = bits[..., 0] & goals.height[here, rows]
    height = np.where(tall, goals.position[here, rows, 2], np.nan)
    plain = ~bits[..., 1] & ~bits[..., 2] & ~bits[..., 4]
    stands = plain & ~(np.abs(height - stance.height) > STANDING)
    level = np.array([stance.roll, stance.pitch])
    tilt = np.where(bits[..., 1:3], goals.angles[here, rows, :2], np.nan)
    posture = np.where(bits[..., 4:], goals.posture[here, rows], np.nan)
    shape = Shape(
        height=np.where(np.isnan(height) & stands, stance.height, height),
        tilt=np.where(stands[..., None], level, tilt),
        posture=np.where(stands[..., None], stance.joints, posture),
    )
    return shape, stands, tall | ~plain


def _shapes(
    goals: Goals,
    present: Present,
    there: Mask,
    order: NDArray[np.intp],
    position: Floats,
    yaw: Floats,
    stance: Posture,
) -> tuple[Shape, Mask]:
    """Return the shape of the robot from each event until the next change, and whether it is that of standing."""
    rows = np.concatenate([latest_row(goals, present), order], axis=1)  # (E, N)
    here = np.arange(len(rows))[:, None]
    before = used(goals)[here, rows[:, :1]] & (goals.step[here, rows[:, :1]] <= present.step[:, None])
    shape, stands, asked = shape_of(goals, rows, np.concatenate([before, there], axis=1), stance)
    moved = np.linalg.norm(np.diff(position, axis=1), axis=-1) > DEFAULT_PACE.still
    changes = asked | np.pad(moved | ~np.isnan(yaw[:, 1:]), ((0, 0), (1, 0)), constant_values=True)
    source = np.maximum.accumulate(np.where(changes, np.arange(rows.shape[1]), 0), axis=1)
    return shape[here, source], stands[here, source]


@dataclass(frozen=True)
class _Chords:
    """The straight lines from each event to the next, and the time available for them; (E, N - 1) each."""

    begin: Floats  # (E, N - 1, 2)
    end: Floats
    length: Floats  # m
    direction: Floats  # rad
    moves: Mask  # whether the two events are different places
    seconds: Floats  # from one event to the next
    walk: Floats  # s that walking there takes at the default pace


@dataclass(frozen=True)
class _Passing:
    """How the robot passes each event; (E, N) each."""

    through: Mask  # whether it walks on without stopping
    direction: Floats  # rad, halfway between those of the segments before and after
    speed: Floats  # m/s; 0 where it stops


@dataclass(frozen=True)
class _Turns:
    """How the robot turns on each segment; (E, N - 1) each. See `Segments`."""

    yaw: Floats
    turn: Floats
    turn_in: Floats
    turn_out: Floats
    along: Mask
    first: Floats  # s at the default pace
    last: Floats


def plan_segments(events: RouteEvents, present: Present, ranges: TrainedRanges, pace: Pace) -> tuple[Segments, Floats]:
    """Return the segments (E, N - 1), and the yaw at each event (E, N)."""
    chords = _chords(events, pace)
    passing = _passing(chords, events, ranges, pace)
    facing = _headings(events, chords, passing)
    depart = np.where(passing.through[:, :-1], passing.direction[:, :-1], chords.direction)
    arrive = np.where(passing.through[:, 1:], passing.direction[:, 1:], chords.direction)
    speed_in = _entry_speeds(chords, passing, depart, present)
    turns = _turns(events, chords, facing, depart, arrive, ranges, pace)
    wait, first, walk, last = _times(chords, turns, speed_in, pace)
    reach = np.where(chords.moves, chords.length, 0.0)[..., None]
    segments = Segments(
        begin=np.where(chords.moves[..., None], chords.begin, chords.end),
        end=chords.end,
        depart=reach * _unit(depart),
        arrive=reach * _unit(arrive),
        speed_in=speed_in,
        speed_out=passing.speed[:, 1:],
        yaw=turns.yaw,
        turn=turns.turn,
        turn_in=turns.turn_in,
        turn_out=turns.turn_out,
        along=turns.along,
        wait=wait,
        first=first,
        walk=walk,
        last=last,
        ramp=np.minimum(pace.ramp, 0.5 * walk),
    )
    return segments, facing


def _chords(events: RouteEvents, pace: Pace) -> _Chords:
    begin, end = events.position[:, :-1], events.position[:, 1:]
    chord = end - begin
    length = np.linalg.norm(chord, axis=-1)
    return _Chords(
        begin,
        end,
        length,
        direction=np.arctan2(chord[..., 1], chord[..., 0]),
        moves=length > pace.still,
        seconds=np.diff(events.step, axis=1) * CONTROL_DT,
        walk=length / pace.speed + pace.ramp,
    )


def _passing(chords: _Chords, events: RouteEvents, ranges: TrainedRanges, pace: Pace) -> _Passing:
    """Return where the robot walks through a keyframe: it asks for standing, leaves no time to wait, and needs no sharp turn."""
    busy = chords.moves & (chords.seconds < chords.walk + pace.least_wait)
    corner = geometry.wrap(np.diff(chords.direction, axis=1))
    middle = chords.direction[:, :-1] + 0.5 * corner
    goes = busy[:, :-1] & busy[:, 1:] & ~exceeds(corner, ranges.direction_rad) & events.stands[:, 1:-1]
    yaw = events.yaw[:, 1:-1]
    goes &= np.isnan(yaw) | ~exceeds(geometry.wrap(middle - np.nan_to_num(yaw)), ranges.direction_rad)
    through = np.pad(goes, ((0, 0), (1, 1)))
    speed = _average_speed(chords)
    slower = np.minimum(np.pad(speed, ((0, 0), (1, 0))), np.pad(speed, ((0, 0), (0, 1))))
    return _Passing(through, np.pad(middle, ((0, 0), (1, 1))), np.where(through, slower, 0.0))


def _average_speed(chords: _Chords) -> Floats:
    return np.divide(chords.length, chords.seconds, out=np.zeros_like(chords.length), where=chords.seconds > 0)


def _headings(events: RouteEvents, chords: _Chords, passing: _Passing) -> Floats:
    """Return the yaw (E, N) that is requested; else the direction of arrival; else that of the event before."""
    asked = ~np.isnan(events.yaw)
    arrival = np.pad(chords.direction, ((0, 0), (1, 0)))
    heading = np.where(asked, events.yaw, np.where(passing.through, passing.direction, arrival))
    known = asked | np.pad(chords.moves, ((0, 0), (1, 0)))
    source = np.maximum.accumulate(np.where(known, np.arange(heading.shape[1]), 0), axis=1)
    return np.take_along_axis(heading, source, axis=1)


def _entry_speeds(chords: _Chords, passing: _Passing, depart: Floats, present: Present) -> Floats:
    """Return (E, N - 1) m/s at the beginning of each segment; the first begins at the robot's own speed."""
    speed = passing.speed[:, :-1].copy()
    ahead = (_unit(depart[:, 0]) * present.velocity).sum(axis=-1)
    speed[:, 0] = np.clip(ahead, 0.0, _average_speed(chords)[:, 0]) * chords.moves[:, 0]
    return speed


def _turns(
    events: RouteEvents,
    chords: _Chords,
    facing: Floats,
    depart: Floats,
    arrive: Floats,
    ranges: TrainedRanges,
    pace: Pace,
) -> _Turns:
    """Return the turns: the robot faces along its path, unless it can keep the requested yaw or has no time to turn twice."""
    yaw, turn = facing[:, :-1], geometry.wrap(facing[:, 1:] - facing[:, :-1])
    turn_in, turn_out = geometry.wrap(yaw - depart), geometry.wrap(facing[:, 1:] - arrive)
    asked = ~np.isnan(events.yaw[:, 1:])
    keeps = asked & ~exceeds(turn, ranges.turn_rad) & (chords.length <= ranges.distance_m[1])
    along = chords.moves & ~keeps & ranges.knows("yaw")
    first = _on_the_spot(-turn_in, along, ranges, pace)
    last = _on_the_spot(turn_out, along, ranges, pace)
    hurried = (first + last + chords.walk) / pace.max_speedup > chords.seconds
    along &= ~(hurried & (first + last > 0))
    return _Turns(yaw, turn, turn_in, turn_out, along, first * along, last * along)


def _on_the_spot(turn: Floats, along: Mask, ranges: TrainedRanges, pace: Pace) -> Floats:
    """Return the seconds of turning on the spot; 0 where the policy can walk in that direction without turning first."""
    wide = along & exceeds(turn, ranges.direction_rad)
    return np.where(wide, np.abs(turn) / pace.turn_rate + pace.turn_setup, 0.0)


def _times(chords: _Chords, turns: _Turns, speed_in: Floats, pace: Pace) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the seconds (E, N - 1) of waiting, turning, walking and turning again; their sum is the available time."""
    only_turns = np.where(np.abs(turns.turn) > 1e-6, np.abs(turns.turn) / pace.turn_rate + pace.turn_setup, 0.0)
    needed = turns.first + turns.last + np.where(chords.moves, chords.walk, 0.0)
    needed = np.where(turns.along, needed, np.maximum(needed, only_turns))
    spare = chords.seconds - needed
    wait = np.where((spare > pace.least_wait) & (speed_in <= 0.0), spare, 0.0)
    wait = np.where(chords.moves, wait, np.maximum(spare, 0.0))
    shrink = np.minimum((chords.seconds - wait) / np.maximum(needed, 1e-9), 1.0)
    first, last = turns.first * shrink, turns.last * shrink
    return wait, first, np.maximum(chords.seconds - wait - first - last, 0.0), last


def _unit(angle: Floats) -> Floats:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
