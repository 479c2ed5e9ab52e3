import numpy as np
import pytest

from keystride.benchmarks.policy import _goals, measure_planner, measure_policy
from keystride.keyframes.goals import used
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy.load("go2-position", robot=GO2)


def test_percentiles_are_in_order(policy: Policy) -> None:
    figures = measure_policy(policy, GO2, steps=20)
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["worst_ms"]
    assert figures["budget_ms"] == pytest.approx(20.0)
    assert figures["p99_share"] == pytest.approx(figures["p99_ms"] / 20.0, abs=1e-4)
    assert figures["keyframes"] == policy.metadata.max_keyframes


def test_all_keyframes_are_used_with_what_the_policy_was_trained_on(policy: Policy) -> None:
    goals = _goals(policy)
    assert used(goals).all()
    np.testing.assert_array_equal(goals.presence[0, 0], [True, False, False, False, False])


def test_the_planner_is_timed_for_all_robots(policy: Policy) -> None:
    figures = measure_planner(policy, GO2, robots=2)
    assert figures["robots"] == 2
    assert 0 < figures["mean_ms"] <= figures["worst_ms"]
