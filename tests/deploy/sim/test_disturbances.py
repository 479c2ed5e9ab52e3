"""Faults injected into states and poses."""

import numpy as np
import pytest

from keystride.deploy.pose.source import Pose
from keystride.deploy.sim.disturbances import Disturbances
from keystride.deploy.unitree.wire_format import LOW_STATE


def test_disturbances_pass():
    disturbances = Disturbances()
    disturbances.set("loss", 0.2, 1.0, now=10.0)
    assert disturbances.get("loss", 10.9) == 0.2
    assert disturbances.get("loss", 11.1) == 0.0
    with pytest.raises(ValueError, match="expected one of"):
        disturbances.set("rain", 1.0, 1.0, now=0.0)
    with pytest.raises(ValueError, match="unknown button"):
        disturbances.set("button", "Z", 1.0, now=0.0)


POSE = Pose(np.array([1.0, 2.0, 0.3]), np.array([1.0, 0.0, 0.0, 0.0]), time=0.0, sequence=1)
RANDOM = np.random.default_rng(0)


def test_a_drift_grows_from_when_it_began():
    disturbances = Disturbances()
    disturbances.set("pose_drift", 0.5, 10.0, now=2.0)
    disturbances.set("pose_spin", 90.0, 10.0, now=2.0)
    drifted = disturbances.disturb_pose(POSE, 4.0, RANDOM)
    assert drifted is not None
    np.testing.assert_allclose(drifted.position, [2.0, 2.0, 0.3])
    np.testing.assert_allclose(np.abs(drifted.orientation), [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    disturbances.set("pose_off", True, 1.0, now=4.0)
    assert disturbances.disturb_pose(POSE, 4.5, RANDOM) is None


def test_a_frozen_state_repeats_the_last_one():
    disturbances, first = Disturbances(), np.zeros((), LOW_STATE.dtype)
    first["tick"] = 5
    disturbances.disturb_state(first, 0.0)
    disturbances.set("states_frozen", True, 1.0, now=0.5)
    later = first.copy()
    later["tick"] = 6
    assert disturbances.disturb_state(later.copy(), 0.6)["tick"] == 5
    assert disturbances.disturb_state(later.copy(), 1.6)["tick"] == 6


def test_motors_report_what_is_asked_of_them():
    disturbances, record = Disturbances(), np.zeros((), LOW_STATE.dtype)
    disturbances.set("joint_offset", 0.25, 1.0, now=0.0)
    disturbances.set("motor_off", 4, 1.0, now=0.0)
    disturbances.set("motor_lost", 100.0, 1.0, now=0.0)
    record["motor_state"]["mode"] = 1
    for now in (0.0, 0.1, 0.2):
        found = disturbances.disturb_state(record.copy(), now)
    assert found["motor_state"]["q"][2] == pytest.approx(0.25)
    assert found["motor_state"]["mode"][:6].tolist() == [1, 1, 1, 1, 0, 1]
    assert found["motor_state"]["lost"][0] == 20
