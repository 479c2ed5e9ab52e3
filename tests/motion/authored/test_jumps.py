import numpy as np
import pytest

from keystride import geometry
from keystride.geometry import GRAVITY
from keystride.keyframes.postures import posture
from keystride.motion.authored.jumps import Jump, perform_jump
from keystride.motion.authored.performance import as_clip
from keystride.motion.clip import CLIP_FPS
from keystride.robot.go2 import GO2

JUMPS = [Jump(), Jump(apex=0.55, turn=1.0), Jump(forward=1.2), Jump(forward=1.0, pose="leap", spin=0.4, apex=0.47)]


def in_flight(jump: Jump, frames: int) -> slice:
    _, _, fly, land, _, _ = jump.times
    return slice(int(np.ceil(fly * CLIP_FPS)), min(int(land * CLIP_FPS) + 1, frames))


@pytest.mark.parametrize("jump", JUMPS)
def test_the_flight_is_that_of_a_thrown_stone(jump: Jump):
    shown = perform_jump(GO2, jump)
    flight = shown.position[in_flight(jump, len(shown))]
    bend = np.diff(flight, n=2, axis=0) * CLIP_FPS**2
    assert bend == pytest.approx(np.tile([0.0, 0.0, -GRAVITY], (len(bend), 1)), abs=1e-6)


@pytest.mark.parametrize("jump", JUMPS)
def test_nothing_turns_the_trunk_in_the_air(jump: Jump):
    shown = perform_jump(GO2, jump)
    assert np.diff(shown.angles[in_flight(jump, len(shown))], n=2, axis=0) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("jump", JUMPS)
def test_velocity_is_continuous_at_take_off_and_landing(jump: Jump):
    shown = perform_jump(GO2, jump)
    kick = np.diff(shown.position, n=2, axis=0) * CLIP_FPS**2
    assert np.abs(kick).max() < 4 * GRAVITY  # a jump of velocity by 1 m/s would show as 50 m/s^2


@pytest.mark.parametrize("jump", JUMPS)
def test_feet_stay_put_before_take_off_and_after_landing(jump: Jump):
    shown = perform_jump(GO2, jump)
    flight = in_flight(jump, len(shown))
    before, after = shown.feet[: flight.start], shown.feet[flight.stop :]
    assert np.ptp(before, axis=0).max() < 1e-7
    assert np.ptp(after, axis=0).max() < 1e-7
    assert shown.feet[flight, :, 2].min() >= GO2.foot_radius - 1e-7


def test_the_apex_is_as_high_as_asked_and_in_the_asked_posture():
    jump = Jump(apex=0.5, lead=0.4, lower=0.5, push=0.2)
    clip = as_clip(GO2, "up", perform_jump(GO2, jump))
    apex = round((jump.times[2] + jump.flight / 2) * CLIP_FPS)
    assert clip.base_position[apex, 2] == pytest.approx(0.5, abs=1e-3)
    assert clip.joint_angles[apex] == pytest.approx(posture("tuck", GO2).joints, abs=0.05)


def test_a_turning_jump_lands_in_its_new_heading():
    clip = as_clip(GO2, "about", perform_jump(GO2, Jump(turn=1.0)))
    assert geometry.yaw_of(clip.base_orientation[-1]) == pytest.approx(1.0)
    assert clip.joint_angles[-1] == pytest.approx(GO2.stance, abs=1e-6)
