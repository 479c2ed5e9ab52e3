"""The environment's contract with the learner."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from keystride.keyframes.goals import used
from keystride.motion.library import Library
from keystride.physics.simulator import CpuSimulator
from keystride.robot.go2 import GO2
from keystride.task.config import GoalWidths, KeyframeRanges, TaskConfig
from keystride.task.environment import RANDOMIZATIONS, KeyframeEnvironment, joint_targets, randomization
from keystride.task.observations import goal_mirror, state_mirror
from keystride.task.rewards import FASTEST_PACE, REWARDS, ControlStep, pace_reward, tracking_reward


def make(library: Library, count: int = 16, seed: int = 0, rewards=REWARDS, **settings) -> KeyframeEnvironment:
    config = TaskConfig(**settings)
    bodies, _ = randomization(config)
    physics = CpuSimulator(GO2, count, randomization=bodies, seed=seed, threads=1)
    return KeyframeEnvironment(GO2, physics, library, config, rewards=rewards, seed=seed)


def noise(count: int, seed: int) -> np.ndarray:
    return (0.3 * np.random.default_rng(seed).normal(size=(count, 12))).astype(np.float32)


def test_shapes(library):
    seen = make(library).observe()
    assert (seen.state.shape, seen.goals.shape, seen.visible.shape) == ((16, 46), (16, 5, 24), (16, 5))
    assert seen.state.dtype == np.float32


@pytest.mark.parametrize("randomize", list(RANDOMIZATIONS))
def test_one_seed_one_history(library, randomize):
    one, two = (make(library, goals="any", randomize=randomize) for _ in range(2))
    for t in range(60):
        a, b = one.step(noise(16, t)), two.step(noise(16, t))
    assert np.array_equal(a.observation.state, b.observation.state)
    assert np.array_equal(a.observation.goals, b.observation.goals)
    assert np.array_equal(a.rewards["regularization"], b.rewards["regularization"])


def test_restore_continues_bit_for_bit(library):
    one, two = make(library, goals="any", randomize="robot"), make(library, seed=5, goals="any", randomize="robot")
    for t in range(30):
        one.step(noise(16, t))
    two.restore(one.snapshot())
    for t in range(60):
        a, b = one.step(noise(16, t)), two.step(noise(16, t))
        assert np.array_equal(a.observation.goals, b.observation.goals)
        assert np.array_equal(a.transition, b.transition)


def test_goal_reward_comes_on_the_keyframes_step_alone(library):
    """With kernels as wide as the world every keyframe is met: the reward is one on its step, zero on all others."""
    environment = make(library, count=32, reference_start=0.0, ranges=KeyframeRanges(random_share=(1.0, 1.0)))
    environment._reached[:] = 1e9
    environment.config = replace(environment.config, goal_widths=replace(environment.config.goal_widths, start=1e9))
    environment._end[:] = 10**6
    goals, start = environment._goals, environment._now.copy()
    due = np.where(used(goals), goals.step, -1)
    for t in range(1, 120):
        reward = environment.step(np.zeros((32, 12), dtype=np.float32)).rewards["goal"]
        assert reward == pytest.approx((due == (start + t)[:, None]).any(axis=1).astype(float), abs=1e-5)


def test_episodes_end_one_second_after_the_last_keyframe(library):
    environment = make(library, count=32, reference_start=0.0, ranges=KeyframeRanges(count=(1, 1)))
    environment._end = environment._goals.step[:, 0] + 50
    last = environment._goals.step[:, 0].copy()
    ended = np.zeros(32, dtype=int)
    for t in range(1, 101):
        step = environment.step(np.zeros((32, 12), dtype=np.float32))
        ended[(ended == 0) & step.truncated] = t
        assert not step.terminated.any()
    assert np.array_equal(ended, last + 50)


def test_a_truncated_episode_reports_where_it_arrived(library):
    environment = make(library, count=8, reference_start=0.0)
    environment._end[:] = 1
    step = environment.step(np.zeros((8, 12), dtype=np.float32))
    assert step.truncated.all()
    assert step.arrived.state.shape == (8, 46)
    assert not np.array_equal(step.arrived.goals, step.observation.goals)  # a new episode has new goals


def test_falling_terminates(library):
    environment = make(library, count=4, reference_start=0.0, ranges=KeyframeRanges(count=(5, 5), random_share=(1, 1)))
    environment._end[:] = 10**6
    tuck = np.tile([0.0, 6.0, -6.0], 4).astype(np.float32)[None].repeat(4, axis=0)  # legs folded up under the trunk
    assert any(environment.step(tuck).terminated.any() for _ in range(100))


def test_a_diverged_robot_is_restarted_and_the_rest_goes_on(library):
    environment = make(library, count=4)
    environment.physics.push(np.array([2]), np.full((1, 3), np.nan), np.zeros((1, 3)))
    step = environment.step(np.zeros((4, 12), dtype=np.float32))
    assert step.terminated.tolist()[2]
    assert np.isfinite(step.observation.state).all()
    assert np.isfinite(step.transition).all()
    assert np.isfinite(environment.step(np.zeros((4, 12), dtype=np.float32)).observation.state).all()


def test_joint_limits_terminate_only_when_asked(library):
    reach = np.zeros((8, 12), dtype=np.float32)
    reach[:, 0::3] = 5.0  # hips spread as far as they go
    outcomes = []
    for strict in (False, True):
        environment = make(library, count=8, reference_start=0.0, end_at_joint_limits=strict)
        environment._end[:] = 10**6
        outcomes.append(sum(environment.step(reach).terminated.sum() for _ in range(20)))
    assert outcomes[1] > outcomes[0]


def test_swings_are_timed_from_lift_to_landing(library):
    swings, loads = [], []

    def watch(step: ControlStep) -> np.ndarray:
        swings.append(step.swing[0])
        loads.append(step.state.contact[0])
        return np.zeros(1)

    environment = make(library, count=1, rewards={"watch": watch}, reference_start=0.0)
    environment._end[:] = 10**6
    lifted = np.zeros((1, 12), dtype=np.float32)
    lifted[0, [1, 2]] = 2.0, -3.0  # the front left leg draws its foot up, and the robot tips
    for step in range(60):
        environment.step(lifted if 20 <= step < 35 else np.zeros((1, 12), dtype=np.float32))
    down = np.array(loads) > 1.0  # N
    for foot in range(4):
        grounded = np.flatnonzero(down[:, foot])
        flights = {
            int(b): 0.02 * (b - a - 1) for a, b in pairwise(grounded) if b > a + 1
        }  # landing: seconds without load
        timed = {int(i): swings[i][foot] for i in np.flatnonzero(np.array(swings)[:, foot]) if i > grounded[0]}
        assert timed == pytest.approx(flights)
    assert np.array(swings)[20:, 0].max() == pytest.approx(0.3, abs=0.1)


def test_the_baseline_sees_the_next_keyframe_only(library):
    """Of what the policy sees in the same episodes, only the keyframe with the least time left."""
    ranges = KeyframeRanges(count=(5, 5), random_share=(1, 1))
    baseline, aware = (make(library, count=64, see=see, ranges=ranges) for see in ("next", "all"))
    for t in range(60):
        seen, everything = (environment.step(noise(64, t)).observation for environment in (baseline, aware))
        left = everything.goals[..., 18]
        left = np.where(everything.visible & (left >= 0), left, np.inf)
        expected = np.isfinite(left) & (left == left.min(axis=1, keepdims=True))
        assert np.array_equal(seen.visible, expected)
        assert everything.visible.sum() > 2 * seen.visible.sum() > 0


def test_actions_are_targets_around_the_stance_within_limits():
    assert np.allclose(joint_targets(GO2, np.zeros((1, 12))), GO2.stance)
    assert np.allclose(joint_targets(GO2, np.full((1, 12), 0.2)), GO2.stance + 0.2 * GO2.action_scale)
    assert (joint_targets(GO2, np.full((1, 12), 99.0)) == GO2.upper).all()


def test_the_random_share_grows_with_the_steps(library):
    environment = make(library, ranges=KeyframeRanges(random_share=(0.0, 0.6), random_ramp=1000))
    shares = [environment.progress(steps, {})["random_share"] for steps in (0, 500, 1000, 5000)]
    assert shares == pytest.approx([0.0, 0.3, 0.6, 0.6])


def test_a_mirrored_world_looks_mirrored(library):
    """Mirror robot and goals: the observation is the mirrored observation, in the learner's signed orders."""
    environment = make(library, count=16, goals="pose", reference_start=1.0)
    seen = environment.step(noise(16, 0)).observation
    mirror_world(environment)
    mirrored = environment.observe()
    assert np.allclose(mirrored.state, swapped(seen.state, state_mirror(GO2)), atol=1e-5)
    assert np.allclose(mirrored.goals, swapped(seen.goals, goal_mirror(GO2)), atol=1e-5)


