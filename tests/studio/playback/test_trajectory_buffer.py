"""A buffer grows, is cut, and gives back what was put on it."""

from dataclasses import replace

import numpy as np

from keystride.physics.simulator import CpuSimulator, State
from keystride.robot.go2 import GO2
from keystride.studio.playback.trajectory_buffer import TrajectoryBuffer


def states(count: int) -> list[State]:
    state = CpuSimulator(GO2, 1, threads=1).state()
    return [replace(state, position=np.array([[float(i), 0.0, 0.3]])) for i in range(count)]


def filled(count: int) -> TrajectoryBuffer:
    buffer = TrajectoryBuffer()
    for i, state in enumerate(states(count)):
        buffer.append(state)
        buffer.choose(np.full(12, i), np.full(12, -i))
    return buffer


def test_it_holds_more_than_it_was_made_for():
    buffer = filled(1000)
    assert buffer.last == 999
    np.testing.assert_array_equal(buffer.column("position")[:, 0], np.arange(1000))
    np.testing.assert_array_equal(buffer.column("joint_targets")[:, 3], np.arange(1000))
    np.testing.assert_array_equal(buffer.column("action")[:, 3], -np.arange(1000))


def test_after_a_cut_it_goes_on_from_there():
    buffer = filled(10)
    buffer.cut(4)
    assert buffer.last == 4
    buffer.append(states(1)[0])
    np.testing.assert_array_equal(buffer.column("position")[:, 0], [0, 1, 2, 3, 4, 0])
    assert not buffer.column("joint_targets")[5].any()


def test_poses_beyond_the_end_are_the_last():
    assert filled(10).pose(500).position[0] == 9.0


def test_a_trace_has_one_target_fewer_than_states():
    trace = filled(10).trace()
    assert trace.position.shape == (10, 1, 3)
    assert trace.joint_targets.shape == (9, 1, 12)
