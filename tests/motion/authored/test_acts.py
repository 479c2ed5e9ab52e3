import mujoco
import numpy as np
import pytest

from keystride import geometry
from keystride.geometry import GRAVITY
from keystride.keyframes.postures import named_postures, posture
from keystride.motion.authored.acts import Jump, Key, perform_act, perform_jump, place_key
from keystride.motion.authored.performance import as_clip, standing_feet
from keystride.motion.clip import CLIP_FPS, Clip
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model

POSTURES = named_postures(GO2)

GROUNDED = [name for name, pose in POSTURES.items() if not pose.airborne]


def keys_to(name: str, seconds: float, hold: float) -> list[Key]:
    """A sitting robot gives its paw; a standing one sits down first."""
    sit = [Key(posture("sit", GO2), seconds, 0.0, "sit")] if name.startswith("sit_") else []
    return [*sit, Key(posture(name, GO2), seconds, hold, name), *sit]


@pytest.mark.parametrize("name", GROUNDED)
def test_an_act_starts_and_ends_standing_and_holds_its_posture(name: str):
    keys = keys_to(name, 1.2, 0.6)
    shown = perform_act(GO2, *keys, lead=0.4, back=1.2, settle=0.2)
    clip = as_clip(GO2, name, shown)
    held = round((0.4 + 1.2 * ((len(keys) + 1) // 2) + 0.3) * 50)
    assert clip.joint_angles[[0, -1]] == pytest.approx(np.array([GO2.stance, GO2.stance]), abs=1e-6)
    assert clip.joint_angles[held] == pytest.approx(posture(name, GO2).joints, abs=0.12)  # near footholds are kept
    assert geometry.roll_pitch_yaw(clip.base_orientation[held])[1] == pytest.approx(posture(name, GO2).pitch)
    assert shown.position[held, 2] == pytest.approx(posture(name, GO2).height)


@pytest.mark.parametrize("name", GROUNDED)
def test_at_most_one_foot_is_in_the_air(name: str):
    feet = perform_act(GO2, *keys_to(name, 1.2, 0.6)).feet
    assert np.sum(feet[..., 2] > GO2.foot_radius + 1e-9, axis=1).max() <= 1


@pytest.mark.parametrize("name", ["paw_up", "paw_up_left", "sit_paw_up"])
def test_the_weight_is_over_three_feet_while_a_paw_is_up(name: str):
    shown = perform_act(GO2, *keys_to(name, 1.4, 1.0), back=1.4)
    clip = as_clip(GO2, name, shown)
    raised = np.flatnonzero(shown.feet[..., 2].max(axis=1) > GO2.foot_radius + 0.04)  # a step in between stays lower
    assert len(raised) > 50
    assert min(support_margin(clip, shown.feet[frame], int(frame)) for frame in raised) > 0.02


def test_a_trunk_that_looks_aside_leaves_its_feet_alone():
    placed = place_key(GO2, Key(posture("stand", GO2), 1.0, yaw=0.3), standing_feet(GO2))
    assert placed.feet == pytest.approx(standing_feet(GO2))
    assert placed.base[5] == 0.3


def test_segments_follow_the_keys():
    shown = perform_act(
        GO2, Key(posture("sit", GO2), 1.0, 0.5, "sit"), Key(posture("stand", GO2), 0.5), lead=0.4, back=0.6
    )
    assert [segment[:2] for segment in shown.segments] == [(0, 20), (20, 95), (95, 120), (120, 170)]
    assert [segment[2] for segment in shown.segments] == ["stand", "sit", "sit", "stand"]
    assert len(shown) == 170


def support_margin(clip: Clip, feet: Floats, frame: int) -> float:
    """How far inside the triangle of the lowest three feet the centre of mass is; m."""
    model = load_model(GO2, visual=False)
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([clip.base_position[frame], clip.base_orientation[frame], clip.joint_angles[frame]])
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    corners = feet[np.argsort(feet[:, 2])[:3], :2]
    return min(_inside(corners, i, data.subtree_com[1, :2]) for i in range(3))


def _inside(corners: Floats, i: int, point: Floats) -> float:
    """Distance of the point from the edge opposite to corner i, positive on that corner's side."""
    first, second = np.delete(corners, i, axis=0)
    normal = np.array([-(second - first)[1], (second - first)[0]]) / np.linalg.norm(second - first)
    return float(normal @ (point - first) * np.sign(normal @ (corners[i] - first)))


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
