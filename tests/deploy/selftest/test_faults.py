"""Every fault of the robot's states and poses, in one process and without waiting; test_runner.py has the processes."""

import copy
import copyreg
import queue
import threading
from pathlib import Path

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.fault_checks import DeployState, Event
from keystride.deploy.players import TrotStub
from keystride.deploy.selftest.faults import (
    AT,
    CASES,
    COMES_DOWN,
    PLAYED,
    POSES,
    STATE_CASES,
    Case,
    Disturb,
    case_table,
)
from keystride.deploy.selftest.runner import UPRIGHT_COSINE, WALK_SCRIPT
from keystride.deploy.sim.rehearsal import Rehearsal, rehearse
from keystride.robot.go2 import GO2

DOCS = Path(__file__).parents[3] / "docs" / "deploy.md"
DISTURBED = [  # poses are not held back in one process: test_source.py has late ones
    case for case in (*STATE_CASES, *POSES) if isinstance(case.does, Disturb) and case.does.name != "pose_late"
]


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


copyreg.pickle(threading.Event, lambda event: (set_event, ()))
copyreg.pickle(queue.SimpleQueue, lambda waiting: (queue.SimpleQueue, ()))


@pytest.fixture(scope="module")
def walking() -> Rehearsal:
    """A robot that walks; `branch` copies it, which is faster than to have each fault's robot stand up."""
    rehearsal = rehearse(GO2, TrotStub(GO2), WALK_SCRIPT)
    rehearsal.deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    rehearsal.advance(0.1)
    rehearsal.deployment.ask(Event.START)
    rehearsal.advance(AT)
    assert rehearsal.deployment.safety.state is DeployState.RUNNING
    return rehearsal


def branch(walking: Rehearsal) -> Rehearsal:
    """Return a copy that walks on independently."""
    rehearsal = copy.deepcopy(walking)
    rehearsal.deployment.say = rehearsal.events.append
    return rehearsal


def test_copies_walk_on_as_the_original_would(walking):
    first, second = branch(walking), branch(walking)
    first.advance(0.2)
    assert np.abs(first.world.data.qpos - second.world.data.qpos).max() > 0.01
    second.advance(0.2)
    assert (first.world.data.qpos == second.world.data.qpos).all()


def test_every_row_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_documentation_has_every_row():
    assert case_table() in DOCS.read_text()


@pytest.mark.parametrize("case", DISTURBED, ids=lambda case: case.name)
def test_a_fault_has_its_expected_outcome(walking: Rehearsal, case: Case):
    rehearsal = branch(walking)
    safety = rehearsal.deployment.safety
    assert isinstance(case.does, Disturb)
    rehearsal.disturb(case.does.name, case.does.value, case.does.seconds)
    caused, upright = rehearsal.now, 1.0
    while safety.state is not DeployState.DAMPING and rehearsal.now < caused + 10.0:
        rehearsal.step()
        upright = min(upright, -geometry.projected_gravity(rehearsal.world.data.qpos[3:7])[2])
    assert safety.state is DeployState.DAMPING
    assert upright > UPRIGHT_COSINE
    assert safety.played == (case.exit_code == PLAYED)
    assert safety.reason == case.reason
    states = [event.split(" -> ")[1].split(":")[0] for event in rehearsal.events if " -> " in event]
    assert states[3:] == (["stopping", "damping"] if case.expected == COMES_DOWN or safety.played else ["damping"])
    if case.soft_within is not None:
        assert rehearsal.now - caused < case.soft_within
    assert not np.any(rehearsal.world.stiffness)
