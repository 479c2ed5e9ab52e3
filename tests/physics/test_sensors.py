"""Laws of what robots measure of themselves."""

from dataclasses import fields, replace

import numpy as np
import pytest

from keystride import geometry
from keystride.physics.sensors import NO_ERRORS, ROBOT_ERRORS, SensorErrors, Sensors
from keystride.physics.simulator import CpuSimulator, State, standing_start
from keystride.robot.go2 import GO2

COUNT = 500


@pytest.fixture(scope="module")
def states() -> list[State]:
    """Robots that fall over from different joint angles: everything about them moves."""
    robots = CpuSimulator(GO2, COUNT, threads=1)
    joints = GO2.stance + 0.2 * np.random.default_rng(0).standard_normal((COUNT, 12))
    robots.reset(np.arange(COUNT), standing_start(COUNT, 0.4, GO2.stance))
    return [robots.advance(joints) for _ in range(12)]


def sensors(states: list[State], **errors: float) -> Sensors:
    made = Sensors(replace(NO_ERRORS, **errors), COUNT)
    made.reset(np.arange(COUNT), states[0])
    return made


def test_without_errors_the_truth_is_measured(states):
    made = sensors(states)
    for state in states:
        assert made.measure(state) is state
    assert np.array_equal(made.command(GO2.stance[None]), np.tile(GO2.stance, (COUNT, 1)))


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("joint_angle", "joint_angles"),
        ("joint_velocity", "joint_velocities"),
        ("angular_velocity", "angular_velocity"),
        ("velocity", "linear_velocity"),
    ],
)
def test_noise_has_the_deviation_it_is_given(states, name, field):
    measured = sensors(states, **{name: 0.3}).measure(states[1])
    noise = getattr(measured, field) - getattr(states[1], field)
    assert noise.std() == pytest.approx(0.3, rel=0.05)
    for other in {f.name for f in fields(State)} - {field}:
        assert np.allclose(getattr(measured, other), getattr(states[1], other), atol=1e-12)


def test_a_joint_zero_shifts_what_is_measured_and_where_motors_go(states):
    made = sensors(states, joint_zero=0.02)
    shift = made.measure(states[1]).joint_angles - states[1].joint_angles
    assert 0.019 < np.abs(shift).max() <= 0.02
    # The motor reads the shifted angle, so it stops the shift short of its target.
    assert np.allclose(made.command(np.zeros((COUNT, 12))), -shift)
    again = made.measure(states[2]).joint_angles - states[2].joint_angles
    assert np.allclose(again, shift)


def test_a_delayed_measurement_lies_between_the_last_two_states(states):
    made = sensors(states, delay=1.0)
    made.measure(states[1])
    measured = made.measure(states[2])
    share = (measured.position - states[2].position)[:, 2] / (states[1].position - states[2].position)[:, 2]
    assert share.min() >= 0.0
    assert share.max() <= 1.0
    assert share.std() == pytest.approx(np.sqrt(1 / 12), rel=0.1)
    assert np.allclose(np.linalg.norm(measured.orientation, axis=1), 1.0)


def test_a_lost_pose_stays_and_gravity_does_not(states):
    made = sensors(states, dropout_every=1.0, dropout_steps=4)
    first, second = made.measure(states[1]), made.measure(states[6])
    assert np.array_equal(first.position[:, :2], second.position[:, :2])
    assert np.allclose(geometry.yaw_of(first.orientation), geometry.yaw_of(second.orientation))
    gravity = geometry.projected_gravity(states[6].orientation)
    assert np.allclose(geometry.projected_gravity(second.orientation), gravity)
    assert np.array_equal(second.joint_angles, states[6].joint_angles)


def test_tilt_errors_turn_gravity_by_their_angle(states):
    measured = sensors(states, tilt=0.05).measure(states[1])
    angle = np.arccos(
        np.clip(
            np.sum(
                geometry.projected_gravity(measured.orientation) * geometry.projected_gravity(states[1].orientation), 1
            ),
            -1,
            1,
        )
    )
    assert np.sqrt(np.mean(angle**2)) == pytest.approx(0.05 * np.sqrt(2), rel=0.1)


def test_a_restored_sensor_goes_on_as_if_nothing_had_happened(states):
    made, other = Sensors(ROBOT_ERRORS, COUNT, seed=3), Sensors(ROBOT_ERRORS, COUNT, seed=99)
    made.reset(np.arange(COUNT), states[0])
    made.measure(states[1])
    other.restore(made.snapshot())
    expected, measured = made.measure(states[2]), other.measure(states[2])
    for field in fields(State):
        assert np.array_equal(getattr(expected, field.name), getattr(measured, field.name))


def test_errors_of_an_episode_are_drawn_at_its_reset(states):
    made = sensors(states, height_bias=0.02)
    before = made.measure(states[1]).position[:, 2] - states[1].position[:, 2]
    made.reset(np.arange(10), states[1])
    after = made.measure(states[2]).position[:, 2] - states[2].position[:, 2]
    assert not np.isclose(before[:10], after[:10]).any()
    assert np.allclose(before[10:], after[10:])


def test_the_defaults_are_no_errors():
    assert SensorErrors() == NO_ERRORS


def test_the_share_of_robots_without_errors_measures_exactly(states):
    made = Sensors(replace(ROBOT_ERRORS, share=0.25), COUNT)
    made.reset(np.arange(COUNT), states[0])
    measured, wrong = made.measure(states[1]), COUNT // 4
    for name in ("position", "orientation", "joint_angles", "joint_velocities", "linear_velocity"):
        assert np.array_equal(getattr(measured, name)[wrong:], getattr(states[1], name)[wrong:])
    assert (measured.joint_angles[:wrong] != states[1].joint_angles[:wrong]).all()
    assert np.array_equal(made.command(GO2.stance[None])[wrong:], np.tile(GO2.stance, (COUNT - wrong, 1)))
