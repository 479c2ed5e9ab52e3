"""Figures of the report: what is drawn is what was measured."""

import numpy as np
import pytest

from keystride.evaluation.rendering.figures import compared_curves, learning_curve, robustness_figure
from keystride.evaluation.results import Row

CURVE = {
    "training": {"steps": [1_000_000, 2_000_000], "reward/style": [0.1, 0.2], "survival": [0.9, None]},
    "evaluation": {"steps": [2_000_000], "dataset/position": [0.3], "random/position": [0.5]},
}


def row(scenario: str, metric: str, mean: float, falls: int) -> Row:
    return Row("robustness", scenario, "1", metric, mean, 0.1, 8, falls)


def test_bars_are_the_mean_distance_and_the_share_of_falls() -> None:
    rows = [
        row("friction", "distance_m", 0.25, 2),
        row("friction", "yaw_deg", 9.0, 2),
        row("payload", "distance_m", 0.5, 0),
    ]
    error, falls = robustness_figure(rows).axes
    assert [bar.get_width() for bar in error.patches] == [0.25, 0.5]
    assert [bar.get_width() for bar in falls.patches] == [25.0, 0.0]
    assert [label.get_text() for label in error.get_yticklabels()] == ["friction", "payload"]


def test_a_learning_curve_is_drawn_over_million_steps_with_gaps() -> None:
    rewards, errors, life = learning_curve(CURVE).axes
    assert [line.get_label() for line in rewards.lines] == ["style"]
    np.testing.assert_allclose(rewards.lines[0].get_xydata(), [[1.0, 0.1], [2.0, 0.2]])
    assert {line.get_label(): line.get_ydata().tolist() for line in errors.lines} == {
        "dataset keyframes": [0.3],
        "random keyframes": [0.5],
    }
    assert life.lines[0].get_ydata().tolist() == pytest.approx([0.9, np.nan], nan_ok=True)


def test_runs_are_compared_with_one_line_each_and_missing_columns_are_left_out() -> None:
    other = {"training": {"steps": [1]}, "evaluation": {"steps": [4_000_000], "dataset/position": [0.2]}}
    dataset, random, style = compared_curves({"one": CURVE, "two": other}).axes
    assert [line.get_label() for line in dataset.lines] == ["one", "two"]
    assert [line.get_label() for line in random.lines] == ["one"]
    assert [line.get_label() for line in style.lines] == ["one"]
    assert dataset.lines[1].get_xdata().tolist() == [4.0]
