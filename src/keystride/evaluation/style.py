"""Style, by measures that the discriminator does not see: distributions of joint motion, and gait."""

from dataclasses import fields

import numpy as np

from keystride.evaluation.episodes import EpisodeRollout
from keystride.evaluation.gait import GaitFigures, Motion, measure_gait, motion_of_poses
from keystride.evaluation.results import Row, Subject, single_row
from keystride.evaluation.suites import Setting, SuiteOutcome, draw_episodes
from keystride.motion.library import Library
from keystride.robot.description import Floats, Robot

STRETCH = 100  # frames; 2 s
CLIP_STRETCHES = 2048  # enough that two draws of the clips hardly differ
MIN_KEYFRAMES = 4  # at least, so that the stretch holds no idle time after the last


def style(setting: Setting) -> SuiteOutcome:
    """Compare the policy on keyframes of the clips with stretches of the clips, both drawn as in training."""
    library = setting.libraries.dataset
    drawn = draw_episodes(
        setting, "style", library, random_share=0.0, reference_start=1.0, fewest_keyframes=MIN_KEYFRAMES
    )
    rollout = setting.run("style", setting.contender, drawn.start, drawn.goals)
    clips = motion_of_clips(setting.robot, library, setting.random("clips"), CLIP_STRETCHES)
    other = motion_of_clips(setting.robot, library, setting.random("more clips"), CLIP_STRETCHES)
    performed = motion_of_rollout(setting.robot, rollout)
    rows = [
        *_rows(Subject("style", "policy", setting.contender.name), setting.robot, performed, clips, rollout.falls),
        *_rows(Subject("style", "clips", ""), setting.robot, clips, other, 0),
    ]
    return SuiteOutcome(rows, {"style": rollout})


def motion_of_rollout(robot: Robot, rollout: EpisodeRollout) -> Motion:
    """Return the motion of the first two seconds of every episode."""
    trace, some = rollout.trace, slice(0, STRETCH)
    return motion_of_poses(
        robot,
        trace.position[some],
        trace.orientation[some],
        trace.linear_velocity[some],
        trace.joint_angles[some],
        trace.joint_velocities[some],
    )


def motion_of_clips(robot: Robot, library: Library, random: np.random.Generator, count: int) -> Motion:
    """Stretches of two seconds, or as long as all of the drawn clips last."""
    first = library.draw(random, count, ahead=STRETCH - 1)
    frames = library.frames[first + np.arange(STRETCH)[:, None]]  # (T, E)
    return motion_of_poses(
        robot,
        frames.position,
        frames.orientation,
        frames.linear_velocity,
        frames.joint_angles,
        frames.joint_velocities,
    )


def frechet_distance(a: Floats, b: Floats) -> float:
    """Between the normal distributions with the means and covariances of two samples (n, d) and (m, d); their unit.

    The square of it is the figure that image generation reports.
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
    """Return the distance (1,) between all frames of one and of the other; (T, E, d) each."""
    return np.array([frechet_distance(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))])
