from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.pose.monitor import PoseMonitor
from keystride.deploy.pose.source import Pose

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def turned(yaw: float = 0.0, roll: float = 0.0):
    return geometry.from_roll_pitch_yaw(np.radians(np.array([roll, 0.0, yaw])))


def judge(steps, monitor: PoseMonitor | None = None) -> list[str]:
    """What is said of poses 8 ms apart; each step gives pose and odometry as (x, yaw in degrees, roll in degrees)."""
    monitor, said = monitor or PoseMonitor(), []
    for number, ((x, yaw, roll), (felt_x, felt_yaw, felt_roll)) in enumerate(steps):
        felt: Any = SimpleNamespace(position=np.array([felt_x, 0.0, 0.3]), orientation=turned(felt_yaw, felt_roll))
        said.append(monitor.contradiction(0.008 * number, Pose(np.array([x, 0.0, 0.3]), turned(yaw, roll)), felt))
    return said


def test_a_pose_that_agrees_is_believed():
    walk = [((0.004 * n, 0.2 * n, 1.0), (0.004 * n, 0.2 * n, 0.0)) for n in range(500)]
    assert set(judge(walk)) == {""}


def test_where_it_begins_and_which_way_it_looks_does_not_matter():
    heading = np.radians(90.0)
    monitor = PoseMonitor()
    for n in range(300):
        felt: Any = SimpleNamespace(position=np.array([0.004 * n, 0.0, 0.3]), orientation=LEVEL)
        pose = Pose(np.array([5.0, 2.0 + 0.004 * n, 0.3]), geometry.from_yaw(np.asarray(heading)))
        assert monitor.contradiction(0.008 * n, pose, felt) == ""


def test_the_slow_drift_of_odometry_and_imu_is_no_contradiction():
    """0.05 m/s and half a degree per second, for a minute."""
    walk = [((0.003 * n, 0.1, 0.0), (0.0034 * n, 0.1 + 0.004 * n, 0.0)) for n in range(7500)]
    assert set(judge(walk)) == {""}


@pytest.mark.parametrize(
    ("lie", "word"),
    [
        (lambda n: (0.004 * n, 180.0, 0.0), "heading"),
        (lambda n: (0.004 * n, 0.4 * n, 0.0), "heading"),  # 50 degrees per second
        (lambda n: (0.4, 0.0, 0.0), "position"),  # frozen after 0.8 s
        (lambda n: (0.4 + 0.008 * (n - 100), 0.0, 0.0), "position"),  # twice as fast as the legs
        (lambda n: (0.004 * n + 1.0, 0.0, 0.0), "position"),
        (lambda n: (0.004 * n, 0.0, 25.0), "tilt"),
    ],
    ids=["flipped", "spins", "frozen", "drifts", "jumps", "tilted"],
)
def test_a_lie_is_noticed(lie, word):
    truth = [((0.004 * n, 0.0, 0.0), (0.004 * n, 0.0, 0.0)) for n in range(100)]
    lies = [(lie(n), (0.004 * n, 0.0, 0.0)) for n in range(100, 350)]
    said = judge([*truth, *lies])
    assert set(said[:100]) == {""}
    assert said[-1].startswith(word)
    assert sum(1 for text in said if not text) < 100 + 90  # within 0.72 s


def test_after_a_glitch_poses_are_believed_again():
    walk = [((0.004 * n + (1.0 if 100 <= n < 112 else 0.0), 0.0, 0.0), (0.004 * n, 0.0, 0.0)) for n in range(300)]
    said = judge(walk)
    assert all(said[100:112])
    assert set(said[112:]) == {""}


def test_a_restart_believes_a_new_place():
    monitor = PoseMonitor()
    judge([((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))], monitor)
    assert judge([((3.0, 90.0, 0.0), (0.0, 0.0, 0.0))], monitor) != [""]
    monitor.restart()
    assert judge([((3.0, 90.0, 0.0), (0.0, 0.0, 0.0))], monitor) == [""]