def swapped(values: np.ndarray, signed_order: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    order, sign = signed_order
    return values[..., order] * sign


def mirror_world(environment: KeyframeEnvironment) -> None:
    """Reflect the robot's state and its goals in the world's x-z plane."""
    flip, turn, quaternion = np.array([1, -1, 1.0]), np.array([-1, 1, -1.0]), np.array([1, -1, 1, -1.0])
    state, goals = environment._state, environment._goals
    environment._state = environment._measured = replace(
        state,
        position=state.position * flip,
        orientation=state.orientation * quaternion,
        linear_velocity=state.linear_velocity * flip,
        angular_velocity=state.angular_velocity * turn,
        joint_angles=GO2.mirror_joints(state.joint_angles),
        joint_velocities=GO2.mirror_joints(state.joint_velocities),
    )
    environment._goals = replace(
        goals, position=goals.position * flip, angles=goals.angles * turn, posture=GO2.mirror_joints(goals.posture)
    )
    environment._action = GO2.mirror_joints(environment._action)


def test_tracking_is_rewarded_where_an_episode_follows_a_clip_and_nowhere_else(library):
    environment = make(library, count=64, reference_start=0.5, ranges=KeyframeRanges(random_share=(0.5, 0.5)))
    follows = environment._follows.copy()
    assert 0 < follows.sum() < 64
    earned = environment.step(np.zeros((64, 12), dtype=np.float32)).rewards["tracking"]
    assert np.array_equal(np.isnan(earned), ~follows)


def test_a_robot_that_is_its_clip_tracks_it_perfectly(library):
    environment = make(library, count=16, reference_start=1.0)
    ids = np.arange(16)
    clip = environment._clip_state(ids, environment._frame + 7)
    environment._state, environment._now = clip, environment._now + 7
    assert np.allclose(tracking_reward(environment._control_step(clip, environment._action)), 1.0)
    environment._state = replace(clip, position=clip.position + np.array([0.0, 0.0, 0.2]))
    assert np.allclose(tracking_reward(environment._control_step(clip, environment._action)), 0.8, atol=1e-3)


def test_standing_still_is_rewarded_after_the_last_keyframe_alone(library):
    environment = make(library, count=32, reference_start=0.0, tail_steps=(60, 60), ranges=KeyframeRanges(count=(1, 1)))
    environment._end[:] = environment._last + 60  # all from the start on
    stance = np.zeros((32, 12), dtype=np.float32)
    for _ in range(90):
        before = environment._now < environment._last
        earned = environment.step(stance).rewards["stillness"]
        assert np.array_equal(np.isnan(earned), before)
    assert np.nanmean(earned) > 0.95


def test_pace_counts_until_the_last_keyframe_is_due(library):
    environment = make(library, count=32, reference_start=0.0)
    stance = np.zeros((32, 12), dtype=np.float32)
    for _ in range(90):
        ahead = environment._now < environment._last
        earned = environment.step(stance).rewards["pace"]
        assert np.array_equal(~np.isnan(earned), ahead)


def test_pace_is_earned_by_moving_towards_the_next_keyframe(library):
    ranges = KeyframeRanges(random_share=(1.0, 1.0))
    environment = make(library, count=32, reference_start=0.0, ranges=ranges)
    step = environment._control_step(environment._state, environment._action)
    left = step.goals.position[:, 0] - step.state.position
    distance, seconds = np.linalg.norm(left[:, :2], axis=1), (step.goals.step[:, 0] - step.now) * 0.02
    towards = left * (np.minimum(distance / seconds, FASTEST_PACE) / distance)[:, None]
    walking = replace(step, state=replace(step.state, linear_velocity=towards))
    away = replace(step, state=replace(step.state, linear_velocity=-towards))
    assert pace_reward(walking) == pytest.approx(np.ones(32), abs=1e-6)
    assert np.all(pace_reward(step) < 0.6)
    assert np.all(pace_reward(away) < pace_reward(step))


def test_a_turn_is_earned_by_its_rate_about_the_vertical(library):
    """A robot on its side turns about the vertical by turning about another of its axes."""
    environment = make(library, count=2, goals="pose", reference_start=0.0)
    step = environment._control_step(environment._state, environment._action)
    presence = np.zeros_like(step.goals.presence)
    presence[:, 0, 3] = True
    goals = replace(
        step.goals, presence=presence, step=np.full_like(step.goals.step, 50), angles=np.zeros_like(step.goals.angles)
    )
    goals.angles[..., 2] = 0.5
    on_side = np.tile([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0], (2, 1))  # rolled by 90 degrees: its y axis points up
    rates = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 0.5]])
    state = replace(step.state, orientation=on_side, angular_velocity=rates)
    earned = pace_reward(replace(step, goals=goals, now=np.zeros(2, dtype=np.int64), state=state))
    assert earned[0] == pytest.approx(1.0)
    assert earned[1] < 0.6


def test_the_curriculum_moves_to_another_number_of_robots(library):
    small, large = make(library, count=8), make(library, count=32)
    for _ in range(50):
        small.progress(10**7, {"kernel_error/position": 0.1})
    large.set_curriculum(small.curriculum())
    assert large.progress(10**7, {})["width/position"] == small.progress(10**7, {})["width/position"] < 0.79


def test_widths_may_become_narrower_than_the_papers(library):
    environment = make(library, goal_widths=GoalWidths(narrowest=0.5, follow=1.0))
    for _ in range(500):
        moved = environment.progress(0, {"kernel_error/position": 0.01})
    assert moved["width/position"] == pytest.approx(0.1)
