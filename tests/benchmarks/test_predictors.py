"""Forecasts against what happens."""

from typing import Any

import numpy as np
import pytest

from keystride.benchmarks.predictors import brier, critic_values, goals_of, predict, random_scripts, ranking
from keystride.keyframes.goals import Goals
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import StandStill


class Nearness:
    """A critic of one group, worth more the nearer the keyframe; and one more that says when it was asked."""

    def values(self, state: Any, goals: Goals, now: Any, previous_action: Floats) -> Floats:
        away = np.linalg.norm(goals.position[:, 0, :2] - state.position[:, :2], axis=-1)
        return np.stack([now.astype(float), -away], axis=1)


def test_ranking_counts_pairs_in_order():
    met = np.array([True, True, False, False])
    assert ranking(np.array([0.9, 0.4, 0.4, 0.1]), met) == (1 + 1 + 0.5 + 1) / 4
    assert ranking(np.array([1.0, 1.0, 0.0, 0.0]), met) == 1.0
    assert np.isnan(ranking(np.ones(4), np.ones(4, dtype=bool)))


def test_brier_is_the_mean_square():
    assert brier(np.array([1.0, 0.5]), np.array([True, False])) == pytest.approx(0.125)


def test_the_critic_is_asked_when_the_keyframe_before_is_due():
    goals = goals_of(random_scripts(3, np.random.default_rng(1)), GO2)
    when = critic_values(GO2, StandStill(GO2), Nearness(), 0, goals)
    np.testing.assert_array_equal(when[:, 0], 0)
    np.testing.assert_array_equal(when[:, 1:], goals.step[:, :-1])


def test_who_stands_still_meets_what_is_near_and_both_forecasts_know():
    goals = goals_of(random_scripts(24, np.random.default_rng(2)), GO2)
    found = predict(GO2, StandStill(GO2), Nearness(), 1, goals, rollouts=4)
    away = np.linalg.norm(goals.position[..., :2], axis=-1)
    assert found.met[away < 0.13].all()  # the threshold is 0.15, and standing is not quite still
    assert not found.met[away > 0.17].any()
    assert found.met.any()
    assert ranking(found.counted, found.met) > 0.95
    assert ranking(found.valued, found.met) > 0.95
    assert found.counted.shape == found.met.shape == (24, 3)
