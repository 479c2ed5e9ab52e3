import numpy as np
import pytest

from keystride.motion.authored.balance import GRAVITY, HEIGHT, RETURN_RATE, local_mean, rebound, stance_load, sway

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
    assert fall[MIDDLE] == pytest.approx((GRAVITY / HEIGHT * (lean - pressure))[MIDDLE], abs=0.02)


def test_sway_stands_still_over_still_feet():
    assert sway(np.full((400, 1), 0.07), DT) == pytest.approx(0.07)


def test_rebound_integrates_twice_what_is_quicker_than_its_return():
    rate = 30.0
    motion = rebound(np.cos(rate * T)[:, None], DT)
    share = rate**2 / (rate**2 + RETURN_RATE**2)
    assert motion[MIDDLE, 0] == pytest.approx(-share * np.cos(rate * T[MIDDLE]) / rate**2, abs=1e-5)


def test_local_mean_of_a_constant_is_the_constant():
    assert local_mean(np.full(300, 1.7), DT) == pytest.approx(1.7)
