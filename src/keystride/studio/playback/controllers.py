"""Who drives the robot, a policy or nobody, and from which control step on it can tell two scripts apart."""

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
    """Holds the stance, whatever the keyframes ask for: to edit by, where no policy is at hand."""

    def __init__(self, robot: Robot) -> None:
        self._stance = robot.stance

    def step(self, state: object, goals: Goals, now: object, previous_action: Floats) -> tuple[Floats, Floats]:
        return np.tile(self._stance, (len(previous_action), 1)), np.zeros_like(previous_action)

    def resting_action(self, joint_angles: Floats) -> Floats:
        return np.zeros_like(joint_angles)


def choices() -> tuple[str, ...]:
    return (*known(), STAND_STILL)


def check_choice(name: str, launched: str) -> None:
    """Let a page choose among names: what ships, and what the command was started with. PolicyError for anything else.

    A path from a page would let it have any file of the server opened.
    """
    allowed = dict.fromkeys((launched, *choices()))
    if name not in allowed:
        raise PolicyError(f"no policy {name[:80]!r} to choose; allowed: {', '.join(allowed)}")


def first_choice() -> str:
    """The default policy, if it is there."""
    names = known()
    return DEFAULT_POLICY if DEFAULT_POLICY in names else (*names, STAND_STILL)[0]


def load_controller(name_or_path: str, robot: Robot) -> Controller:
    """PolicyError says why it cannot be used. A run that is still training needs torch, and some seconds."""
    return StandStill(robot) if name_or_path == STAND_STILL else open_policy(name_or_path, robot=robot)


def follows(controller: Controller) -> tuple[str, ...]:
    """The components of keyframes that it was trained to meet."""
    if isinstance(controller, Policy):
        return tuple(part for part in controller.metadata.goal_components if part in COMPONENTS)
    return ()


def describe_controller(controller: Controller) -> str:
    """A sentence for the person who chose it."""
    parts = follows(controller)
    if not parts:
        return "Holds its stance; no keyframe moves it."
    rest = "" if len(parts) == len(COMPONENTS) else "; other components of a keyframe are not followed"
    return f"Trained for {', '.join(parts)}{rest}."


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
