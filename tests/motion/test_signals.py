import numpy as np
import pytest

from keystride.motion.signals import gaussian_smooth, resample, smoothstep, soft_max, soft_min, stretches, without_short


def test_smoothing_keeps_constants_and_straight_lines():
    line = np.stack([np.arange(40.0), np.full(40, 3.0)], axis=1)
    smoothed = gaussian_smooth(line, 2.0)
    np.testing.assert_allclose(smoothed[:, 1], 3.0)
    np.testing.assert_allclose(smoothed[8:-8, 0], line[8:-8, 0], atol=1e-12)


def test_smoothing_has_no_delay():
    pulse = np.zeros(41)
    pulse[20] = 1.0
    smoothed = gaussian_smooth(pulse, 3.0)
    np.testing.assert_allclose(smoothed, smoothed[::-1])
    assert smoothed.sum() == pytest.approx(1.0)
    assert smoothed.argmax() == 20


def test_resampling_a_line_reads_it_anywhere():
    times = np.array([0.0, 1.0, 3.0])
    values = np.stack([2 * times, -times], axis=1)[:, None]  # (3, 1, 2)
    at = np.array([0.5, 2.0, 3.0])
    np.testing.assert_allclose(resample(values, times, at), np.stack([2 * at, -at], axis=1)[:, None])


def test_soft_bounds_hold_and_vanish_far_away():
    a = np.linspace(-1, 1, 101)
    assert (soft_max(a, 0.0, 0.1) >= np.maximum(a, 0.0)).all()
    assert (soft_min(a, 0.0, 0.1) <= np.minimum(a, 0.0)).all()
    assert soft_max(a, 0.0, 0.1)[-1] == pytest.approx(1.0, abs=3e-3)
    assert soft_max(np.zeros(1), 0.0, 0.1)[0] == pytest.approx(0.05)


def test_smoothstep_by_hand():
    np.testing.assert_allclose(smoothstep(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])), [0, 0, 0.5, 1, 1])


def test_runs_and_short_stretches():
    flags = np.array([1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1], dtype=bool)
    assert stretches(flags) == [(0, 2), (3, 6), (9, 10), (14, 15)]
    kept = without_short(flags, least=3, gap=2)
    assert stretches(kept) == [(0, 6), (14, 15)]  # the gap at 2 closed, the lone frame 9 dropped, the end left alone
    assert stretches(flags) == [(0, 2), (3, 6), (9, 10), (14, 15)]
