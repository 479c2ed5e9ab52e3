from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from keystride.deploy.fault_checks import CHECKS, DeployState, Event, Limits
from keystride.deploy.safety import (
    BRAKE,
    FOLDED_LEG,
    Gains,
    MotorCommand,
    Ramp,
    Safety,
    hold_back,
    smooth,
    through,
    uniform,
)
from keystride.robot.go2 import GO2

from .test_fault_checks import BAD, GOOD, LIMITS

DT = 0.002
GAINS = uniform(40.0, 1.0)


def in_state(state: DeployState) -> Safety:
    """Brought there by events, with a command sent on the way as in life."""
    safety = Safety(GO2, GAINS, LIMITS)
    ways = {
        DeployState.STANDING_UP: [Event.STAND],
        DeployState.READY: [Event.STAND, Event.UP],
        DeployState.RUNNING: [Event.STAND, Event.UP, Event.START],
        DeployState.STOPPING: [Event.STAND, Event.UP, Event.STOP],
        DeployState.DAMPING: [Event.FAULT],
    }
    safety.command(0.0, GOOD, None)
    for event in ways.get(state, []):
        safety.process(event, 0.0, GOOD.joint_angles)
        safety.command(0.0, GOOD, None)
    assert safety.state is state
    return safety


def angles(low: float, high: float):
    return arrays(np.float64, 12, elements=st.floats(low, high))


def held(target, last, joints, speeds, gains: Gains = GAINS):
    reading = replace(GOOD, joint_angles=joints, joint_velocities=speeds)
    return hold_back(target, last, dt=DT, gains=gains, reading=reading, limits=Limits(), robot=GO2)


@given(angles(-50, 50), angles(-2, 2), angles(-1e6, 1e6), angles(-30, 30))
def test_targets_stay_in_range_whatever_is_measured(target, last, joints, speeds):
    sent = held(target, last, joints, speeds)
    assert (sent >= GO2.lower + 0.02 - 1e-12).all()
    assert (sent <= GO2.upper - 0.02 + 1e-12).all()


@given(angles(-50, 50), angles(-2, 2), angles(-3, 3), angles(-30, 30))
def test_no_target_asks_for_more_torque_than_the_motors_have(target, last, joints, speeds):
    """Unless it is at the end of the joint's range, beyond which no target goes."""
    sent = held(target, last, joints, speeds)
    torque = 40.0 * (sent - joints) - 1.0 * speeds
    at_the_end = np.isclose(sent, GO2.lower + 0.02) | np.isclose(sent, GO2.upper - 0.02)
    assert (at_the_end | (np.abs(torque) <= GO2.torque_limit + 1e-9)).all()


@given(angles(-50, 50))
def test_targets_stay_in_range_and_within_the_rate(target):
    sent = held(target, GO2.stance, GO2.stance, np.zeros(12))
    assert (sent >= GO2.lower + 0.02 - 1e-12).all()
    assert (sent <= GO2.upper - 0.02 + 1e-12).all()
    assert (np.abs(sent - GO2.stance) <= 60.0 * DT + 1e-12).all()


def test_a_harmless_target_is_sent_as_it_is():
    target = GO2.stance + 0.05
    assert (held(target, GO2.stance, GO2.stance, np.zeros(12)) == target).all()


def test_smooth_starts_and_ends_at_rest():
    step = 1e-4
    assert smooth(0.0) == 0.0
    assert smooth(0.5) == 0.5
    assert smooth(1.0) == 1.0
    assert smooth(step) < 1e-10
    assert 1.0 - smooth(1.0 - step) < 1e-10
    assert (smooth(-3.0), smooth(4.0)) == (0.0, 1.0)


def test_a_ramp_passes_through_its_stops():
    a, b, c = np.zeros(12), np.ones(12), np.full(12, -1.0)
    ramp = Ramp(a, ((b, 2.0), (c, 1.0)))
    assert ramp.seconds == 3.0
    for t, posture in ((0.0, a), (1.0, (a + b) / 2), (2.0, b), (2.5, (b + c) / 2), (3.0, c), (9.0, c)):
        assert (ramp.at(t) == posture).all()


