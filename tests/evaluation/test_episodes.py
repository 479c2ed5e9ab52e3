from dataclasses import fields, replace

import numpy as np

from keystride import geometry
from keystride.evaluation.episodes import (
    NEVER_FELL,
    Controller,
    EpisodeRollout,
    StanceNoise,
    Trace,
    World,
    exact_stance,
    noisy_stance,
    run_episodes,
)
from keystride.keyframes.goals import Goals
from keystride.physics.simulator import Randomization
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height


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
