from pathlib import Path

import mujoco
import numpy as np
import pytest

from keystride import geometry
from keystride.keyframes.files import load_script
from keystride.keyframes.goals import Goals, goal_errors
from keystride.keyframes.resolve import script_goals
from keystride.motion.authored.catalogue import CATALOGUE, authored_clips
from keystride.motion.clip import CLIP_FPS, Clip, load_clip, save_clip
from keystride.motion.quality import Targets, clip_figures, library_figures
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLLOWED = [
    "stand",
    "sit",
    "lie",
    "bow",
    "stretch",
    "paw_up",
    "sit_paw_up",
    "crouch",
    "look_around",
    "walk_back",
    "trot_slow",
]


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_clip_meets_the_quality_targets(clips: dict[str, Clip], name: str):
    assert Targets().misses(clip_figures(clips[name], GO2)) == []


def test_the_library_meets_them_with_room_to_spare(clips: dict[str, Clip]):
    figures = library_figures(clips.values(), GO2)
    assert figures.seconds > 5 * 60
    assert figures.slide < 0.02
    assert figures.penetration_max < 1e-9
    assert figures.limit_share == 0.0


def test_they_are_always_the_same(clips: dict[str, Clip]):
    for again in authored_clips(GO2):
        assert np.array_equal(again.joint_angles, clips[again.name].joint_angles)
        assert np.array_equal(again.base_position, clips[again.name].base_position)


def test_they_cover_what_is_promised(clips: dict[str, Clip]):
    tags = {tag for clip in clips.values() for tag in clip.tags}
    gaits = {"stand", "walk", "trot", "pace", "canter", "turn", "spin"}
    assert gaits | {"sit", "lie", "bow", "stretch", "paw_up", "jump", "crouch", "look", "sway"} <= tags


@pytest.mark.parametrize("name", CATALOGUE)
def test_their_metadata_says_what_they_are(clips: dict[str, Clip], name: str):
    clip = clips[name]
    assert (clip.metadata["source"], clip.metadata["licence"]) == ("authored", "Apache-2.0")
    covered = np.zeros(len(clip), dtype=bool)
    for start, end, tag in clip.metadata["segments"]:
        assert 0 <= start < end <= len(clip) + 1
        assert tag in clip.tags
        covered[start:end] = True
    assert covered.mean() > 0.98


def test_they_survive_the_file(clips: dict[str, Clip], tmp_path: Path):
    clip = clips["jump"]
    save_clip(clip, tmp_path / "jump.npz")
    again = load_clip(tmp_path / "jump.npz")
    assert again.metadata == clip.metadata
    assert np.array_equal(again.joint_angles, clip.joint_angles)


@pytest.mark.parametrize("name", CATALOGUE)
def test_neither_trunk_nor_head_nor_knees_touch_the_ground(clips: dict[str, Clip], name: str):
    model = load_model(GO2, visual=False)
    data = mujoco.MjData(model)
    clip = clips[name]
    for frame in range(0, len(clip), 5):
        data.qpos[:] = np.concatenate(
            [clip.base_position[frame], clip.base_orientation[frame], clip.joint_angles[frame]]
        )
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        touching = {model.geom(pair[1]).name for pair in data.contact.geom}
        assert touching <= {f"{leg}_foot" for leg in GO2.leg_names}


@pytest.mark.parametrize("name", FOLLOWED)
def test_physics_can_follow_the_slow_ones(clips: dict[str, Clip], tracker, name: str):
    track = tracker.play(clips[name])
    assert np.degrees(track.tilt_error(clips[name]).max()) < 15
    assert track.way_off(clips[name]).max() < 0.1
    assert np.percentile(track.torque_share, 99) < 0.9


@pytest.mark.parametrize("name", ["example_jump", "jump"])
def test_physics_can_follow_a_jump_through_the_air(clips: dict[str, Clip], tracker, name: str):
    track = tracker.play(clips[name])
    assert np.degrees(track.tilt_error(clips[name]).max()) < 25
    assert track.position[:, 2].max() > clips[name].base_position[:, 2].max() - 0.04


@pytest.mark.parametrize("name", ["jump", "paw_up"])
def test_the_examples_are_frames_of_their_clips(clips: dict[str, Clip], name: str):
    goals, clip = script_goals(load_script(EXAMPLES / f"{name}.yaml"), robot=GO2), clips[f"example_{name}"]
    for step, error in zip(goals.step[0], _errors_on_time(goals, clip), strict=True):
        assert np.linalg.norm(error[:3]) < 0.012, f"position after {step / CLIP_FPS} s"
        assert np.abs(error[3:6]).max() < np.radians(0.5), f"angles after {step / CLIP_FPS} s"
        assert np.abs(error[6:]).max() < 0.12, f"posture after {step / CLIP_FPS} s"


def _errors_on_time(goals: Goals, clip: Clip) -> list[np.ndarray]:
    steps = np.minimum(goals.step[0], len(clip) - 1)
    poses = (clip.base_position, clip.base_orientation, clip.joint_angles)
    return [goal_errors(goals, *(part[[step]] for part in poses))[0, row] for row, step in enumerate(steps)]


def test_every_clip_has_its_feet_under_a_trunk_that_is_up(clips: dict[str, Clip]):
    for clip in clips.values():
        assert geometry.projected_gravity(clip.base_orientation)[:, 2].max() < -0.7
