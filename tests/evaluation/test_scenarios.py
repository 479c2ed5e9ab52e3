import numpy as np
import pytest

from keystride import geometry
from keystride.evaluation.scenarios import (
    ANTICIPATION_SCENARIOS,
    MATCHING_SCENARIOS,
    TIMINGS,
    TRAJECTORIES,
    poses_of_clip,
)
from keystride.keyframes.goals import Goals, used
from keystride.motion.clip import make_clip
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, standing_height


def feet_above_ground(goals: Goals) -> np.ndarray:
    """(K, 4) m"""
    feet = feet_from_joints(GO2, goals.posture[0])
    world = geometry.rotate(geometry.from_roll_pitch_yaw(goals.angles[0])[:, None], feet) + goals.position[0, :, None]
    return world[..., 2] - GO2.foot_radius


def take(name: str) -> Goals:
    return next(one for one in MATCHING_SCENARIOS if one.name == name).goals(GO2, 2)


def test_the_papers_position_scenarios_in_our_axes() -> None:
    straight, turn, slow = (scenario.goals(GO2, 1) for scenario in ANTICIPATION_SCENARIOS)
    assert [goals.step[0].tolist() for goals in (straight, turn, slow)] == [[50, 75], [50, 75], [50, 100]]
    for goals in (straight, turn, slow):
        assert goals.position[0, 0].tolist() == [1.0, 0.0, 0.32]
        assert goals.presence[0].tolist() == [[True, False, False, False, False]] * 2
    assert straight.position[0, 1].tolist() == [2.0, 0.0, 0.32]
    assert turn.position[0, 1].tolist() == slow.position[0, 1].tolist() == [1.5, 1.0, 0.32]


def test_the_walk_moves_forward_on_the_ground() -> None:
    goals = take("walk")
    assert 0.3 < goals.position[0, 0, 0] < goals.position[0, 1, 0]
    assert np.abs(feet_above_ground(goals).min(axis=1)).max() < 0.01


def test_the_jump_is_in_the_air_and_then_stands() -> None:
    goals = take("jump")
    above = feet_above_ground(goals)
    assert above[0].min() > 0.15
    assert goals.position[0, 0, 2] > 0.48
    assert np.abs(above[1]).max() < 0.01
    assert goals.position[0, 1, 2] == pytest.approx(float(standing_height(GO2, GO2.stance)), abs=0.01)


def test_paw_up_raises_one_front_foot_alone() -> None:
    above = feet_above_ground(take("paw up"))[0]
    assert sorted(above > 0.15) == [False, False, False, True]
    assert above[:2].max() > 0.15


def test_intervals_are_those_of_training() -> None:
    for goals in [take(one.name) for one in MATCHING_SCENARIOS] + [one.goals(GO2, 1) for one in TRAJECTORIES]:
        steps = np.diff(goals.step[0], prepend=0)
        assert steps.min() >= 25
        assert steps.max() <= 50
        assert used(goals).all()


def test_one_goal_several_times() -> None:
    goals = [one.goals(GO2, 1) for one in TIMINGS]
    assert len({float(g.step[0, 0]) for g in goals}) == len(goals)
    assert all(np.array_equal(g.position, goals[0].position) for g in goals)


def test_poses_of_a_clip_are_seen_from_its_start_frame() -> None:
    """A robot that starts at (5, 1) facing y and walks 2 m ahead, then is 2 m ahead of the start."""
    frames = 101
    position = np.tile([5.0, 1.0, 0.3], (frames, 1))
    position[:, 1] += np.linspace(0.0, 2.0, frames)
    orientation = np.tile(geometry.from_yaw(np.array(np.pi / 2)), (frames, 1))
    clip = make_clip("walk", GO2, position, orientation, np.tile(GO2.stance, (frames, 1)))
    goals = poses_of_clip(clip, 0, (50, 100))
    assert goals.step[0].tolist() == [50, 100]
    assert np.allclose(goals.position[0], [[1.0, 0.0, 0.3], [2.0, 0.0, 0.3]])
    assert np.allclose(goals.angles[0], 0.0)
