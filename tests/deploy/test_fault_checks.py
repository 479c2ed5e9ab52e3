"""The transitions and the fault checks, each on readings written by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride.deploy.fault_checks import (
    CHECKS,
    DeployState,
    Event,
    Limits,
    MotorTrend,
    Reading,
    after,
    check_table,
    transition_table,
)
from keystride.robot.go2 import GO2

DOCS = Path(__file__).parents[2] / "docs" / "deploy.md"

# Written out by hand: state by row, event by column. A dot changes nothing.
TABLE = """
              STAND        UP     START    FINISH    STOP      DOWN     FAULT
IDLE          STANDING_UP  .      .        .         DAMPING   .        DAMPING
STANDING_UP   .            READY  .        .         STOPPING  .        DAMPING
READY         .            .      RUNNING  .         STOPPING  .        DAMPING
RUNNING       .            .      .        STOPPING  STOPPING  .        DAMPING
STOPPING      .            .      .        .         .         DAMPING  DAMPING
DAMPING       .            .      .        .         .         .        .
"""


def rows():
    header, *lines = (line.split() for line in TABLE.strip().splitlines())
    for name, *cells in lines:
        for event, cell in zip(header, cells, strict=True):
            yield DeployState[name], Event[event], DeployState[name if cell == "." else cell]


def test_the_table_is_complete():
    assert {(state, event) for state, event, _ in rows()} == {
        (state, event) for state in DeployState for event in Event
    }


@pytest.mark.parametrize(("state", "event", "expected"), list(rows()))
def test_every_move(state, event, expected):
    assert after(state, event) is expected


def test_a_fault_ends_in_damping_from_everywhere():
    assert {after(state, Event.FAULT) for state in DeployState} == {DeployState.DAMPING}


def test_running_is_reached_only_by_standing_up_first():
    ways = {
        state
        for state in DeployState
        for event in Event
        if after(state, event) is DeployState.RUNNING and state is not DeployState.RUNNING
    }
    assert ways == {DeployState.READY}


def test_the_documentation_has_the_tables():
    text = DOCS.read_text()
    assert transition_table() in text
    assert check_table() in text


GOOD = Reading(
    state_age=0.002,
    state_valid=True,
    imu_age=0.002,
    pose_age=0.01,
    pose_silence=0.01,
    policy_age=0.02,
    command_gap=0.002,
    joint_angles=GO2.stance.copy(),
    joint_velocities=np.zeros(12),
    mean_speed=np.zeros(12),
    torques=np.zeros(12),
    motors_on=True,
    lost_packets=0.0,
    down=np.array([0.0, 0.0, -1.0]),
    height=0.3,
    distance=0.5,
    battery=80.0,
    battery_status=8,
    motor_temperature=50.0,
)
LEANING = np.array([np.sin(1.06), 0.0, -np.cos(1.06)])  # 60.7 degrees
LIMITS = Limits(fence=3.0)

BAD = {
    "emergency stop": {"emergency": "key"},
    "low state lost": {"state_age": 0.11},
    "low states too rare": {"state_interval": 0.016},
    "low state invalid": {"state_valid": False},
    "IMU frozen": {"imu_age": 0.11},
    "robot's clock runs ahead": {"clock_conflict": 1.01},
    "IMU contradicts itself": {"imu_conflict": 1.01},
    "tilted too far": {"down": LEANING},
    "joint out of range": {"joint_angles": GO2.stance + 2.0 * np.eye(12)[2]},
    "joint too fast": {"joint_velocities": np.eye(12)[2] * 1.31 * GO2.speed_limit[2]},
    "joints do not follow": {"ramp_lag": 0.61},
    "motors do not obey": {"torque_error": 6.1},
    "motor frozen": {"motor_frozen": True},
    "joint angles contradict speeds": {"joint_conflict": 1.01},
    "torque too high": {"torques": 1.31 * GO2.torque_limit, "joint_velocities": np.ones(12)},
    "joint stalled": {"torques": -0.95 * GO2.torque_limit},
    "motor off": {"motors_on": False},
    "motor packet loss": {"lost_packets": 21.0},
    "command stream late": {"command_gap": 0.051},
    "another program sends commands": {"other_writer": True},
    "second robot on the network": {"other_robot": True},
    "motion service active again": {"motion_service": "normal"},
    "height out of range": {"height": 0.09},
    "outside the fence": {"distance": 3.1},
    "pose stream lost": {"pose_age": 0.21, "pose_silence": 0.21},
    "pose rejected": {"pose_age": 0.21},
    "heading of the poses is wrong": {"heading_wrong": True},
    "policy too late": {"policy_age": 0.11},
    "battery low": {"battery": 9.0},
    "battery charging or faulty": {"battery_status": 11},
    "motor too hot": {"motor_temperature": 86.0},
}


def failed(reading: Reading) -> set[str]:
    return {check.name for check in CHECKS if check.failed(reading, LIMITS, GO2)}


def test_a_good_reading_fails_nothing():
    assert failed(GOOD) == set()


def test_every_check_has_a_reading_that_fails_it():
    assert set(BAD) == {check.name for check in CHECKS}


@pytest.mark.parametrize("name", BAD)
def test_a_check_fails_on_its_own_fault_alone(name):
    assert failed(replace(GOOD, **BAD[name])) == {name}


@pytest.mark.parametrize(
    "field",
    [
        "state_age",
        "pose_age",
        "policy_age",
        "command_gap",
        "state_interval",
        "ramp_lag",
        "torque_error",
        "lost_packets",
        "joint_conflict",
        "imu_conflict",
        "height",
        "battery",
        "motor_temperature",
    ],
)
def test_a_figure_that_is_not_a_number_fails(field):
    assert failed(replace(GOOD, **{field: np.nan}))


def test_a_direction_that_is_not_a_number_fails():
    assert failed(replace(GOOD, down=np.full(3, np.nan))) == {"tilted too far"}


def test_checks_lead_only_downwards():
    assert {check.leads_to for check in CHECKS} <= {Event.STOP, Event.FAULT}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_what_leaves_no_controlled_way_down_is_a_fault(check):
    """Going down needs the joints and gravity; it can be done without a pose, without a policy, with little charge."""
    needs_nothing = {
        "outside the fence",
        "pose stream lost",
        "pose rejected",
        "heading of the poses is wrong",
        "policy too late",
        "battery low",
        "battery charging or faulty",
        "motor too hot",
    }
    assert (check.leads_to is Event.STOP) == (check.name in needs_nothing)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_every_check_is_on_while_running(check):
    assert DeployState.RUNNING in check.states


def test_a_gait_with_fast_moments_is_not_a_runaway():
    """Joints at 1.2 times their rated speed for a fifth of the time are a gait; for most of it, a runaway."""
    for share, limit in ((0.2, False), (0.9, True)):
        trend, highest = MotorTrend(GO2.speed_limit), 0.0
        for tick in range(500):
            speed = 1.2 * GO2.speed_limit if tick % 100 < 100 * share else np.zeros(12)
            trend.update(tick * 0.002, speed, np.zeros(12))
            highest = max(highest, float(trend.mean_speed.max()))
        assert (highest > LIMITS.joint_speed_mean) == limit


def test_lost_packets_are_counted_over_a_second_and_from_any_counter():
    trend = MotorTrend(GO2.speed_limit)
    trend.update(0.0, np.zeros(12), np.full(12, 4000.0))
    assert trend.lost_packets == 0.0
    lost = np.full(12, 4000.0)
    lost[3] += 30.0
    trend.update(0.002, np.zeros(12), lost)
    assert trend.lost_packets == pytest.approx(30.0)
    for tick in range(2, 1002):
        trend.update(tick * 0.002, np.zeros(12), lost)
    assert trend.lost_packets < 5.0
    trend.update(3.0, np.zeros(12), np.zeros(12))  # the board was restarted
    assert trend.lost_packets < 5.0
