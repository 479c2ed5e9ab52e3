import numpy as np
import pytest

from keystride.motion.clip import CLIP_FPS
from keystride.motion.retargeting.planting import GRAVITY, PlantingSettings, detect_planted, flights, free_fall, plant

SETTINGS = PlantingSettings()


def walking_toe(frames: int = 200):
    """One toe that stands for 20 frames, swings 0.2 m for 20, and so on; it drifts by 1 cm in every stance."""
    x, z = np.zeros(frames), np.zeros(frames)
    for frame in range(frames):
        stride, phase = divmod(frame, 40)
        swing = max(phase - 20, 0) / 20
        x[frame] = 0.2 * (stride + swing) + 0.01 * min(phase, 20) / 20
        z[frame] = 0.06 * np.sin(np.pi * swing)
    toes = np.zeros((frames, 4, 3))
    toes[:, 0, 0], toes[:, 0, 2] = x, z
    return toes


def test_toes_that_are_low_and_slow_are_planted():
    toes = walking_toe()
    planted = detect_planted(toes, np.zeros((200, 3)), np.zeros(4), SETTINGS)
    assert planted[:, 1:].all()  # the legs that never move
    assert planted[2:19, 0].all()
    assert not planted[24:37, 0].any()


def test_planted_feet_do_not_move_and_are_on_the_ground():
    toes = walking_toe()
    planted = detect_planted(toes, np.zeros((200, 3)), np.zeros(4), SETTINGS)
    feet, stands = plant(toes, planted, SETTINGS)
    both = stands[1:, 0] & stands[:-1, 0]
    assert both.sum() > 50
    np.testing.assert_array_equal(np.diff(feet[:, 0], axis=0)[both], 0.0)
    np.testing.assert_array_equal(feet[stands[:, 0], 0, 2], 0.0)
    assert np.abs(feet - toes).max() < 0.03


def test_a_foot_follows_a_target_that_wanders_by_stepping_not_by_sliding():
    toes = np.zeros((300, 4, 3))
    toes[:, 0, 0] = np.linspace(0.0, 0.3, 300)  # 5 cm/s: slow enough to look planted
    feet, stands = plant(toes, np.ones((300, 4), dtype=bool), SETTINGS)
    moving = np.abs(np.diff(feet[:, 0, 0])) > 1e-9
    assert moving.any()
    assert (feet[1:, 0, 2][moving] > 0).mean() > 0.9  # it moves in the air
    assert np.abs(feet[:, 0, 0] - toes[:, 0, 0]).max() < 0.1
    assert stands[:, 1:].all()


def test_left_and_right_never_step_together():
    toes = np.zeros((300, 4, 3))
    toes[:, :, 0] = np.linspace(0.0, 0.3, 300)[:, None]
    _, stands = plant(toes, np.ones((300, 4), dtype=bool), SETTINGS)
    assert (stands[:, 0] | stands[:, 1]).all()


def leap(fall: float, frames: int = 25, around: int = 20):
    """Standing, a parabola of its own gravity, standing; heights of the base (T,) and of the soles (T, 4, 3)."""
    time = np.arange(frames) / CLIP_FPS
    rise = 0.5 * fall * time * (time[-1] - time)
    height = np.concatenate([np.full(around, 0.3), 0.3 + rise, np.full(around, 0.3)])
    soles = np.zeros((len(height), 4, 3))
    soles[around : around + frames, :, 2] = 0.05
    return height, soles


def test_a_flight_is_where_no_sole_is_down():
    _, soles = leap(9.81)
    assert flights(soles) == [(20, 45)]
    soles[:, 2, 2] = 0.0
    assert flights(soles) == []


@pytest.mark.parametrize("fall", [7.0, 9.81, 12.0])
def test_corrected_flights_fall_with_gravity(fall: float):
    height, soles = leap(fall)
    corrected = height + free_fall(height, soles)
    inside = np.diff(corrected[20:45], 2) * CLIP_FPS**2
    np.testing.assert_allclose(inside, -GRAVITY, rtol=1e-6)
    np.testing.assert_allclose(corrected[:20], height[:20])


def test_standing_on_something_unknown_is_no_flight():
    height, soles = leap(0.0)
    np.testing.assert_array_equal(free_fall(height, soles), 0.0)