def test_ramps_take_the_time_of_the_joint_with_furthest_to_go():
    far = np.zeros(12)
    far[5] = 1.6
    assert through(np.zeros(12), far).seconds == 2.0  # 0.8 rad/s
    assert through(far, far).seconds == 0.3


@pytest.mark.parametrize("state", DeployState)
@pytest.mark.parametrize("name", BAD)
def test_every_danger_in_every_state(state, name):
    """A check acts in its own states, as the table of transitions says, and not before its patience is over."""
    check = next(check for check in CHECKS if check.name == name)
    safety, bad = in_state(state), replace(GOOD, **BAD[name])
    if check.patience:
        safety.command(0.001, bad, None)
        assert safety.state is state
    command = safety.command(0.001 + check.patience, bad, None)
    acts = state in check.states and state is not DeployState.DAMPING
    if not acts:
        assert safety.state is state
    elif check.leads_to is Event.FAULT or state is DeployState.IDLE:
        assert safety.state is DeployState.DAMPING
        assert_brakes(command)
    else:
        assert safety.state is DeployState.STOPPING
    assert safety.reason == (name if acts else "")


def assert_brakes(command: MotorCommand) -> None:
    assert not command.stiffness.any()
    assert (command.damping == BRAKE).all()


@pytest.mark.parametrize("name", BAD)
def test_every_fault_ends_in_damping(name):
    """With the danger still there, and whatever the policy goes on asking for."""
    safety, bad = in_state(DeployState.RUNNING), replace(GOOD, **BAD[name])
    commands = [safety.command(tick * DT, bad, GO2.stance + 0.3) for tick in range(2500)]  # 5 s
    assert safety.state is DeployState.DAMPING
    assert safety.reason == name
    assert_brakes(commands[-1])


def test_idle_brakes():
    assert_brakes(in_state(DeployState.IDLE).command(0.01, GOOD, np.ones(12)))


def test_the_lag_behind_a_ramp_is_that_of_the_farthest_joint():
    safety = in_state(DeployState.READY)
    assert safety.ramp_lag(1.0, GO2.stance) == 0.0
    assert safety.ramp_lag(1.0, GO2.stance + 0.7 * np.eye(12)[5]) == pytest.approx(0.7)
    safety.process(Event.START, 1.0, GO2.stance)
    assert safety.ramp_lag(2.0, GO2.stance + 0.7) == 0.0  # the policy's targets are not positions to reach


def test_the_policy_is_heard_only_while_running():
    wish = GO2.stance + 0.1
    for state in DeployState:
        safety = in_state(state)
        commands = [safety.command(tick * DT, GOOD, wish) for tick in range(1, 10)]
        assert (commands[-1].target == wish).all() == (state is DeployState.RUNNING)


def test_a_broken_target_is_not_sent():
    safety = in_state(DeployState.RUNNING)
    before = safety.command(DT, GOOD, GO2.stance + 0.05).target
    after = safety.command(2 * DT, GOOD, np.full(12, np.nan)).target
    assert (after == before).all()


def test_standing_up_begins_where_the_joints_are_and_ends_ready():
    joints = GO2.stance - 0.4
    reading = replace(GOOD, joint_angles=joints)
    safety = Safety(GO2, GAINS)
    safety.command(0.0, reading, None)
    safety.process(Event.STAND, 0.0, joints)
    assert (safety.command(0.0, reading, None).target == joints).all()
    last, now = joints, 0.0
    while safety.state is DeployState.STANDING_UP:
        now += DT
        target = safety.command(now, reading, None).target
        assert np.abs(target - last).max() < 0.01  # nowhere faster than 5 rad/s
        last = target
    assert safety.state is DeployState.READY
    assert 1.5 < now < 5.0


