"""Policies, goals and motion libraries for tests of the evaluation."""

from pathlib import Path

import numpy as np
import pytest

from keystride.evaluation.episodes import Controller
from keystride.evaluation.setting import Libraries
from keystride.keyframes.goals import Goals, empty_goals
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.library import Library
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height


@pytest.fixture(scope="session")
def standing(standing_path: Path) -> Policy:
    return Policy.load(standing_path, robot=GO2)


@pytest.fixture(scope="session")
def position_standing(position_standing_path: Path) -> Policy:
    return Policy.load(position_standing_path, robot=GO2)


class Collapsing:
    """Stands, and from a control step on folds its legs as far as they go."""

    def __init__(self, when: int) -> None:
        self.when = when

    def step(
        self, state: object, goals: Goals, now: np.ndarray, previous_action: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        folded = np.tile([0.0, 2.4, -2.7], 4)
        targets = np.where((now >= self.when)[:, None], folded, GO2.stance)
        return targets, self.resting_action(targets)

    def resting_action(self, joint_angles: np.ndarray) -> np.ndarray:
        return (joint_angles - GO2.stance) / GO2.action_scale


@pytest.fixture
def collapsing() -> type[Controller]:
    return Collapsing


@pytest.fixture
def standing_goals() -> Goals:
    """(2, 2) the stance's own pose, at 0.5 s and 1 s, for two robots."""
    goals = empty_goals(2, 2)
    goals.step[:] = [25, 50]
    goals.position[..., 2] = standing_height(GO2, GO2.stance)
    goals.posture[:] = GO2.stance
    goals.presence[:], goals.height[:] = True, True
    return goals


@pytest.fixture(scope="session")
def libraries() -> Libraries:
    """A walk and a sitting dog: enough to draw from."""
    clips = [as_clip(GO2, name, CATALOGUE[name](GO2)) for name in ("walk_slow", "trot_slow", "sit_quick")]
    return Libraries(Library(GO2, clips), held_out=Library(GO2, clips[:1]))
