import numpy as np
import pytest

from keystride.evaluation.gait import measure_gait, swing_height
from keystride.robot.go2 import GO2

FRAMES = 200  # 4 s


def standing_feet() -> np.ndarray:
    feet = np.zeros((FRAMES, 1, 4, 3))
    feet[..., 2] = GO2.foot_radius
    return feet


def moving() -> np.ndarray:
    return np.tile([1.0, 0.0, 0.0], (FRAMES, 1, 1))


STILL = np.zeros((FRAMES, 1, 12))


def test_feet_that_stay_have_duty_one_and_no_strides() -> None:
    gait = measure_gait(GO2, standing_feet(), moving(), STILL)
    assert gait.duty_factor[0] == 1.0
    assert gait.stride_hz[0] == 0.0
    assert gait.slide_m_s[0] == 0.0
    assert np.isnan(gait.clearance_m[0])  # no swing, no height


def test_a_robot_that_stands_has_no_gait() -> None:
    gait = measure_gait(GO2, standing_feet(), np.zeros((FRAMES, 1, 3)), STILL)
    assert np.isnan(gait.duty_factor[0])
    assert np.isnan(gait.stride_hz[0])


def test_two_strides_a_second_with_half_the_time_in_the_air() -> None:
    """Every foot is 6 cm up for 12.5 of 25 frames: up on frames 12 to 24 of each half second."""
    feet = standing_feet()
    up = np.arange(FRAMES) % 25 >= 12
    feet[up, ..., 2] += 0.06
    gait = measure_gait(GO2, feet, moving(), STILL)
    # 12 frames down in 25, the first of which the foot arrives at 3 m/s. The first foothold is no touch-down.
    assert gait.duty_factor[0] == pytest.approx((12 + 7 * 11) / FRAMES)
    assert gait.stride_hz[0] == pytest.approx(7 / (FRAMES / 50))
    assert gait.clearance_m[0] == pytest.approx(0.06)


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
    gait = measure_gait(GO2, feet, moving(), STILL)
    assert gait.slide_m_s[0] == pytest.approx(0.1)
    assert gait.skating_share[0] == 0.0
    feet[:, 0, :, 0] *= 10.0  # too fast to be planted, and still on the ground
    gait = measure_gait(GO2, feet, moving(), STILL)
    assert gait.skating_share[0] == 1.0
    assert np.isnan(gait.slide_m_s[0])


def test_trembling_shows_as_joint_acceleration() -> None:
    velocities = STILL.copy()
    velocities[::2] = 1.0  # 1 rad/s every other frame: 50 rad/s^2 on every joint
    assert measure_gait(GO2, standing_feet(), moving(), velocities).joint_acceleration[0] == pytest.approx(50.0)
