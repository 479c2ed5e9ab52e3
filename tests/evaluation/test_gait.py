from dataclasses import replace

import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.episodes import NEVER_FELL, EpisodeRollout, Trace
from keystride.evaluation.gait import (
    Motion,
    airborne_seconds,
    joint_speed_shares,
    measure_gait,
    motion_of_poses,
    motor_rows,
    swing_height,
)
from keystride.keyframes.goals import empty_goals
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height

FRAMES = 200  # 4 s


def standing_feet() -> np.ndarray:
    feet = np.zeros((FRAMES, 1, 4, 3))
    feet[..., 2] = GO2.foot_radius
    return feet


def motion(feet: np.ndarray) -> Motion:
    """Feet under a base that moves at 1 m/s, with legs that do not turn."""
    base_velocity, still = np.tile([1.0, 0.0, 0.0], (FRAMES, 1, 1)), np.zeros((FRAMES, 1, 12))
    return Motion(feet, np.zeros((FRAMES, 1, 4, 2)), base_velocity, still, still)


def test_feet_that_stay_have_duty_one_and_no_strides() -> None:
    gait = measure_gait(GO2, motion(standing_feet()))
    assert gait.duty_factor[0] == 1.0
    assert gait.stride_hz[0] == 0.0
    assert gait.slide_m_s[0] == 0.0
    assert np.isnan(gait.clearance_m[0])  # no swing, no height


def test_a_robot_that_stands_has_no_gait() -> None:
    gait = measure_gait(GO2, replace(motion(standing_feet()), base_velocity=np.zeros((FRAMES, 1, 3))))
    assert np.isnan(gait.duty_factor[0])
    assert np.isnan(gait.stride_hz[0])


def test_two_strides_a_second_with_half_the_time_in_the_air() -> None:
    """Every foot is 6 cm up for 12.5 of 25 frames: up on frames 12 to 24 of each half second."""
    feet = standing_feet()
    up = np.arange(FRAMES) % 25 >= 12
    feet[up, ..., 2] += 0.06
    gait = measure_gait(GO2, motion(feet))
    # 12 frames down in 25, the first of which the foot arrives at 3 m/s. The first foothold is no touch-down.
    assert gait.duty_factor[0] == pytest.approx((12 + 7 * 11) / FRAMES)
    assert gait.stride_hz[0] == pytest.approx(7 / (FRAMES / 50))
    assert gait.clearance_m[0] == pytest.approx(0.06)


def test_a_foot_that_rolls_moves_and_does_not_slip() -> None:
    """A robot pivots over feet that roll: the calves turn, the centres of the feet advance by the turn times their radius."""
    rate = 2.0  # rad/s
    pitch = rate * np.arange(FRAMES)[:, None] / 50
    orientation = geometry.from_roll_pitch_yaw(np.stack([0 * pitch, pitch, 0 * pitch], axis=-1))
    joints, still = np.zeros((FRAMES, 1, 12)), np.zeros((FRAMES, 1, 12))
    base = np.zeros((FRAMES, 1, 3))
    turned = motion_of_poses(GO2, base, orientation, base, joints, still)
    feet = standing_feet()
    feet[..., 0] += rate * GO2.foot_radius * np.arange(FRAMES)[:, None, None] / 50
    gait = measure_gait(GO2, replace(turned, feet=feet))
    assert gait.slide_m_s[0] == pytest.approx(rate * GO2.foot_radius)
    assert gait.slip_m_s[0] == pytest.approx(0.0, abs=1e-6)


def test_swing_height_is_the_mean_over_finished_swings() -> None:
    height = np.zeros((9, 4))
    down = np.ones((9, 4), dtype=bool)
    height[2:4, 0], down[2:4, 0] = [0.02, 0.04], False
    height[5, 0], down[5, 0] = 0.08, False
    height[7:, 1], down[7:, 1] = 0.5, False  # still in the air at the end
    assert swing_height(height, down) == pytest.approx((0.04 + 0.08) / 2)


def test_sliding_and_skating() -> None:
    feet = standing_feet()
    feet[:, 0, :, 0] = np.arange(FRAMES)[:, None] / 50 * 0.1  # all feet creep at 0.1 m/s
    gait = measure_gait(GO2, motion(feet))
    assert gait.slide_m_s[0] == pytest.approx(0.1)
    assert gait.skating_share[0] == 0.0
    feet[:, 0, :, 0] *= 10.0  # too fast to be planted, and still on the ground
    gait = measure_gait(GO2, motion(feet))
    assert gait.skating_share[0] == 1.0
    assert np.isnan(gait.slide_m_s[0])


def test_trembling_shows_as_joint_acceleration() -> None:
    velocities = np.zeros((FRAMES, 1, 12))
    velocities[::2] = 1.0  # 1 rad/s every other frame: 50 rad/s^2 on every joint
    assert measure_gait(GO2, replace(motion(standing_feet()), joint_velocities=velocities)).joint_acceleration[
        0
    ] == pytest.approx(50.0)


def rollout(height: np.ndarray, speed: float = 0.0, fell: int = NEVER_FELL) -> EpisodeRollout:
    """One robot in its stance at heights (T,) over the ground, all joints at one speed."""
    steps = len(height)
    position = np.zeros((steps, 1, 3))
    position[:, 0, 2] = height
    joints = np.tile(GO2.stance, (steps, 1, 1))
    orientation = np.tile([1.0, 0.0, 0.0, 0.0], (steps, 1, 1))
    trace = Trace(position, orientation, joints, np.full_like(joints, speed), np.zeros_like(position), joints[1:])
    return EpisodeRollout(empty_goals(1, 1), trace, end=np.array([steps - 1]), fell=np.array([fell]))


def test_the_longest_flight_counts() -> None:
    ground = float(standing_height(GO2, GO2.stance))
    height = ground + np.array([0, 0.1, 0.1, 0, 0.1, 0.1, 0.1, 0.1, 0, 0.1])
    assert airborne_seconds(GO2, rollout(height)) == pytest.approx([0.08])
    assert airborne_seconds(GO2, rollout(height, fell=3)) == pytest.approx([0.04])
    assert airborne_seconds(GO2, rollout(np.full(9, ground + 0.005))) == pytest.approx([0.0])


def test_joint_speed_is_a_share_of_each_motors_rating() -> None:
    shares = joint_speed_shares(GO2, rollout(np.full(5, 0.3), speed=15.7))
    assert shares.max() == pytest.approx(1.0)  # the calf's
    assert shares.min() == pytest.approx(15.7 / 30.1)


def test_motor_rows_are_of_each_suite_and_of_all() -> None:
    calm, fast = rollout(np.full(1000, 0.3), 1.57), rollout(np.full(10, 0.3), 31.4)
    rows = {row.scenario: row.mean for row in motor_rows(GO2, {"calm": [calm], "fast": [fast, calm]}, "any")}
    assert list(rows) == ["calm", "fast", "all suites"]
    assert rows["calm"] == pytest.approx(0.1)
    assert rows["fast"] == pytest.approx(2.0)
    assert rows["all suites"] == pytest.approx(2.0)
