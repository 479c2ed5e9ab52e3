import numpy as np
import pytest

from keystride.evaluation.body import airborne_seconds, joint_speed_shares, motor_rows
from keystride.evaluation.episodes import NEVER, Rollout, Trace
from keystride.keyframes.goals import empty_goals
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height


def rollout(height: np.ndarray, speed: float = 0.0, fell: int = NEVER) -> Rollout:
    """One robot in its stance at heights (T,) over the ground, all joints at one speed."""
    steps = len(height)
    position = np.zeros((steps, 1, 3))
    position[:, 0, 2] = height
    joints = np.tile(GO2.stance, (steps, 1, 1))
    orientation = np.tile([1.0, 0.0, 0.0, 0.0], (steps, 1, 1))
    trace = Trace(position, orientation, joints, np.full_like(joints, speed), np.zeros_like(position), joints[1:])
    return Rollout(empty_goals(1, 1), trace, end=np.array([steps - 1]), fell=np.array([fell]))


def test_the_longest_flight_counts() -> None:
    ground = float(standing_height(GO2, GO2.stance))
    height = ground + np.array([0, 0.1, 0.1, 0, 0.1, 0.1, 0.1, 0.1, 0, 0.1])
    assert airborne_seconds(GO2, rollout(height)) == pytest.approx([0.08])
    assert airborne_seconds(GO2, rollout(height, fell=3)) == pytest.approx([0.04])
    assert airborne_seconds(GO2, rollout(np.full(9, ground + 0.005))) == pytest.approx([0.0])


def test_joint_speed_is_a_share_of_each_motors_rating() -> None:
    shares = joint_speed_shares(GO2, rollout(np.full(5, 0.3), speed=15.7))
    assert shares.max() == pytest.approx(1.0)  # the calf's
    assert shares.min() == pytest.approx(15.7 / 30.1)


def test_motor_rows_are_of_each_suite_and_of_all() -> None:
    calm, fast = rollout(np.full(1000, 0.3), 1.57), rollout(np.full(10, 0.3), 31.4)
    rows = {row.scenario: row.mean for row in motor_rows(GO2, {"calm": [calm], "fast": [fast, calm]}, "any")}
    assert list(rows) == ["calm", "fast", "all suites"]
    assert rows["calm"] == pytest.approx(0.1)
    assert rows["fast"] == pytest.approx(2.0)
    assert rows["all suites"] == pytest.approx(2.0)
