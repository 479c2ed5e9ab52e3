import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.everyday import EVERYDAY_SCRIPTS, drift, everyday
from keystride.evaluation.suites import Contender, Libraries, Setting
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


def test_drift_is_the_farthest_from_where_the_robot_stood() -> None:
    position = np.zeros((3, 2, 3))
    position[1, 0, :2] = [0.3, 0.4]
    position[:, 1, 2] = [0.3, 0.2, 0.1]  # sinking is not drifting
    orientation = geometry.from_yaw(np.radians([[179.0, 0.0], [-179.0, 0.0], [179.0, 10.0]]))
    metres, degrees = drift(position, orientation)
    np.testing.assert_allclose(metres, [0.5, 0.0])
    np.testing.assert_allclose(degrees, [2.0, 10.0])


def test_every_errand_has_errors_a_met_share_and_drift(standing: Policy, libraries: Libraries) -> None:
    outcome = everyday(Setting(GO2, Contender("standing", standing), libraries, episodes=2))
    found = {(row.scenario, row.metric): row for row in outcome.rows}
    for errand in EVERYDAY_SCRIPTS:
        assert {(errand.name, name) for name in ("met_share", "drift_m", "drift_deg")} <= found.keys()
    assert found["5 m in one keyframe, 10 s", "distance_m"].mean == pytest.approx(5.0, abs=0.1)
    assert found["stand 30 s", "met_share"].mean == 1.0
    assert len(outcome.rollouts["30 s after the last keyframe"].trace.position) == round(33 / 0.02) + 1
