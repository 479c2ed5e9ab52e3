"""A deployment on a simulated robot, in one process and without real time."""

import numpy as np
import pytest

from keystride.deploy.players import TrotStub
from keystride.deploy.safety import DeployState, Event
from keystride.deploy.sim.rehearsal import Rehearsal, WalkStatistics, rehearse
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

SCRIPT = Script(keyframes=(Keyframe(time=0.4, position=(0.1, 0.0)),))


def standing(seed: int = 0) -> Rehearsal:
    rehearsal = rehearse(GO2, TrotStub(GO2), SCRIPT, posture="standing", seed=seed)
    rehearsal.advance(0.1)
    rehearsal.deployment.ask(Event.STAND)
    rehearsal.advance(0.2)
    return rehearsal


def test_the_same_seed_gives_the_same_rehearsal():
    one, same, other = standing(), standing(), standing(seed=1)
    np.testing.assert_array_equal(one.world.data.qpos, same.world.data.qpos)
    assert (one.world.data.qpos != other.world.data.qpos).any()  # the noise of its sensors differs
    assert one.now == pytest.approx(0.3)


def test_waiting_for_a_state_ends_when_its_time_is_over():
    rehearsal = standing()
    before = rehearsal.now
    assert not rehearsal.until(DeployState.RUNNING, 0.1)  # nobody has pressed start
    assert rehearsal.now == pytest.approx(before + 0.1, abs=0.004)


def test_the_walk_is_measured_only_while_the_script_runs():
    rehearsal = standing()
    walk = WalkStatistics(rehearsal)
    walk.update()
    assert (walk.walked, walk.drift, walk.drift_per_metre) == (0.0, 0.0, 0.0)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.deployment.ask(Event.START)
    assert rehearsal.until(DeployState.RUNNING, 1.0)
    begin = rehearsal.world.data.qpos[:2].copy()
    walk.update()
    while rehearsal.deployment.safety.state is DeployState.RUNNING:
        rehearsal.step()
        end = rehearsal.world.data.qpos[:2].copy()
        walk.update()
    assert walk.walked >= np.linalg.norm(end - begin) - 0.01  # a path is no shorter than its chord
    assert 0.0 < walk.mean_speed <= walk.peak_speed
