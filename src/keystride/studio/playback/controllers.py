"""The controllers of the robot, a policy or none, and the first control step at which one sees two scripts differ."""

from dataclasses import dataclass, fields

import numpy as np

from keystride.evaluation.episodes import Controller
from keystride.keyframes.goals import COMPONENTS, VISIBLE_STEPS_AFTER, Goals, used
from keystride.keyframes.resolve import window
from keystride.physics.simulator import State
from keystride.policy import DEFAULT_POLICY
from keystride.policy.bundle import PolicyError, known
from keystride.policy.guide import Guide, Route
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
    route: Route | None = None  # with which a guide continues from there


def first_difference(controller: Controller, start: State, old: Goals, new: Goals) -> Difference:
    """Compare what a controller sees of two scripts; the goals are the same for all robots. A guide must be a new one.

    A policy sees the next few keyframes that have not expired. Waypoints depend on the whole script, so if a guide adds
    any, the scripts differ from the start. Any other controller is assumed to see all keyframes.
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
    last = int(min(route.last.min() for route in routes))  # after this step a guide holds the robot still
    return Difference(last if step is None else min(step, last), routes[1])


def _seen_from(old: Goals, new: Goals, most: int) -> int | None:
    counts = {goals.step.shape[1] for goals in (old, new)}
    if len(counts) > 1 and min(counts) <= most:
        return 0  # the network runs on another number of rows, which rounds differently
    # The visible keyframes change only when one expires.
    expiry = [goals.step[0][used(goals)[0]] + VISIBLE_STEPS_AFTER + 1 for goals in (old, new)]
    steps = np.unique(np.concatenate([[0], *expiry]))
    seen = [window(goals[np.zeros(len(steps), dtype=np.int64)], steps, most) for goals in (old, new)]
    differs = np.zeros(len(steps), dtype=bool)
    for field in fields(Goals):
        a, b = (getattr(goals, field.name) for goals in seen)
        differs |= (a != b).reshape(len(steps), -1).any(axis=1)
    return int(steps[np.argmax(differs)]) if differs.any() else None


def _planned(guide: Guide, start: State, goals: Goals) -> Route:
    """Return the route that a guide takes from the start."""
    guide.seen(start, goals, np.zeros(len(goals.step), dtype=np.int64))
    assert guide.route is not None
    return guide.route


def _same(old: Goals, new: Goals) -> bool:
    return all(np.array_equal(getattr(old, field.name), getattr(new, field.name)) for field in fields(Goals))
