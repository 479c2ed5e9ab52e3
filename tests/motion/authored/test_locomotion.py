import numpy as np
import pytest

from keystride.motion.authored.locomotion import Passage, perform
from keystride.motion.authored.performance import as_clip, standing_feet
from keystride.motion.authored.steps import CANTER_GAIT, PACE_GAIT, TROT_GAIT, WALK_GAIT
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
