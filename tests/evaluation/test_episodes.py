from dataclasses import fields, replace
from math import pi

import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.episodes import (
    NEVER_FELL,
    Controller,
    EpisodeRollout,
    StanceNoise,
    Trace,
    World,
    exact_stance,
    keyframe_errors,
    met,
    noisy_stance,
    run_episodes,
)
from keystride.keyframes.goals import Goals, empty_goals
from keystride.physics.simulator import Randomization
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height

LEVEL = np.array([[1.0, 0.0, 0.0, 0.0]])
STANCE = GO2.stance[None]


def same(a: Trace, b: Trace) -> bool:
    return all(np.array_equal(getattr(a, field.name), getattr(b, field.name)) for field in fields(Trace))


def test_a_standing_robot_meets_the_pose_that_it_stands_in(standing: Policy, standing_goals: Goals) -> None:
    rollout = run_episodes(standing, GO2, exact_stance(GO2, 2), standing_goals)
    assert rollout.falls == 0
    assert rollout.met.all()
    assert (rollout.errors < [0.08, 3.0, 3.0, 1.0, 8.0, 0.05]).all()  # it sags under its weight


def test_a_keyframe_elsewhere_is_missed_by_as_far_as_it_is(standing: Policy, standing_goals: Goals) -> None:
    standing_goals.position[0, 1, 0] = 2.0
    rollout = run_episodes(standing, GO2, exact_stance(GO2, 2), standing_goals)
    assert rollout.met.tolist() == [[True, False], [True, True]]
    assert abs(rollout.errors[0, 1, 0] - 2.0) < 0.05


def test_an_episode_lasts_until_one_second_after_its_last_keyframe(standing: Policy, standing_goals: Goals) -> None:
    standing_goals.presence[1, 1] = False  # the second robot's last keyframe is at step 25
    rollout = run_episodes(standing, GO2, exact_stance(GO2, 2), standing_goals)
    assert rollout.end.tolist() == [100, 75]
    assert len(rollout.trace.position) == 101  # the start, and 100 steps
    assert len(rollout.trace.joint_targets) == 100


def test_a_fall_is_counted_and_what_was_due_after_it_is_lost(collapsing: type, standing_goals: Goals) -> None:
    controller: Controller = collapsing(when=30)
    standing_goals.step[1] = [60, 90]
    rollout = run_episodes(controller, GO2, exact_stance(GO2, 2), standing_goals)
    assert rollout.falls == 2
    assert (rollout.fell > 30).all()
    assert (rollout.fell < 55).all()
    assert rollout.lost.tolist() == [[False, rollout.fell[0] <= 50], [True, True]]
    assert rollout.met[0, 0]
    assert not rollout.met[1].any()
    assert np.isfinite(rollout.errors).all()  # no episode drops out of a mean


def test_a_keyframe_within_reach_of_a_fallen_robot_is_still_missed(collapsing: type, standing_goals: Goals) -> None:
    standing_goals.presence[..., 1:] = False
    standing_goals.height[:] = False  # only the spot on the ground counts, and it lies there
    rollout = run_episodes(collapsing(when=0), GO2, exact_stance(GO2, 2), standing_goals)
    assert (rollout.errors[:, 1, 0] < 0.15).all()
    assert not rollout.met[:, 1].any()


def test_a_fall_after_the_episode_is_none(collapsing: type, standing_goals: Goals) -> None:
    standing_goals.step[1] = [100, 200]
    rollout = run_episodes(collapsing(when=110), GO2, exact_stance(GO2, 2), standing_goals)
    assert rollout.fell[0] == NEVER_FELL  # over at step 100
    assert rollout.fell[1] > 110


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(standing: Policy, standing_goals: Goals) -> None:
    def run(seed: int, threads: int) -> EpisodeRollout:
        start = noisy_stance(GO2, 2, np.random.default_rng(seed))
        world = World(randomization=Randomization(push_interval=(5, 10)), seed=seed, threads=threads)
        return run_episodes(standing, GO2, start, standing_goals, world=world)

    assert same(run(3, 1).trace, run(3, 2).trace)
    assert not same(run(3, 1).trace, run(4, 1).trace)


def test_a_robot_slides_further_on_ice(standing: Policy, standing_goals: Goals) -> None:
    start = exact_stance(GO2, 2)
    start = replace(start, linear_velocity=np.tile([1.0, 0.0, 0.0], (2, 1)))

    def slide(friction: float) -> float:
        rollout = run_episodes(standing, GO2, start, standing_goals, world=World(friction=friction))
        return float(rollout.trace.position[-1, 0, 0])

    assert slide(0.05) > slide(0.8) + 0.2


