from itertools import pairwise

import numpy as np
import pytest

from keystride.motion.authored.locomotion import (
    CANTER_GAIT,
    PACE_GAIT,
    TROT_GAIT,
    WALK_GAIT,
    Passage,
    Swing,
    foot_load,
    foot_motion,
    perform,
    swings_of,
    walked_path,
)
from keystride.motion.authored.performance import as_clip, standing_feet
from keystride.motion.clip import CLIP_FPS
from keystride.robot.go2 import GO2

STEADY = slice(150, 250)  # frames in the middle of five seconds of going


@pytest.mark.parametrize("gait", [WALK_GAIT, TROT_GAIT, PACE_GAIT, CANTER_GAIT])
def test_a_passage_goes_at_its_speed(gait):
    speed = gait.speed[1]
    shown = perform(GO2, Passage(gait, 5.0, speed))
    x = shown.position[STEADY, 0]
    assert (x[-1] - x[0]) / (len(x) - 1) * CLIP_FPS == pytest.approx(speed, rel=0.06)


def test_the_base_ends_where_the_commands_lead():
    shown = perform(GO2, Passage(WALK_GAIT, 4.0, 0.3, 0.1, ramp=1.0), stop=1.0)
    assert shown.position[-1, :2] == pytest.approx([4 * 0.3, 4 * 0.1], abs=2e-3)  # half a ramp lost, half a stop won


def test_turning_on_the_spot_stays_there():
    shown = perform(GO2, Passage(TROT_GAIT, 4.0, turn=1.2, ramp=0.8), stop=0.8)
    assert shown.angles[-1, 2] == pytest.approx(4 * 1.2, abs=1e-3)
    assert np.abs(shown.position[:, :2]).max() < 0.03


@pytest.mark.parametrize("gait", [WALK_GAIT, TROT_GAIT, PACE_GAIT])
def test_a_performance_starts_and_ends_standing(gait):
    clip = as_clip(GO2, "there", perform(GO2, Passage(gait, 3.0, 0.5)))
    assert clip.joint_angles[[0, -1]] == pytest.approx(np.array([GO2.stance, GO2.stance]), abs=0.003)
    assert np.abs(clip.joint_velocities[[0, -1]]).max() < 0.01


def test_feet_on_the_ground_do_not_move():
    feet = perform(GO2, Passage(TROT_GAIT, 3.0, 0.8), Passage(WALK_GAIT, 3.0, 0.5, turn=0.6)).feet
    grounded = feet[..., 2] == GO2.foot_radius
    both = grounded[1:] & grounded[:-1]
    # Two frames on the ground are of one stance, unless a whole swing fits between them.
    assert np.linalg.norm(np.diff(feet, axis=0), axis=-1)[both].max() == 0.0
    assert both.mean() > 0.4


def test_a_trot_moves_diagonal_feet_together_and_a_pace_those_of_a_side():
    trot, pace = (perform(GO2, Passage(gait, 5.0, 0.8)).feet[STEADY, :, 2] for gait in (TROT_GAIT, PACE_GAIT))
    assert trot[:, 0] == pytest.approx(trot[:, 3], abs=1e-9)
    assert trot[:, 1] == pytest.approx(trot[:, 2], abs=1e-9)
    assert pace[:, 0] == pytest.approx(pace[:, 2], abs=1e-9)
    assert np.abs(trot[:, 0] - trot[:, 1]).max() > 0.03


def test_a_walk_keeps_three_feet_down_most_of_the_time_and_a_fast_canter_flies():
    walk, canter = (
        perform(GO2, Passage(gait, 5.0, speed)).feet[STEADY, :, 2]
        for gait, speed in ((WALK_GAIT, 0.3), (CANTER_GAIT, 2.0))
    )
    assert (walk == GO2.foot_radius).sum(axis=1).min() >= 2
    assert np.median((walk == GO2.foot_radius).sum(axis=1)) == 3
    assert (canter == GO2.foot_radius).sum(axis=1).min() == 0


def test_segments_name_gaits_turns_and_standing():
    shown = perform(GO2, Passage(WALK_GAIT, 2.0, 0.4), Passage(TROT_GAIT, 2.0, 0.7, turn=0.6), lead=0.5, stop=1.0)
    assert (0, 25, "stand") in shown.segments
    assert (25, 125, "walk") in shown.segments
    assert (125, 275, "trot") in shown.segments
    assert (125, 275, "turn") in shown.segments


def test_a_leg_that_cannot_reach_is_named():
    shown = perform(GO2, Passage(WALK_GAIT, 2.0, 3.0))
    with pytest.raises(ValueError, match=r"dash: at \d+\.\d+ s the \w\w foot is"):
        as_clip(GO2, "dash", shown)


def test_standing_feet_touch_the_ground():
    assert standing_feet(GO2)[:, 2] == pytest.approx(GO2.foot_radius)


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
