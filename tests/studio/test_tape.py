"""A tape grows, is cut, and gives back what was put on it."""

from dataclasses import replace

import numpy as np

from keystride.physics.cpu import CpuSimulator
from keystride.physics.simulator import State
from keystride.robot.go2 import GO2
from keystride.studio.tape import Tape


def states(count: int) -> list[State]:
    state = CpuSimulator(GO2, 1, threads=1).state()
    return [replace(state, position=np.array([[float(i), 0.0, 0.3]])) for i in range(count)]


def filled(count: int) -> Tape:
    tape = Tape()
    for i, state in enumerate(states(count)):
        tape.append(state)
        tape.choose(np.full(12, i), np.full(12, -i))
    return tape


def test_it_holds_more_than_it_was_made_for():
    tape = filled(1000)
    assert tape.last == 999
    np.testing.assert_array_equal(tape.column("position")[:, 0], np.arange(1000))
    np.testing.assert_array_equal(tape.column("joint_targets")[:, 3], np.arange(1000))
    np.testing.assert_array_equal(tape.column("action")[:, 3], -np.arange(1000))


def test_after_a_cut_it_goes_on_from_there():
    tape = filled(10)
    tape.cut(4)
    assert tape.last == 4
    tape.append(states(1)[0])
    np.testing.assert_array_equal(tape.column("position")[:, 0], [0, 1, 2, 3, 4, 0])
    assert not tape.column("joint_targets")[5].any()


def test_poses_beyond_the_end_are_the_last():
    assert filled(10).pose(500).position[0] == 9.0


def test_a_trace_has_one_target_fewer_than_states():
    trace = filled(10).trace()
    assert trace.position.shape == (10, 1, 3)
    assert trace.joint_targets.shape == (9, 1, 12)
