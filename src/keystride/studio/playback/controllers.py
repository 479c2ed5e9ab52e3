"""The controllers of the robot, a policy or none, and the first control step at which one sees two scripts differ."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields

import numpy as np

from keystride.evaluation.episodes import Controller
from keystride.keyframes.goals import COMPONENTS, VISIBLE_STEPS_AFTER, Goals, empty_goals, used
from keystride.physics.simulator import State
from keystride.policy import DEFAULT_POLICY
from keystride.policy.bundle import PolicyError, known
from keystride.policy.guide import CHECK_STEPS, Guide, Route
from keystride.policy.loading import open_policy
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats, Robot

STAND_STILL = "stand still (no policy)"


class StandStill:
    """Holds the stance and ignores keyframes, for editing without a policy."""

    def __init__(self, robot: Robot) -> None:
        self._stance = robot.stance

    def step(self, state: object, goals: Goals, now: object, previous_action: Floats) -> tuple[Floats, Floats]:
        return np.tile(self._stance, (len(previous_action), 1)), np.zeros_like(previous_action)

    def resting_action(self, joint_angles: Floats) -> Floats:
        return np.zeros_like(joint_angles)


def choices() -> tuple[str, ...]:
    return (*known(), STAND_STILL)


def check_choice(name: str, launched: str) -> None:
    """Raise PolicyError unless the name is that of a shipped policy or of the one given on the command line.

    Paths are not accepted from a page: they would let it open any file of the server.
    """
    allowed = dict.fromkeys((launched, *choices()))
    if name not in allowed:
        raise PolicyError(f"policy {name[:80]!r} is not available; choose from: {', '.join(allowed)}")


def first_choice() -> str:
    """Return the default policy, or the first one available."""
    names = known()
    return DEFAULT_POLICY if DEFAULT_POLICY in names else (*names, STAND_STILL)[0]


def load_controller(name_or_path: str, robot: Robot) -> Controller:
    """Load a controller. Raise PolicyError if it cannot be used. A training run needs torch and some seconds."""
    return StandStill(robot) if name_or_path == STAND_STILL else open_policy(name_or_path, robot=robot)


def follows(controller: Controller) -> tuple[str, ...]:
    """Return the components of keyframes that a controller was trained to meet."""
    if isinstance(controller, Policy):
        return tuple(part for part in controller.metadata.goal_components if part in COMPONENTS)
    return ()


def describe_controller(controller: Controller) -> str:
    """Return a sentence that describes a controller to the user."""
    parts = follows(controller)
    if not parts:
        return "Stands still and ignores keyframes."
    rest = "" if len(parts) == len(COMPONENTS) else "; other components of a keyframe are not followed"
    return f"Trained for {', '.join(parts)}{rest}."


@dataclass(frozen=True)
class Difference:
    """The first control step at which a controller sees a difference between two scripts; None if it never does."""

    step: int | None
    routes: Sequence[Route | None]  # of a guide that follows the new script, before each step up to the difference


def first_difference(
    controller: Controller, states: Callable[[int], State], old: Goals, new: Goals, steps: range
) -> Difference:
    """Compare what a controller sees of two scripts from control step to control step. A guide must be a new one.

    `states` returns the robots at each of these steps, simulated with the old script: until the first difference they
    are the same with the new one. The goals are in the order of time. A policy sees the next few of them that have not
    expired; a guide adds waypoints, which depend on the robots. Any other controller is assumed to see everything.
    """
    unguided = [None] * len(steps)
    if same_goals(old, new):
        return Difference(None, unguided)
    if isinstance(controller, Guide):
        return _guided_difference(controller, states, old, new, steps)
    step = steps.start
    if isinstance(controller, Policy):
        seen = _seen_from(old[:1], new[:1], controller.metadata.max_keyframes)
        step = steps.stop if seen is None else max(seen, steps.start)
    return Difference(step if step < steps.stop else None, unguided)


def _guided_difference(
    guide: Guide, states: Callable[[int], State], old: Goals, new: Goals, steps: range
) -> Difference:
    """Plan both scripts again at every step at which a guide may change its route, and compare the routes."""
    before, after, most = copy(guide), copy(guide), guide.metadata.max_keyframes
    routes: list[Route | None] = [None]
    compared: tuple[Route | None, Route | None] = (None, None)
    differs, step = None, steps.start
    while step < steps.stop:
        for each, goals in ((before, old), (after, new)):
            each.seen(states(step), goals, np.full(len(goals.step), step))
        assert before.route is not None
        assert after.route is not None
        if compared[0] is not before.route or compared[1] is not after.route:
            compared = (before.route, after.route)
            differs = _routes_differ_from(before.route, after.route, most)
        due = np.concatenate([before.route.renew, after.route.renew])
        next_check = step - step % CHECK_STEPS + CHECK_STEPS
        following = int(min(next_check, due[due > step].min(initial=next_check), steps.stop))
        if differs is not None and differs < following:
            first = max(differs, step)
            return Difference(first, routes + [after.route] * (first - step))
        routes += [after.route] * (following - step)
        step = following
    return Difference(None, routes[: len(steps)])


def _routes_differ_from(old: Route, new: Route, most: int) -> int | None:
    if old.plan.soft.any() != new.plan.soft.any():
        return 0  # only one of them shows waypoints
    if not old.plan.soft.any():
        return _seen_from(old.asked, new.asked, most)
    return _visible_from(old.plan.goals, new.plan.goals, most)


def _seen_from(old: Goals, new: Goals, most: int) -> int | None:
    counts = {goals.step.shape[1] for goals in (old, new)}
    if len(counts) > 1 and min(counts) <= most:
        return 0  # the network runs on another number of rows, which rounds differently
    return _visible_from(old, new, most)


def _visible_from(old: Goals, new: Goals, most: int) -> int | None:
    """Return the first control step at which a row that differs is among the first `most` that have not expired."""
    columns = max(old.step.shape[1], new.step.shape[1])
    old, new = (_widened(goals, columns) for goals in (old, new))
    differs = np.zeros(old.step.shape, dtype=bool)
    for field in fields(Goals):
        a, b = getattr(old, field.name), getattr(new, field.name)
        differs |= (a != b).reshape(*differs.shape, -1).any(axis=-1)
    differs &= used(old) | used(new)
    robots = np.flatnonzero(differs.any(axis=1))
    if len(robots) == 0:
        return None
    row = differs[robots].argmax(axis=1)  # the rows before it are the same, and so are their expiries
    expiry = old.step[robots, np.maximum(row - most, 0)] + VISIBLE_STEPS_AFTER + 1
    return int(np.where(row < most, 0, expiry).min())


def _widened(goals: Goals, columns: int) -> Goals:
    """Add unused rows at the end."""
    wide = empty_goals(len(goals.step), columns, goals.posture.shape[-1])
    for field in fields(Goals):
        getattr(wide, field.name)[:, : goals.step.shape[1]] = getattr(goals, field.name)
    return wide


def same_goals(old: Goals, new: Goals) -> bool:
    return all(np.array_equal(getattr(old, field.name), getattr(new, field.name)) for field in fields(Goals))
