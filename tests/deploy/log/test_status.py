"""The lines that a watching program reads, and that nothing waits for it."""

import json
import os
import time
from collections.abc import Iterator
from math import pi

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.fault_checks import DeployState, Event
from keystride.deploy.log.status import StatusStream, in_script_frame
from keystride.deploy.players import STUBS
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.sim.rehearsal import Rehearsal, rehearse
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

WALK = Script(keyframes=(Keyframe(time=1.0, position=(0.3, 0.0)),))


@pytest.fixture
def rehearsal() -> Rehearsal:
    return rehearse(GO2, STUBS["STUB-TROT"](GO2), WALK, posture="standing")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        os.close(descriptor)


def test_a_pose_is_seen_from_the_ground_under_the_start():
    quarter = geometry.from_yaw(np.array(pi / 2))
    start = BaseState(np.array([1.0, 2.0, 0.3]), quarter, np.zeros(3), np.zeros(3))
    ahead = BaseState(np.array([1.0, 2.5, 0.25]), quarter, np.zeros(3), np.zeros(3))
    position, orientation = in_script_frame(start, ahead)
    np.testing.assert_allclose(position, [0.5, 0.0, 0.25], atol=1e-12)  # y of the room is ahead of this robot
    np.testing.assert_allclose(orientation, [1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_lines_tell_state_link_battery_and_pose(rehearsal: Rehearsal, pipe: tuple[int, int]):
    deployment, stream = rehearsal.deployment, StatusStream(pipe[1])
    lines = []
    deployment.ask(Event.STAND)
    while deployment.safety.state is not DeployState.DAMPING:
        rehearsal.step()
        if rehearsal.tick % 25 == 0:
            stream._write(stream._line(deployment, rehearsal.now))
            lines += [json.loads(line) for line in os.read(pipe[0], 65536).splitlines()]
        if deployment.safety.state is DeployState.READY and rehearsal.tick % 100 == 0:
            deployment.ask(Event.START)
    states = list(dict.fromkeys(line["state"] for line in lines))
    assert states == ["standing up", "ready", "running", "stopping"]
    assert all(line["battery"] == 90 and line["state_age"] < 0.1 for line in lines)
    ready, running = ([line for line in lines if line["state"] == state] for state in ("ready", "running"))
    np.testing.assert_allclose([line["position"][:2] for line in ready], 0.0)  # the script begins where it stands
    away = float(np.hypot(*running[-1]["position"][:2]))
    true = float(np.linalg.norm(rehearsal.world.data.qpos[:2]))
    assert away == pytest.approx(true, abs=0.1)
    assert away > 0.15
    assert lines[-1]["keyframes"] == 1
    assert len(lines[0]["joints"]) == 12


def test_a_reader_that_does_not_read_or_is_gone_holds_nothing_up(rehearsal: Rehearsal):
    read, write = os.pipe()
    stream = StatusStream(write)
    for _ in range(5000):  # far more than a pipe holds
        stream._write({"state": "running", "joints": [0.0] * 12})
    os.close(read)
    stream._write({"state": "running"})
    os.close(write)


def test_without_a_descriptor_nothing_runs(rehearsal: Rehearsal):
    with StatusStream(None).follow(rehearsal.deployment):
        pass


def test_lines_come_by_themselves_while_followed(rehearsal: Rehearsal, pipe: tuple[int, int]):
    rehearsal.step()
    with StatusStream(pipe[1]).follow(rehearsal.deployment):
        until, text = time.monotonic() + 60.0, b""
        while text.count(b"\n") < 3 and time.monotonic() < until:
            text += os.read(pipe[0], 4096)
    assert [json.loads(line)["state"] for line in text.splitlines()[:3]] == ["idle"] * 3
