"""Synthetic low states at 500 Hz, whose sensors agree until one of them lies."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.consistency import SensorConsistency
from keystride.deploy.unitree.codec import LowReading

PERIOD = 0.002  # s
SWING = 0.4  # rad of every joint
PACE = 12.0  # rad/s
TURN = 1.5  # rad/s about the vertical


def state(t: float, tick: int) -> LowReading:
    """Return the state of a robot that swings all joints and turns on the spot."""
    return LowReading(
        tick=tick,
        joint_angles=np.full(12, SWING * np.sin(PACE * t)),
        joint_velocities=np.full(12, SWING * PACE * np.cos(PACE * t)),
        torques=np.full(12, np.sin(t)),
        motors_on=True,
        lost=np.zeros(12),
        quaternion=geometry.from_yaw(np.asarray(TURN * t)),
        gyroscope=np.array([0.0, 0.0, TURN]),
        accelerometer=np.array([0.0, 0.0, 9.81]),
        battery=80.0,
        battery_status=8,
        motor_temperature=40.0,
        buttons=frozenset(),
    )


def watch(
    seconds: float,
    lie: Callable[[float, LowReading], LowReading] = lambda t, low: low,
    *,
    ticks: int = 2,  # by which the tick counts up with every state
    target: Callable[[float], np.ndarray] = lambda t: np.full(12, np.sin(10.0 * t)),
) -> tuple[float, float, bool]:
    """Return the largest conflicts of the joints and of the IMU, and whether a motor was frozen."""
    sensors, joint, imu, frozen = SensorConsistency(), 0.0, 0.0, False
    for number in range(round(seconds / PERIOD)):
        t = number * PERIOD
        sensors.update(lie(t, state(t, ticks * number)), target(t))
        joint, imu, frozen = max(joint, sensors.joint), max(imu, sensors.imu), frozen or sensors.frozen
    return joint, imu, frozen


@pytest.mark.parametrize("ticks", [1, 2])  # of states, of milliseconds
def test_honest_sensors_agree_whatever_the_tick_counts(ticks):
    joint, imu, frozen = watch(3.0, ticks=ticks)
    assert joint < 0.05
    assert imu < 0.05
    assert not frozen


def test_a_joint_that_jumps():
    def lie(t, low):
        return replace(low, joint_angles=low.joint_angles + 0.25 * np.eye(12)[4] * (t > 1.0))

    joint, imu, _ = watch(1.2, lie)
    assert joint == pytest.approx(0.25 / 0.2, abs=0.05)
    assert imu < 0.05


def test_speeds_that_are_always_zero():
    assert watch(1.0, lambda t, low: replace(low, joint_velocities=np.zeros(12)))[0] > 1.0


def test_an_orientation_that_jumps():
    def lie(t, low):
        pitch = geometry.from_rotation_vector(np.array([0.0, 0.3 * (t > 1.0), 0.0]))
        return replace(low, quaternion=geometry.multiply(low.quaternion, pitch))

    joint, imu, _ = watch(1.2, lie)
    assert imu > 1.0
    assert joint < 0.05


def test_a_gyroscope_with_an_offset():
    """An offset of 1.2 rad/s settles at 0.36 rad, one of 0.6 rad/s at 0.18: memory 0.3 s, limit 0.25 rad."""
    for offset, impossible in ((1.2, True), (0.6, False)):

        def lie(t, low, offset=offset):
            return replace(low, gyroscope=low.gyroscope + offset * np.eye(3)[0])

        assert (watch(2.0, lie)[1] > 1.0) == impossible


def test_a_flight_of_half_a_second_is_possible_and_one_of_a_second_is_not():
    for seconds, impossible in ((0.5, False), (1.0, True)):

        def fall(t, low, end=1.0 + seconds):
            return replace(low, accelerometer=np.zeros(3)) if 1.0 < t < end else low

        assert (watch(2.5, fall)[1] > 1.0) == impossible


def test_a_motor_that_repeats_itself_while_its_target_moves_is_frozen():
    stuck = state(1.0, 0)

    def lie(t, low):
        values = {name: getattr(low, name).copy() for name in ("joint_angles", "joint_velocities", "torques")}
        for name, value in values.items():
            value[7] = getattr(stuck, name)[7] if t > 1.0 else value[7]
        return replace(low, **values)

    assert watch(1.5, lie)[2]
    assert not watch(1.5, lie, target=lambda t: np.zeros(12))[2]  # a robot at rest may repeat itself


def test_a_gap_in_the_stream_is_not_a_contradiction():
    """States that were held back for 50 ms arrive at once: only the newest is seen."""
    sensors, worst = SensorConsistency(), 0.0
    for number in range(1000):
        if not 500 <= number < 525:
            sensors.update(state(number * PERIOD, 2 * number), None)
            worst = max(worst, sensors.joint, sensors.imu)
    assert worst < 0.1
