"""Who drives the robot: a policy that ships, one that was exported, or nobody."""

import numpy as np

from keystride.evaluation.episodes import Controller
from keystride.keyframes.goals import COMPONENTS, Goals
from keystride.policy import DEFAULT_POLICY
from keystride.policy.bundle import PolicyError, known
from keystride.policy.loading import open_policy
from keystride.policy.runtime import Policy
from keystride.robot.description import Floats, Robot

STAND_STILL = "stand still (no policy)"

__all__ = [
    "STAND_STILL",
    "Controller",
    "PolicyError",
    "StandStill",
    "check_choice",
    "choices",
    "describe_controller",
    "first_choice",
    "follows",
    "load_controller",
]


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
