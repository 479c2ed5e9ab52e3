import numpy as np
import pytest

from keystride.geometry import GRAVITY
from keystride.keyframes.inbetween.segments import minimum_jerk
from keystride.motion.authored.performance import (
    MASS_HEIGHT,
    RETURN_RATE,
    bump,
    cubic,
    local_mean,
    quintic,
    ramps,
    rebound,
    soft_limit,
    stance_load,
    sway,
)
from keystride.motion.signals import smoothstep


@pytest.mark.parametrize("ease", [minimum_jerk, smoothstep])
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


DT = 0.005
T = np.arange(0.0, 6.0, DT)
MIDDLE = slice(400, -400)  # away from the ends, whose past and future are made up


def test_a_stance_carries_its_share_on_average():
    u = (np.arange(1000) + 0.5) / 1000
    assert stance_load(u).mean() == pytest.approx(1.0, abs=1e-5)
    assert stance_load(np.array([-0.1, 0.0, 1.0, 1.2])) == pytest.approx([0, 0, 0, 0])


def test_sway_obeys_the_pendulum_over_its_centre_of_pressure():
    pressure = np.stack([0.1 * np.sin(7 * T), 0.05 * np.cos(3 * T)], axis=-1)
    lean = sway(pressure, DT)
    fall = np.gradient(np.gradient(lean, DT, axis=0), DT, axis=0)
    assert fall[MIDDLE] == pytest.approx((GRAVITY / MASS_HEIGHT * (lean - pressure))[MIDDLE], abs=0.02)


def test_sway_stands_still_over_still_feet():
    assert sway(np.full((400, 1), 0.07), DT) == pytest.approx(0.07)


def test_rebound_integrates_twice_what_is_quicker_than_its_return():
    rate = 30.0
    motion = rebound(np.cos(rate * T)[:, None], DT)
    share = rate**2 / (rate**2 + RETURN_RATE**2)
    assert motion[MIDDLE, 0] == pytest.approx(-share * np.cos(rate * T[MIDDLE]) / rate**2, abs=1e-5)


def test_local_mean_of_a_constant_is_the_constant():
    assert local_mean(np.full(300, 1.7), DT) == pytest.approx(1.7)