def test_progress_goes_up_to_one(standing: Policy, standing_goals: Goals) -> None:
    seen: list[float] = []
    run_episodes(standing, GO2, exact_stance(GO2, 2), standing_goals, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_without_noise_it_is_the_stance() -> None:
    still = StanceNoise(0.0, 0.0, 0.0, 0.0, 0.0)
    drawn, exact = noisy_stance(GO2, 3, np.random.default_rng(0), still), exact_stance(GO2, 3)
    for name in ("position", "orientation", "linear_velocity", "angular_velocity", "joint_angles", "joint_velocities"):
        assert np.allclose(getattr(drawn, name), getattr(exact, name))


def test_noise_fills_its_widths_and_stays_inside() -> None:
    noise = StanceNoise()
    start = noisy_stance(GO2, 4000, np.random.default_rng(1), noise)
    off = np.abs(start.joint_angles - GO2.stance)
    assert 0.99 * noise.joints < off.max() <= noise.joints
    assert 0.99 * noise.velocity < np.abs(start.linear_velocity).max() <= noise.velocity
    assert np.abs(start.joint_angles.mean(axis=0) - GO2.stance).max() < 0.1 * noise.joints


def test_goals_are_seen_from_an_exact_spot_and_heading_with_the_feet_on_the_ground() -> None:
    start = noisy_stance(GO2, 50, np.random.default_rng(2))
    assert not start.position[:, :2].any()
    assert np.allclose(geometry.yaw_of(start.orientation), 0.0)
    assert np.allclose(start.position[:, 2], standing_height(GO2, start.joint_angles))


def full_goal() -> Goals:
    goals = empty_goals(1, 1)
    goals.presence[:], goals.height[:] = True, True
    goals.posture[:] = GO2.stance
    return goals


def errors_of(goals: Goals, position: tuple[float, float, float], orientation: np.ndarray = LEVEL) -> np.ndarray:
    return keyframe_errors(goals, np.array([position]), orientation, STANCE)[0, 0]


def test_distance_is_the_norm_in_space() -> None:
    assert errors_of(full_goal(), (2.0, 3.0, 6.0))[0] == pytest.approx(7.0)


def test_without_a_height_distance_is_over_the_ground() -> None:
    goals = replace(full_goal(), height=np.zeros((1, 1), dtype=bool))
    assert errors_of(goals, (3.0, 4.0, 123.0))[0] == pytest.approx(5.0)


def test_distance_does_not_depend_on_how_the_robot_is_turned() -> None:
    turned = geometry.from_roll_pitch_yaw(np.array([[0.3, -0.4, 2.0]]))
    assert errors_of(full_goal(), (2.0, 3.0, 6.0), turned)[0] == pytest.approx(7.0)


def test_angles_go_the_shorter_way_round() -> None:
    goals = full_goal()
    goals.angles[0, 0] = [0.0, 0.0, pi - 0.01]
    there = geometry.from_roll_pitch_yaw(np.array([[0.2, -0.1, -pi + 0.01]]))
    assert errors_of(goals, (0, 0, 0), there)[1:4] == pytest.approx(np.degrees([0.2, 0.1, 0.02]))


def test_posture_is_the_root_mean_square_over_the_joints() -> None:
    goals = full_goal()
    goals.posture[0, 0] += 0.1
    assert errors_of(goals, (0, 0, 0))[4] == pytest.approx(np.degrees(0.1))
    goals.posture[0, 0] = GO2.stance
    goals.posture[0, 0, 5] += 0.12
    assert errors_of(goals, (0, 0, 0))[4] == pytest.approx(np.degrees(0.12) / np.sqrt(12))


def test_what_a_keyframe_leaves_open_has_no_error() -> None:
    goals = full_goal()
    goals.presence[0, 0] = [True, False, False, True, False]
    assert np.isnan(errors_of(goals, (1, 0, 0))).tolist() == [False, True, True, False, True, False]


def test_met_looks_at_every_component_there_is_and_at_no_other() -> None:
    nan = np.nan
    rows = np.array(
        [
            [0.15, 10.0, 10.0, 15.0, 10.0, 0.05],  # exactly at every threshold
            [0.16, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, nan, nan, 15.1, nan, nan],
            [0.1, nan, nan, nan, nan, nan],
            [nan, nan, nan, nan, nan, nan],  # asks for nothing
        ]
    )
    assert met(rows).tolist() == [True, False, False, True, False]


def test_a_height_is_judged_on_its_own() -> None:
    goals = full_goal()
    goals.position[0, 0, 2] = 0.45
    missed = errors_of(goals, (0.0, 0.0, 0.35))
    assert missed[5] == pytest.approx(0.1)
    assert missed[0] < 0.15
    assert not met(missed)
    assert met(errors_of(goals, (0.1, 0.0, 0.42)))
    open_height = replace(goals, height=np.zeros((1, 1), dtype=bool))
    assert np.isnan(errors_of(open_height, (0.0, 0.0, 0.35))[5])
