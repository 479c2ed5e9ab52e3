from itertools import pairwise

import numpy as np
import pytest

from keystride.motion.authored.steps import Swing, foot_load, foot_motion, swings_of, walked_path

DT = 0.005
T = np.arange(0.0, 8.0, DT)
SPOT = np.array([0.2, 0.14])


def steady(forward: float, turn: float = 0.0):
    return walked_path(T, np.tile([forward, 0.0, turn], (len(T), 1)))


def test_a_path_with_a_turn_is_a_circle():
    path = steady(0.6, 0.5)
    centre = np.array([0.0, 0.6 / 0.5])
    assert np.hypot(*(path.place - centre).T) == pytest.approx(1.2, abs=1e-4)
    assert path.heading == pytest.approx(0.5 * T)


def test_feet_land_ahead_and_leave_behind_by_as_much():
    path = steady(0.5)
    swings = swings_of(path, 1.5 * T, np.full(len(T), 0.6), np.full(len(T), 0.05), SPOT)
    for before, after in pairwise(swings[2:-1]):
        ahead = before.end - path.under(SPOT, before.touch)
        behind = before.end - path.under(SPOT, after.lift)
        assert ahead == pytest.approx(-behind, abs=1e-6)
        assert ahead[0] == pytest.approx(0.5 * 0.6 / 1.5 / 2, abs=1e-3)  # half the way of a stance


def test_standing_still_asks_for_no_step():
    assert swings_of(steady(0.0), 1.5 * T, np.full(len(T), 0.6), np.full(len(T), 0.05), SPOT) == []


def test_a_foot_rests_but_for_its_swing_and_lifts_gently():
    swing = Swing(1.001, 1.299, SPOT, SPOT + np.array([0.2, 0.0]), 0.06)
    foot = foot_motion(T, [swing], SPOT, radius=0.022)
    speed = np.linalg.norm(np.diff(foot, axis=0), axis=-1) / DT
    resting = (T[1:] < 1.001) | (T[:-1] > 1.299)
    assert np.all(speed[resting] == 0.0)
    assert speed[np.argmax(~resting)] < 0.2
    assert foot[:, 2].max() == pytest.approx(0.022 + 0.06, abs=1e-4)
    assert foot[-1] == pytest.approx([*swing.end, 0.022])


def test_loads_average_to_the_weight():
    swings = swings_of(steady(0.5), 2.0 * T, np.full(len(T), 0.6), np.full(len(T), 0.05), SPOT)
    load = foot_load(T, swings)
    strides = (swings[4].touch <= T) & (swings[10].touch > T)
    assert load[strides].mean() == pytest.approx(1.0, abs=0.02)
    assert foot_load(T, [])[0] == 1.0
