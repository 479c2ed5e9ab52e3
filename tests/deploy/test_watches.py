from dataclasses import replace

import numpy as np
import pytest

from keystride.deploy.states import Event, State
from keystride.deploy.watches import WATCHES, Limits, Reading
from keystride.robot.go2 import GO2

GOOD = Reading(
    state_age=0.002,
    pose_age=0.01,
    policy_age=0.02,
    joint_angles=GO2.stance.copy(),
    joint_velocities=np.zeros(12),
    down=np.array([0.0, 0.0, -1.0]),
    height=0.3,
    battery=80.0,
    motor_temperature=50.0,
)
LEANING = np.array([np.sin(1.06), 0.0, -np.cos(1.06)])  # 60.7 degrees
NAN_ANGLE = np.full(12, np.nan)

BAD = {
    "emergency stop": {"emergency": "key"},
    "low state lost": {"state_age": 0.11},
    "low state not finite": {"joint_angles": NAN_ANGLE},
    "tilted too far": {"down": LEANING},
    "joint too fast": {"joint_velocities": np.eye(12)[2] * 1.31 * GO2.speed_limit[2]},
    "height out of range": {"height": 0.09},
    "pose stream lost": {"pose_age": 0.21},
    "policy too late": {"policy_age": 0.11},
    "battery low": {"battery": 9.0},
    "motor too hot": {"motor_temperature": 86.0},
}


def tripped(reading: Reading) -> set[str]:
    return {watch.name for watch in WATCHES if watch.tripped(reading, Limits(), GO2)}


def test_a_good_reading_trips_nothing():
    assert tripped(GOOD) == set()


def test_every_watch_has_a_reading_that_trips_it():
    assert set(BAD) == {watch.name for watch in WATCHES}


@pytest.mark.parametrize("name", BAD)
def test_a_watch_trips_on_its_own_danger_alone(name):
    assert tripped(replace(GOOD, **BAD[name])) == {name}


@pytest.mark.parametrize("field", ["state_age", "pose_age", "policy_age", "height", "battery", "motor_temperature"])
def test_a_figure_that_is_none_trips(field):
    assert tripped(replace(GOOD, **{field: np.nan}))


def test_a_gravity_that_is_none_trips():
    assert {"tilted too far", "low state not finite"} <= tripped(replace(GOOD, down=np.full(3, np.nan)))


def test_watches_lead_only_downwards():
    assert {watch.leads_to for watch in WATCHES} <= {Event.STOP, Event.FAULT}


@pytest.mark.parametrize("watch", WATCHES, ids=lambda watch: watch.name)
def test_what_leaves_no_controlled_way_down_is_a_fault(watch):
    """Going down needs the joints and gravity; it can be done without a pose, without a policy, with little charge."""
    needs_nothing = {"pose stream lost", "policy too late", "battery low", "motor too hot"}
    assert (watch.leads_to is Event.STOP) == (watch.name in needs_nothing)


@pytest.mark.parametrize("watch", WATCHES, ids=lambda watch: watch.name)
def test_every_watch_is_on_while_running(watch):
    assert State.RUNNING in watch.states