def test_going_down_begins_with_the_last_target():
    safety = in_state(DeployState.RUNNING)
    sent = [safety.command(tick * DT, GOOD, GO2.stance + 0.2).target for tick in range(1, 30)][-1]
    safety.process(Event.STOP, 0.06, GOOD.joint_angles)
    assert np.allclose(safety.command(0.06, GOOD, None).target, sent)
    now, lying = 0.06, sent
    while safety.state is DeployState.STOPPING:
        now += DT
        command = safety.command(now, GOOD, None)
        lying = command.target if command.stiffness.any() else lying
    assert safety.state is DeployState.DAMPING
    assert safety.reason == ""
    reach = GO2.torque_limit / 60.0  # the reading's joints do not move, so the torque limit holds the target back
    assert np.allclose(lying, np.clip(np.tile(FOLDED_LEG, 4), GO2.stance - reach, GO2.stance + reach), atol=1e-3)


def test_a_robot_that_is_stopped_while_standing_up_goes_straight_down():
    folded = np.tile(FOLDED_LEG, 4)
    safety, reading = Safety(GO2, GAINS, LIMITS), replace(GOOD, joint_angles=folded)
    safety.command(0.0, reading, None)
    safety.process(Event.STAND, 0.0, folded)
    half_up = next(c.target for t in np.arange(0.0, 5.0, DT) if t > 0.9 and (c := safety.command(t, reading, None)))
    assert np.abs(half_up - folded).max() > 0.05
    safety.process(Event.STOP, 0.902, folded)
    sent = [safety.command(t, reading, None) for t in np.arange(0.902, 4.0, DT)]
    away = [np.abs(command.target - folded).max() for command in sent if command.stiffness.any()]
    assert max(away) <= np.abs(half_up - folded).max() + 1e-9
    assert safety.state is DeployState.DAMPING


def test_only_the_first_reason_is_kept():
    safety = in_state(DeployState.RUNNING)
    safety.command(DT, replace(GOOD, pose_age=1.0, pose_silence=1.0), None)
    safety.command(2 * DT, replace(GOOD, emergency="key"), None)
    assert (safety.state, safety.reason) == (DeployState.DAMPING, "pose stream lost")


def test_a_stall_of_the_stream_does_not_permit_a_leap_of_the_target():
    """After 90 ms without a command the next one may change the target by two periods' worth, not by 5.4 rad."""
    safety = Safety(GO2, GAINS, replace(LIMITS, command_gap=1.0))
    for event in (Event.STAND, Event.UP, Event.START):
        safety.process(event, 0.0, GOOD.joint_angles)
    last = [safety.command(tick * DT, GOOD, GO2.stance) for tick in range(200)][-1].target
    jump = safety.command(0.4 + 0.09, GOOD, GO2.stance + 0.5).target - last
    assert np.abs(jump).max() <= 60.0 * 2 * DT + 1e-9
    assert np.abs(jump).max() > 0.0


def test_gains_never_jump():
    """From limp to standing, to the policy's and back: at most 200 N m/rad and 15 N m s/rad per second."""
    safety, now = Safety(GO2, GAINS, LIMITS), 0.0
    before = safety.command(now, GOOD, None)
    seen = set()
    for event in (Event.STAND, Event.UP, Event.START, Event.STOP):
        safety.process(event, now, GOOD.joint_angles)
        for _ in range(150):
            now += DT
            command = safety.command(now, GOOD, GO2.stance)
            assert np.abs(command.stiffness - before.stiffness).max() <= 200.0 * 2 * DT + 1e-9
            assert np.abs(command.damping - before.damping).max() <= 15.0 * 2 * DT + 1e-9
            before = command
            seen.add((float(command.stiffness[0]), float(command.damping[0])))
    assert {(60.0, 3.0), (40.0, 1.0)} <= seen


def test_played_means_finished_and_nothing_wrong_afterwards():
    safety = in_state(DeployState.RUNNING)
    assert not safety.played
    safety.process(Event.FINISH, 0.0, GOOD.joint_angles)
    assert safety.played
    safety.command(DT, replace(GOOD, emergency="key"), None)
    assert not safety.played
    stopped = in_state(DeployState.RUNNING)
    stopped.process(Event.STOP, 0.0, GOOD.joint_angles, "stopped by the operator")
    assert not stopped.played
