"""What the planner of in-betweens starts from: where the robot is now, and each keyframe that is still to come.

What a keyframe leaves open is filled in here. E is robots, N events: the present, then the coming keyframes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keystride.keyframes.goals import CONTROL_DT, NEVER_DUE, Goals, used
from keystride.keyframes.inbetween.legs import DEFAULT_PACE, Pace
from keystride.keyframes.inbetween.ranges import Mask
from keystride.keyframes.postures import Posture
from keystride.robot.description import Floats

StepArray = NDArray[np.int64]
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
class Shape:
    """How the robot holds itself; NaN where it is left open."""

    height: Floats  # (E, N)
    tilt: Floats  # (E, N, 2) roll, pitch
    posture: Floats  # (E, N, 12)

    def __getitem__(self, at: tuple[NDArray[np.intp], ...]) -> "Shape":
        return Shape(self.height[at], self.tilt[at], self.posture[at])


@dataclass(frozen=True)
class Events:
    """The present, then each coming keyframe; unused ones repeat the last."""

    row: NDArray[np.intp]  # (E, N) in the goals; -1 for the present
    step: StepArray  # (E, N)
    position: Floats  # (E, N, 2) filled in where a keyframe leaves it open
    yaw: Floats  # (E, N) NaN where it is left open
    shape: Shape
    stands: Mask  # (E, N) asks for no other shape than that of standing


def find_events(goals: Goals, present: Present, stance: Posture, pace: Pace) -> Events:
    """Return the present and the coming keyframes, with open positions filled in."""
    environments = len(present.step)
    coming = used(goals) & (goals.step > present.step[:, None])  # (E, K)
    most = max(int(coming.sum(axis=1).max(initial=0)), 1)  # one at least, so that there is a leg
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
    return Events(row, step, position, yaw, shape, stands)


def _filled(place: Floats, asked: Mask, step: StepArray, pace: Pace) -> Floats:
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


def latest_row(goals: Goals, present: Present) -> NDArray[np.intp]:
    """Return (E, 1) the row of the last keyframe that has been due; the first one where there was none."""
    past = used(goals) & (goals.step <= present.step[:, None])
    return np.where(past, goals.step, -1).argmax(axis=1)[:, None]


def shape_of(goals: Goals, rows: NDArray[np.intp], given: Mask, stance: Posture) -> tuple[Shape, Mask, Mask]:
    """Return what keyframes at rows (E, N) require, or standing; whether that is standing; whether they require anything."""
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
    """Return how the robot holds itself from each event on, until something changes; and whether that is standing."""
    rows = np.concatenate([latest_row(goals, present), order], axis=1)  # (E, N)
    here = np.arange(len(rows))[:, None]
    before = used(goals)[here, rows[:, :1]] & (goals.step[here, rows[:, :1]] <= present.step[:, None])
    shape, stands, asked = shape_of(goals, rows, np.concatenate([before, there], axis=1), stance)
    moved = np.linalg.norm(np.diff(position, axis=1), axis=-1) > DEFAULT_PACE.still
    changes = asked | np.pad(moved | ~np.isnan(yaw[:, 1:]), ((0, 0), (1, 0)), constant_values=True)
    source = np.maximum.accumulate(np.where(changes, np.arange(rows.shape[1]), 0), axis=1)
    return shape[here, source], stands[here, source]
