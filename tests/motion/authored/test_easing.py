import numpy as np
import pytest

from keystride.motion.authored.easing import bump, cubic, minimum_jerk, quintic, ramps, smooth, soft_limit


@pytest.mark.parametrize("ease", [minimum_jerk, smooth])
def test_easing_goes_from_rest_to_rest(ease):
    u = np.array([-1.0, 0.0, 1e-5, 0.5, 1 - 1e-5, 1.0, 2.0])
    assert ease(u) == pytest.approx([0, 0, 0, 0.5, 1, 1, 1], abs=1e-8)


def test_bump_peaks_half_way():
    assert bump(np.array([0.0, 0.5, 1.0])) == pytest.approx([0, 1, 0])


def test_ramps_add_up_where_they_overlap():
    times, seconds = np.array([0.0, 1.0, 1.5]), np.array([1.0, 1.0, 1.0])
    curve = ramps(times, np.array([0.0, 2.0, 5.0]), seconds, np.array([0.0, 1.0, 1.5, 2.5, 9.0]))
    assert curve == pytest.approx([0.0, 0.0, 1.0, 5.0, 5.0])


def test_quintic_meets_value_velocity_and_acceleration_at_both_ends():
    start, end, seconds = (1.0, -2.0, 3.0), (0.5, 4.0, -9.81), 0.4
    t = np.linspace(0.0, seconds, 50)
    curve = np.polynomial.Polynomial.fit(t, quintic(start, end, seconds, t), deg=5)
    for at, state in ((0.0, start), (seconds, end)):
        assert (curve(at), curve.deriv()(at), curve.deriv(2)(at)) == pytest.approx(state)


def test_cubic_meets_value_and_velocity_at_both_ends():
    start, end = (np.array([0.0, 1.0]), np.array([2.0, 0.0])), (np.array([1.0, 1.0]), np.array([-3.0, 5.0]))
    t = np.linspace(0.0, 0.5, 2001)
    curve = cubic(start, end, 0.5, t)
    rate = np.gradient(curve, t, axis=0, edge_order=2)
    assert curve[[0, -1]] == pytest.approx(np.array([start[0], end[0]]))
    assert rate[[0, -1]] == pytest.approx(np.array([start[1], end[1]]), abs=1e-4)


def test_soft_limit_keeps_small_values_and_bounds_large_ones():
    assert soft_limit(np.array([0.01, -0.01]), 1.0) == pytest.approx([0.01, -0.01], rel=1e-3)
    assert np.all(np.abs(soft_limit(np.array([3.0, -50.0]), 2.0)) <= 2.0)
