"""The style suite: distributions of joint motion and gait, which the discriminator does not see."""

from dataclasses import fields

import numpy as np

from keystride.evaluation.episodes import EpisodeRollout
from keystride.evaluation.gait import GaitFigures, Motion, measure_gait, motion_of_poses
from keystride.evaluation.results import Row, Subject, single_row
from keystride.evaluation.setting import Setting, SuiteOutcome, draw_episodes
from keystride.motion.library import Library
from keystride.robot.description import Floats, Robot

SEGMENT_FRAMES = 100  # 2 s
CLIP_SEGMENTS = 2048  # enough for two draws to give nearly the same figures
MIN_KEYFRAMES = 4  # so that a segment contains no idle time after the last keyframe


def style(setting: Setting) -> SuiteOutcome:
    """Compare the policy on keyframes from clips with segments of the clips, both sampled as in training."""
    library = setting.libraries.dataset
    drawn = draw_episodes(
        setting, "style", library, random_share=0.0, reference_start=1.0, fewest_keyframes=MIN_KEYFRAMES
    )
    rollout = setting.run("style", setting.contender, drawn.start, drawn.goals)
    clips = motion_of_clips(setting.robot, library, setting.random("clips"), CLIP_SEGMENTS)
    other = motion_of_clips(setting.robot, library, setting.random("more clips"), CLIP_SEGMENTS)
    performed = motion_of_rollout(setting.robot, rollout)
    rows = [
        *_rows(Subject("style", "policy", setting.contender.name), setting.robot, performed, clips, rollout.falls),
        *_rows(Subject("style", "clips", ""), setting.robot, clips, other, 0),
    ]
    return SuiteOutcome(rows, {"style": rollout})


def motion_of_rollout(robot: Robot, rollout: EpisodeRollout) -> Motion:
    """Return the motion of the first two seconds of every episode."""
    trace, some = rollout.trace, slice(0, SEGMENT_FRAMES)
    return motion_of_poses(
        robot,
        trace.position[some],
        trace.orientation[some],
        trace.linear_velocity[some],
        trace.joint_angles[some],
        trace.joint_velocities[some],
    )


def motion_of_clips(robot: Robot, library: Library, random: np.random.Generator, count: int) -> Motion:
    """Return random segments of clips, two seconds each."""
    first = library.draw(random, count, ahead=SEGMENT_FRAMES - 1)
    frames = library.frames[first + np.arange(SEGMENT_FRAMES)[:, None]]  # (T, E)
    return motion_of_poses(
        robot,
        frames.position,
        frames.orientation,
        frames.linear_velocity,
        frames.joint_angles,
        frames.joint_velocities,
    )


def frechet_distance(a: Floats, b: Floats) -> float:
    """Return the Fréchet distance between normal distributions fitted to two samples (n, d) and (m, d), in their unit.

    Image generation (FID) reports its square.
    """
    gap = a.mean(axis=0) - b.mean(axis=0)
    first, second = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = _root(first)
    overlap = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ second @ root), 0.0)).sum()
    return float(np.sqrt(max(gap @ gap + np.trace(first) + np.trace(second) - 2 * overlap, 0.0)))


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _rows(subject: Subject, robot: Robot, motion: Motion, reference: Motion, falls: int) -> list[Row]:
    episodes = motion.feet.shape[1]
    distances = {
        "frechet_angles_rad": _distance(motion.joint_angles, reference.joint_angles),
        "frechet_velocities_rad_s": _distance(motion.joint_velocities, reference.joint_velocities),
    }
    gait = measure_gait(robot, motion)
    measured = {field.name: getattr(gait, field.name) for field in fields(GaitFigures)}
    return [
        single_row(subject, name, values[~np.isnan(values)], episodes=episodes, falls=falls)
        for name, values in (distances | measured).items()
    ]


def _distance(a: Floats, b: Floats) -> Floats:
    """Return the Fréchet distance (1,) between all frames of two motions (T, E, d)."""
    return np.array([frechet_distance(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))])
