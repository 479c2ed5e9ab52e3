from dataclasses import replace

import numpy as np
import pytest

from keystride import geometry
from keystride.motion.clip import Clip, mirror_clip
from keystride.motion.quality import Targets, clip_figures
from keystride.motion.retargeting.retarget import Capture, Proportions, length_scale, retarget
from keystride.motion.signals import clip_feet, foot_clearance
from keystride.robot.go2 import GO2

TOES = ((0.23, 0.05, 0.0), (0.23, -0.05, 0.0), (-0.23, 0.05, 0.0), (-0.23, -0.05, 0.0))
PROPORTIONS = Proportions(height=0.40, pitch=0.0, toes=TOES)


def dog(frames: int = 240, speed: float = 0.0, height: float = 0.40, pitch: float = 0.0, fps: float = 60.0) -> Capture:
    """A dog of straight lines: its toes trot under a trunk that moves along x at a speed."""
    time = np.arange(frames) / fps
    along = np.stack([np.cos(pitch), 0.0, np.sin(pitch)]) * 0.215
    across = np.array([0.0, 0.045, 0.0])
    corners = np.array([along + across, along - across, -along + across, -along - across])
    middle = np.stack([speed * time, 0 * time, height + 0 * time], axis=1)
    toes = middle[:, None] * [1.0, 1.0, 0.0] + np.array(TOES)
    if speed:
        toes = _trotting(toes, time, speed)
    return Capture("dog", fps, middle[:, None] + corners, toes, PROPORTIONS)


def _trotting(toes, time, speed, period: float = 0.6):
    for leg, offset in enumerate((0.0, 0.5, 0.5, 0.0)):
        phase = time / period + offset
        stride, part = np.floor(phase), phase % 1
        swing = np.clip((part - 0.5) / 0.5, 0, 1)
        share = swing * swing * (3 - 2 * swing)
        toes[:, leg, 0] = TOES[leg][0] + speed * period * (stride + share - offset + 0.25)
        toes[:, leg, 2] = 0.05 * np.sin(np.pi * swing)
    return toes


def test_a_standing_dog_becomes_a_standing_robot():
    take = retarget(dog(), GO2)
    np.testing.assert_allclose(take.clip.base_position[:, 2], 0.31, atol=1e-3)
    np.testing.assert_allclose(foot_clearance(clip_feet(take.clip, GO2), GO2), 0.0, atol=1e-9)
    assert take.residual.max() < 1e-6
    assert not take.clamped.any()


def test_forward_kinematics_reproduces_the_wanted_feet():
    """Scaled toes, moved outwards by the same offset throughout: relative to standing they move as the dog's do."""
    capture = dog(speed=0.8)
    take = retarget(capture, GO2)
    assert np.median(take.residual) < 0.005
    feet = clip_feet(take.clip, GO2)
    scale = length_scale(capture)
    strides = np.ptp(feet[:, :, 0], axis=0)
    np.testing.assert_allclose(strides, np.ptp(capture.toes[..., 0], axis=0) * scale, rtol=0.05)


def test_a_trotting_dog_reaches_the_targets():
    found = clip_figures(retarget(dog(speed=1.2), GO2).clip, GO2)
    assert Targets().misses(found) == []
    assert found.mean_speed == pytest.approx(1.2 * np.sqrt(0.31 / 0.40), rel=0.02)  # Froude: speeds by the root


def _similar(capture: Capture, factor: float) -> Capture:
    """The same dog, larger, and slower by the root of it."""
    toes = tuple((factor * x, factor * y, factor * z) for x, y, z in PROPORTIONS.toes)
    return replace(
        capture,
        hips=capture.hips * factor,
        toes=capture.toes * factor,
        fps=capture.fps / np.sqrt(factor),
        proportions=Proportions(PROPORTIONS.height * factor, PROPORTIONS.pitch, toes),
    )


def test_dynamically_similar_dogs_become_the_same_robot_motion():
    """Lengths by any factor and time by its root change nothing."""
    capture = dog(speed=0.9)
    _assert_same(retarget(_similar(capture, 1.5), GO2).clip, retarget(capture, GO2).clip)


def test_a_sitting_dog_keeps_knees_and_feet_out_of_the_ground():
    take = retarget(dog(height=0.19, pitch=0.95), GO2)
    pitch = -geometry.roll_pitch_yaw(take.clip.base_orientation)[:, 1]
    assert (pitch > 0.4).all()
    assert take.clamped.all()
    assert foot_clearance(clip_feet(take.clip, GO2), GO2).min() > -1e-9
    assert clip_figures(take.clip, GO2).limit_share == 0.0


def test_a_mirrored_dog_becomes_the_mirrored_robot():
    capture = dog(speed=0.8)
    flipped = (
        capture.toes[:, [1, 0, 3, 2]] * geometry.MIRROR_VECTOR,
        capture.hips[:, [1, 0, 3, 2]] * geometry.MIRROR_VECTOR,
    )
    mirrored = retarget(replace(capture, toes=flipped[0], hips=flipped[1]), GO2).clip
    _assert_same(mirrored, mirror_clip(retarget(capture, GO2).clip, GO2))


def _assert_same(one: Clip, other: Clip) -> None:
    np.testing.assert_allclose(one.base_position, other.base_position, atol=1e-9)
    np.testing.assert_allclose(one.joint_angles, other.joint_angles, atol=1e-9)
