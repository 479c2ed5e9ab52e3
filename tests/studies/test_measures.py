import json
from pathlib import Path

import numpy as np
import pytest

from keystride.studies.measures import (
    Curve,
    Errors,
    across_seeds,
    claim_verdict,
    compare,
    comparison_summary,
    pooled,
    read_run_curve,
)


def curve(*distance: float) -> Curve:
    steps = np.arange(len(distance), dtype=np.float64) * 1e6
    return Curve(steps, np.array(distance), np.exp(-(np.array(distance) ** 2)), np.ones(len(distance)))


def errors(*by_seed: list[float]) -> Errors:
    return Errors(tuple(np.array(values) for values in by_seed), falls=1, episodes=4)


def test_samples_to_the_threshold_are_interpolated() -> None:
    assert curve(0.9, 0.5, 0.1).samples_to_threshold == pytest.approx(1.5e6)
    assert curve(0.9, np.nan, 0.5, 0.4).samples_to_threshold is None


def test_a_runs_curve_counts_both_kinds_of_keyframes_alike(tmp_path: Path) -> None:
    names = ("position", "goal_reward_when_due", "survival")
    rows = [
        {
            "steps": 100 * i,
            "seconds": i,
            **{f"evaluation/dataset/{n}": 0.2 for n in names},
            **{f"evaluation/random/{n}": 0.6 + i for n in names},
        }
        for i in range(2)
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = read_run_curve(tmp_path)
    assert found.steps.tolist() == [0, 100]
    assert found.distance == pytest.approx([0.4, 0.9])
    assert found.as_dict()["reward"] == pytest.approx([0.4, 0.9])


def test_seeds_are_compared_where_all_of_them_were_evaluated() -> None:
    steps, low, mean, high = across_seeds([curve(1.0, 0.5), curve(0.8, 0.7, 0.1)], "distance")
    assert steps.tolist() == [0, 1e6]
    assert low == pytest.approx([0.8, 0.5])
    assert mean == pytest.approx([0.9, 0.6])
    assert high == pytest.approx([1.0, 0.7])


def test_errors_are_pooled_over_keyframes_and_seeds() -> None:
    both = pooled([errors([0.1, 0.3]), errors([0.5, 0.7])])
    assert (both.mean, both.seed_means) == (pytest.approx(0.4), pytest.approx([0.2, 0.6]))
    assert both.std == pytest.approx(np.sqrt((0.3**2 + 0.1**2) / 2))
    assert both.as_dict()["seed_std_m"] == pytest.approx(0.2)
    assert (both.falls, both.episodes) == (2, 8)


def test_one_is_better_only_where_every_seed_agrees() -> None:
    assert compare([0.1, 0.2], [0.3, 0.4]) == "better"
    assert compare([0.3, 0.4], [0.1, 0.2]) == "worse"
    assert compare([0.1, 0.35], [0.3, 0.4]) == "undecided"
    assert compare([5.0, 6.0], [None, None]) == "better"
    assert compare([None, None], [None, None]) == "undecided"
    assert compare([0.1], [0.2]) == "undecided"  # one seed says nothing


def test_a_claim_is_judged_by_where_it_holds() -> None:
    assert claim_verdict({"a": "better", "b": "better"}) == "supports the paper's claim"
    assert claim_verdict({"a": "worse", "b": "undecided"}) == "contradicts the paper's claim"
    assert claim_verdict({"a": "undecided"}) == "neither supports nor contradicts the paper's claim"
    assert claim_verdict({"a": "better", "b": "undecided"}) == "supports the paper's claim in part"
    assert comparison_summary({"a": "better", "b": "worse", "c": "undecided"}) == (
        "better with every seed at a; worse with every seed at b; undecided at c"
    )
