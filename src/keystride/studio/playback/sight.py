"""From which control step on a controller can tell two scripts apart: before it, what was simulated remains valid."""

from dataclasses import dataclass, fields

import numpy as np

from keystride.evaluation.episodes import Controller
from keystride.keyframes.goals import VISIBLE_STEPS_AFTER, Goals, used
from keystride.keyframes.resolve import window
from keystride.physics.simulator import State
from keystride.policy.guide import Guide, Route
from keystride.policy.runtime import Policy


@dataclass(frozen=True)
class Difference:
    """The first control step at which another script is seen; None if it never is."""

    step: int | None
    route: Route | None = None  # with which a guide goes on from there


def first_difference(controller: Controller, start: State, old: Goals, new: Goals) -> Difference:
    """Compare what a controller, fresh if it is a guide, sees of two scripts from a start; goals are the same for all robots.

    A policy sees the next few keyframes that have not expired. Waypoints depend on the whole script: where a guide adds
    any, everything differs. Any other controller is assumed to see all keyframes.
    """
    if _same(old, new):
        return Difference(None)
    if not isinstance(controller, Policy | Guide):
        return Difference(0)
    step = _seen_from(old[:1], new[:1], controller.metadata.max_keyframes)
    if isinstance(controller, Policy) or step == 0:
        return Difference(step)
    routes = [_planned(controller, start, goals) for goals in (old, new)]
    if any(route.plan.soft.any() for route in routes):
        return Difference(0)
    last = int(min(route.last.min() for route in routes))  # from there on a guide holds the robot still
    return Difference(last if step is None else min(step, last), routes[1])


def _seen_from(old: Goals, new: Goals, most: int) -> int | None:
    counts = {goals.step.shape[1] for goals in (old, new)}
    if len(counts) > 1 and min(counts) <= most:
        return 0  # the network is run on another number of rows, which rounds differently
    # What is seen changes only where a keyframe expires.
    expiry = [goals.step[0][used(goals)[0]] + VISIBLE_STEPS_AFTER + 1 for goals in (old, new)]
    steps = np.unique(np.concatenate([[0], *expiry]))
    seen = [window(goals[np.zeros(len(steps), dtype=np.int64)], steps, most) for goals in (old, new)]
    differs = np.zeros(len(steps), dtype=bool)
    for field in fields(Goals):
        a, b = (getattr(goals, field.name) for goals in seen)
        differs |= (a != b).reshape(len(steps), -1).any(axis=1)
    return int(steps[np.argmax(differs)]) if differs.any() else None


def _planned(guide: Guide, start: State, goals: Goals) -> Route:
    """The route that a guide takes from the start."""
    guide.seen(start, goals, np.zeros(len(goals.step), dtype=np.int64))
    assert guide.route is not None
    return guide.route


def _same(old: Goals, new: Goals) -> bool:
    return all(np.array_equal(getattr(old, field.name), getattr(new, field.name)) for field in fields(Goals))
