"""Which clips are demonstrations, and what they show."""

from dataclasses import replace

import numpy as np
import pytest

from keystride.motion.authored.catalogue import DIRECTED_CLIPS, GAITS, JUMPS
from keystride.motion.authored.performance import as_clip
from keystride.motion.library import Library
from keystride.physics.simulator import CpuSimulator
from keystride.robot.go2 import GO2
from keystride.task.config import KeyframeRanges, TaskConfig
from keystride.task.demonstrations import TARGET_LEAD, replay_action, replayable_frames
from keystride.task.environment import KeyframeEnvironment
from keystride.task.sampling import backward_frames


@pytest.fixture(scope="module")
def library() -> Library:
    clips = [as_clip(GO2, name, {**DIRECTED_CLIPS, **JUMPS}[name](GO2)) for name in ("paw_up", "jump_low", "jump_far")]
    return Library(GO2, clips, mirrored=False)


@pytest.fixture(scope="module")
def replayable(library) -> np.ndarray:
    return replayable_frames(GO2, library)


def test_an_action_asks_for_the_next_frame_and_a_little_more(library):
    rows = np.array([10, library.last[0]])
    target = GO2.stance + GO2.action_scale * replay_action(GO2, library, rows)
    frames = library.frames[np.array([11, library.last[0]])]
    assert np.allclose(target, frames.joint_angles + TARGET_LEAD * frames.joint_velocities)


def test_postures_and_leaps_can_be_replayed_from_the_push_on(library, replayable):
    assert replayable[library.clip == 0].mean() > 0.5  # a paw up
    for clip in (1, 2):
        rows = np.flatnonzero(library.clip == clip)
        apex = rows[library.frames.position[rows, 2].argmax()]
        assert replayable[apex - 25 : apex].all()


def test_walking_backwards_can_be_replayed():
    library = Library(GO2, [as_clip(GO2, "walk_back", GAITS["walk_back"](GO2))], mirrored=False)
    assert replayable_frames(GO2, library)[backward_frames(library)].mean() > 0.9


def test_a_leap_beyond_the_motors_is_no_demonstration():
    clip = as_clip(GO2, "jump_low", JUMPS["jump_low"](GO2))
    raised = clip.base_position.copy()
    raised[:, 2] += 2.0 * np.maximum(raised[:, 2] - 0.36, 0.0)  # thrice as high above what legs reach
    library = Library(GO2, [replace(clip, base_position=raised)], mirrored=False)
    apex = library.frames.position[:, 2].argmax()
    assert library.frames.position[apex, 2] > 0.6
    assert not replayable_frames(GO2, library)[apex - 15 : apex].any()


def test_actions_are_shown_near_their_clip_alone(library):
    config = TaskConfig(goals="pose", ranges=KeyframeRanges(leap_share=0.5, posture_share=0.3))
    physics = CpuSimulator(GO2, 64, threads=1)
    environment = KeyframeEnvironment(GO2, physics, library, config, demonstrations=True)
    rare = environment._shown.copy()
    shown = environment.step(np.zeros((64, 12), dtype=np.float32)).demonstration
    assert shown is not None
    has_one = np.asarray(np.isfinite(shown).all(axis=1))
    assert has_one.any()
    assert not has_one[~rare].any()
    environment._state.position[:, 2] += 1.0  # far away from any clip
    shown = environment._demonstration()
    assert shown is not None
    assert np.isnan(shown).all()


def test_following_what_is_shown_leaps(library):
    """Open loop, from the crouch on: the base gets higher than any leg could lift it."""
    config = TaskConfig(goals="pose", ranges=KeyframeRanges(leap_share=1.0))
    environment = KeyframeEnvironment(GO2, CpuSimulator(GO2, 64, threads=1), library, config, demonstrations=True)
    environment._end[:] = 10**6
    highest = np.zeros(64)
    for _ in range(50):
        shown = environment._demonstration()
        assert shown is not None
        environment.step(np.nan_to_num(shown))
        highest = np.maximum(highest, environment._state.position[:, 2])
    assert np.median(highest) > 0.42


def test_actions_are_shown_only_where_the_keyframe_asks_for_them(library):
    """A policy that is asked for a yaw alone cannot know that the clip leaps."""
    config = TaskConfig(goals="any", ranges=KeyframeRanges(leap_share=1.0))
    environment = KeyframeEnvironment(GO2, CpuSimulator(GO2, 256, threads=1), library, config, demonstrations=True)
    shown = environment._demonstration()
    assert shown is not None
    has_one = np.asarray(np.isfinite(shown).all(axis=1))
    presence = environment._goals.presence[:, 0]  # position, roll, pitch, yaw, posture
    asks = np.logical_or(presence[:, 0], presence[:, 4])
    assert has_one[asks].mean() > 0.5
    assert not has_one[~asks].any()
    environment._now[:] = environment._goals.step[:, 0] + 12
    shown = environment._demonstration()
    assert shown is not None
    assert np.isnan(shown).all()


def test_walking_backwards_is_shown_where_a_position_behind_asks_for_it():
    library = Library(GO2, [as_clip(GO2, "walk_back", GAITS["walk_back"](GO2))])
    config = TaskConfig(goals="position", ranges=KeyframeRanges(backward_share=1.0))
    environment = KeyframeEnvironment(GO2, CpuSimulator(GO2, 64, threads=1), library, config, demonstrations=True)
    shown = environment._demonstration()
    assert shown is not None
    assert np.isfinite(shown).all(axis=1).mean() > 0.7
    environment._goals.position[:, 0, :2] = environment._state.position[:, :2]  # no longer behind
    shown = environment._demonstration()
    assert shown is not None
    assert np.isnan(shown).all()
