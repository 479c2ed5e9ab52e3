"""Synthetic low states at 500 Hz, whose sensors agree until one of them lies, and poses that contradict the sensors."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.consistency import STATE_PERIOD, PoseMonitor, SensorConsistency, StateFreshness
from keystride.deploy.fault_checks import Limits
from keystride.deploy.pose.estimator import LegOdometry
from keystride.deploy.pose.source import Pose
from keystride.deploy.unitree.codec import LowReading
from keystride.robot.go2 import GO2

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
    for number in range(round(seconds / STATE_PERIOD)):
        t = number * STATE_PERIOD
        sensors.update(t, lie(t, state(t, ticks * number)), target(t))
        joint, imu, frozen = max(joint, sensors.joint), max(imu, sensors.imu), frozen or sensors.frozen
    return joint, imu, frozen


@pytest.mark.parametrize("ticks", [1, 2, 2000])  # of states, of milliseconds, of microseconds
def test_honest_sensors_agree_whatever_the_tick_counts(ticks):
    joint, imu, frozen = watch(3.0, ticks=ticks)
    assert joint < 0.05
    assert imu < 0.05
    assert not frozen


def test_states_that_a_busy_program_missed_at_first_are_no_contradiction():
    """The unit of the tick is measured over the first states: two thirds of them are not read here."""
    sensors = SensorConsistency()
    for number in (*range(0, 600, 3), *range(600, 1500)):
        came = 3 if number <= 600 else 1
        sensors.update(number * STATE_PERIOD, state(number * STATE_PERIOD, 2 * number), None, came)
        assert max(sensors.joint, sensors.imu, sensors.clock) < 0.3


@pytest.mark.parametrize("ticks", [1, 2, 2000])
def test_a_joint_that_jumps(ticks):
    def lie(t, low):
        return replace(low, joint_angles=low.joint_angles + 0.25 * np.eye(12)[4] * (t > 1.0))

    joint, imu, _ = watch(1.2, lie, ticks=ticks)
    assert joint == pytest.approx(0.25 / 0.2, abs=0.05)
    assert imu < 0.05


def test_a_quaternion_and_its_negative_are_the_same_orientation():
    def flip(t, low):
        return replace(low, quaternion=low.quaternion * (-1.0) ** low.tick)

    assert watch(2.0, flip, ticks=1)[1] < 0.05


@pytest.mark.parametrize(("share", "rare"), [(0.1, True), (0.8, False)])
def test_states_that_arrive_too_rarely(share, rare):
    """At 500 Hz, of which a share arrives at random."""
    fresh, random = StateFreshness(), np.random.default_rng(1)
    for number in range(2000):
        if random.random() < share:
            fresh.update(number * STATE_PERIOD, state(number * STATE_PERIOD, 2 * number))
    assert (fresh.interval > Limits().state_interval) == rare


def test_two_gaps_of_50_ms_are_not_too_rare():
    fresh, highest = StateFreshness(), 0.0
    for number in range(1000):
        if not (500 <= number < 525 or 600 <= number < 625):
            fresh.update(number * STATE_PERIOD, state(number * STATE_PERIOD, 2 * number))
            highest = max(highest, fresh.interval)
    assert highest < Limits().state_interval


def test_a_tick_that_repeats_or_goes_back_is_not_a_new_state():
    fresh = StateFreshness()
    assert fresh.update(0.0, state(0.0, 7))
    for now, tick in ((0.002, 7), (0.004, 6), (0.006, 7 - 2**31)):
        assert not fresh.update(now, state(now, tick))
    assert fresh.tick_at == 0.0
    assert fresh.update(0.008, state(0.008, 8))


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
            sensors.update(number * STATE_PERIOD, state(number * STATE_PERIOD, 2 * number), None)
            worst = max(worst, sensors.joint, sensors.imu)
    assert worst < 0.1


LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def turned(yaw: float = 0.0, roll: float = 0.0):
    return geometry.from_roll_pitch_yaw(np.radians(np.array([roll, 0.0, yaw])))


def odometry_at(x: float, orientation: np.ndarray) -> LegOdometry:
    odometry = LegOdometry(GO2)
    odometry.position, odometry.orientation = np.array([x, 0.0, 0.3]), orientation
    return odometry


def judge(steps, monitor: PoseMonitor | None = None) -> list[str]:
    """What is said of poses 8 ms apart; each step gives pose and odometry as (x, yaw in degrees, roll in degrees)."""
    monitor, said = monitor or PoseMonitor(), []
    for number, ((x, yaw, roll), (felt_x, felt_yaw, felt_roll)) in enumerate(steps):
        felt = odometry_at(felt_x, turned(felt_yaw, felt_roll))
        said.append(monitor.contradiction(0.008 * number, Pose(np.array([x, 0.0, 0.3]), turned(yaw, roll)), felt))
    return said


def test_a_pose_that_agrees_is_believed():
    walk = [((0.004 * n, 0.2 * n, 1.0), (0.004 * n, 0.2 * n, 0.0)) for n in range(500)]
    assert set(judge(walk)) == {""}


def test_where_it_begins_and_which_way_it_looks_does_not_matter():
    heading = np.radians(90.0)
    monitor = PoseMonitor()
    for n in range(300):
        felt = odometry_at(0.004 * n, LEVEL)
        pose = Pose(np.array([5.0, 2.0 + 0.004 * n, 0.3]), geometry.from_yaw(np.asarray(heading)))
        assert monitor.contradiction(0.008 * n, pose, felt) == ""


def test_the_slow_drift_of_odometry_and_imu_is_no_contradiction():
    """0.05 m/s and half a degree per second, for a minute."""
    walk = [((0.003 * n, 0.1, 0.0), (0.0034 * n, 0.1 + 0.004 * n, 0.0)) for n in range(7500)]
    assert set(judge(walk)) == {""}


@pytest.mark.parametrize(
    ("lie", "word"),
    [
        (lambda n: (0.004 * n, 180.0, 0.0), "heading"),
        (lambda n: (0.004 * n, 0.4 * n, 0.0), "heading"),  # 50 degrees per second
        (lambda n: (0.4, 0.0, 0.0), "position"),  # frozen after 0.8 s
        (lambda n: (0.4 + 0.008 * (n - 100), 0.0, 0.0), "position"),  # twice as fast as the legs
        (lambda n: (0.004 * n + 1.0, 0.0, 0.0), "position"),
        (lambda n: (0.004 * n, 0.0, 25.0), "tilt"),
    ],
    ids=["flipped", "spins", "frozen", "drifts", "jumps", "tilted"],
)
def test_a_lie_is_noticed(lie, word):
    truth = [((0.004 * n, 0.0, 0.0), (0.004 * n, 0.0, 0.0)) for n in range(100)]
    lies = [(lie(n), (0.004 * n, 0.0, 0.0)) for n in range(100, 350)]
    said = judge([*truth, *lies])
    assert set(said[:100]) == {""}
    assert said[-1].startswith(word)
    assert sum(1 for text in said if not text) < 100 + 90  # within 0.72 s


def test_after_a_glitch_poses_are_believed_again():
    walk = [((0.004 * n + (1.0 if 100 <= n < 112 else 0.0), 0.0, 0.0), (0.004 * n, 0.0, 0.0)) for n in range(300)]
    said = judge(walk)
    assert all(said[100:112])
    assert set(said[112:]) == {""}


def test_a_restart_believes_a_new_place():
    monitor = PoseMonitor()
    judge([((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))], monitor)
    assert judge([((3.0, 90.0, 0.0), (0.0, 0.0, 0.0))], monitor) != [""]
    monitor.restart()
    assert judge([((3.0, 90.0, 0.0), (0.0, 0.0, 0.0))], monitor) == [""]


def test_a_clock_that_runs_ahead_is_noticed_and_one_that_falls_behind_is_not():
    for ticks, wrong in ((2, False), (1, False), (22, True)):
        sensors, tick = SensorConsistency(), 0
        for number in range(200):
            tick += 2 if number < 100 else ticks
            sensors.update(number * STATE_PERIOD, state(number * STATE_PERIOD, tick), None)
        assert (sensors.clock > 1.0) == wrong
    sensors, late = SensorConsistency(), 0.0
    for number in range(200):  # a burst of states that were held up for 0.2 s
        late = 0.2 if number == 100 else max(late - STATE_PERIOD, 0.0)
        sensors.update(number * STATE_PERIOD + late, state(number * STATE_PERIOD, 2 * number), None)
        assert sensors.clock < 1.0
