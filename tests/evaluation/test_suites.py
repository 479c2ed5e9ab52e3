from dataclasses import replace

import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.episodes import World
from keystride.evaluation.scenarios import EVERYDAY_SCRIPTS
from keystride.evaluation.setting import Contender, Libraries, Setting, draw_episodes
from keystride.evaluation.suites import FACTORS, anticipation, drift, everyday, generalization, matching, robustness
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


def setting(policy: Policy, libraries: Libraries, **kwargs: object) -> Setting:
    return Setting(GO2, Contender("standing", policy), libraries, **{"episodes": 6, **kwargs})  # type: ignore[arg-type]


def test_matching_has_the_papers_columns(standing: Policy, libraries: Libraries) -> None:
    rows = matching(setting(standing, libraries)).rows
    assert all(row.paper is None for row in rows)  # its poses are unpublished: ours are alike, not the same
    paper = {(row.scenario, row.goal, row.metric): row.analogous for row in rows if row.analogous is not None}
    assert len(paper) == 4 * 5
    assert paper["walk", "2", "distance_m"] == 0.020
    assert paper["jump", "1", "yaw_deg"] == 7.110
    assert paper["paw up", "1", "posture_deg"] == 4.698


def test_generalization_measures_every_source_there_is(standing: Policy, libraries: Libraries) -> None:
    outcome = generalization(setting(standing, replace(libraries, captured=True)))
    assert list(outcome.rollouts) == ["dataset", "random", "held out"]
    cells = {(row.scenario, row.metric): row.paper for row in outcome.rows}
    assert cells["dataset", "distance_m"] == 0.060
    assert cells["random", "posture_deg"] == 4.640
    assert cells["held out", "distance_m"] is None


def test_a_policy_for_positions_is_measured_by_distance_alone(position_standing: Policy, libraries: Libraries) -> None:
    rows = generalization(setting(position_standing, replace(libraries, captured=True))).rows
    assert {row.metric for row in rows} == {"distance_m", "height_m", "met_share"}
    assert all(row.paper is None for row in rows)  # the paper's cells are of full poses


def test_keyframes_of_authored_clips_are_not_compared_with_those_of_the_papers_motion_capture(
    standing: Policy, libraries: Libraries
) -> None:
    rows = generalization(setting(standing, replace(libraries, captured=False))).rows
    assert all(row.paper is None for row in rows)


def test_a_robot_that_stands_has_not_jumped(standing: Policy, libraries: Libraries) -> None:
    rows = {
        (row.goal, row.metric): row for row in matching(setting(standing, libraries)).rows if row.scenario == "jump"
    }
    assert rows["all", "airborne_s"].mean == 0.0
    assert rows["all", "flight_share"].mean == 0.0
    assert rows["1", "met_share"].mean == 0.0


def test_anticipation_of_one_who_stands_is_the_way_to_each_goal(
    standing: Policy, position_standing: Policy, libraries: Libraries
) -> None:
    """From the origin: 1 m to the first goals; 2 m and twice the square root of 1.5^2 + 1 to the second."""
    rival = Contender("blind", position_standing)
    rows = anticipation(setting(standing, libraries, rival=rival)).rows
    means = {(row.scenario, row.goal): row.mean for row in rows if row.metric == "distance_m"}
    far = float(np.hypot(1.5, 1.0))
    for suffix in ("", " (next goal only)"):
        for scenario, second in (("straight", 2.0), ("turn", far), ("slow turn", far)):
            assert means[scenario + suffix, "1"] == pytest.approx(1.0, abs=0.05)
            assert means[scenario + suffix, "2"] == pytest.approx(second, abs=0.05)
    paper = {(row.scenario, row.goal): row.paper for row in rows if row.metric == "distance_m"}
    assert paper["turn", "2"] == 0.3340
    assert paper["turn (next goal only)", "2"] == 0.7271
    assert {row.policy for row in rows if row.scenario.endswith("only)")} == {"blind"}


def test_the_papers_cell_is_that_of_what_a_policy_sees(position_standing: Policy, libraries: Libraries) -> None:
    rows = anticipation(setting(position_standing, libraries)).rows  # it sees the next goal only, and has no rival
    paper = {(row.scenario, row.goal): row.paper for row in rows if row.metric == "distance_m"}
    assert (paper["straight", "2"], paper["turn", "2"]) == (0.1332, 0.7271)


def test_figures_are_reprinted_exactly(standing: Policy, libraries: Libraries) -> None:
    assert matching(setting(standing, libraries)).rows == matching(setting(standing, libraries)).rows
    again = generalization(setting(standing, libraries, seed=5)).rows
    assert generalization(setting(standing, libraries, seed=5)).rows == again
    assert generalization(setting(standing, libraries, seed=6)).rows != again


def test_episodes_are_independent(standing: Policy, libraries: Libraries) -> None:
    rollout = matching(setting(standing, libraries)).rollouts["walk"]
    assert len(np.unique(rollout.errors[:, 0, 0])) == 6


def test_varying_nothing_is_the_plain_simulation_bit_for_bit(standing: Policy, libraries: Libraries) -> None:
    setting = Setting(GO2, Contender("standing", standing), libraries, episodes=4)
    drawn = draw_episodes(setting, "robustness", libraries.dataset, random_share=0.5)
    plain = setting.run("plain", setting.contender, drawn.start, drawn.goals)
    nothing = setting.run("n", setting.contender, drawn.start, drawn.goals, World(randomization=FACTORS["nothing"]))
    assert np.array_equal(plain.trace.position, nothing.trace.position)


def test_every_factor_changes_the_same_episodes(standing: Policy, libraries: Libraries) -> None:
    outcome = robustness(Setting(GO2, Contender("standing", standing), libraries, episodes=4))
    assert list(outcome.rollouts) == ["nothing", "friction", "gains", "lag", "pushes", "everything"]
    base = outcome.rollouts["nothing"]
    for name, rollout in outcome.rollouts.items():
        assert np.array_equal(rollout.goals.position, base.goals.position)
        assert np.array_equal(rollout.trace.position[0], base.trace.position[0])
        assert (name == "nothing") == np.array_equal(rollout.trace.position, base.trace.position)


def test_drift_is_the_farthest_from_where_the_robot_stood() -> None:
    position = np.zeros((3, 2, 3))
    position[1, 0, :2] = [0.3, 0.4]
    position[:, 1, 2] = [0.3, 0.2, 0.1]  # sinking is not drifting
    orientation = geometry.from_yaw(np.radians([[179.0, 0.0], [-179.0, 0.0], [179.0, 10.0]]))
    metres, degrees = drift(position, orientation)
    np.testing.assert_allclose(metres, [0.5, 0.0])
    np.testing.assert_allclose(degrees, [2.0, 10.0])


def test_every_everyday_script_has_errors_a_met_share_and_drift(standing: Policy, libraries: Libraries) -> None:
    outcome = everyday(Setting(GO2, Contender("standing", standing), libraries, episodes=2))
    found = {(row.scenario, row.metric): row for row in outcome.rows}
    for script in EVERYDAY_SCRIPTS:
        assert {(script.name, name) for name in ("met_share", "drift_m", "drift_deg")} <= found.keys()
    assert found["5 m in one keyframe, 10 s", "distance_m"].mean == pytest.approx(5.0, abs=0.1)
    assert found["stand 30 s", "met_share"].mean == 1.0
    assert len(outcome.rollouts["30 s after the last keyframe"].trace.position) == round(33 / 0.02) + 1
