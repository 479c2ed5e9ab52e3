import numpy as np
import pytest

from keystride.motion.clip import FPS
from keystride.motion.retargeting.flights import GRAVITY, flights, free_fall


def leap(fall: float, frames: int = 25, around: int = 20):
    """Standing, a parabola of its own gravity, standing; heights of the base (T,) and of the soles (T, 4, 3)."""
    time = np.arange(frames) / FPS
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
    inside = np.diff(corrected[20:45], 2) * FPS**2
    np.testing.assert_allclose(inside, -GRAVITY, rtol=1e-6)
    np.testing.assert_allclose(corrected[:20], height[:20])


def test_standing_on_something_unknown_is_no_flight():
    height, soles = leap(0.0)
    np.testing.assert_array_equal(free_fall(height, soles), 0.0)
