"""Threads in real time against the simulated robot in this process, without a network."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from keystride.deploy.clock import Ticker
from keystride.deploy.operator import Operator
from keystride.deploy.session import DeploySession
from keystride.deploy.sim.rehearsal import Rehearsal, rehearse
from keystride.deploy.states import DeployState
from keystride.deploy.stub import TrotStub
from keystride.deploy.unitree.codec import encode_state
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

SCRIPT = Script(keyframes=(Keyframe(time=0.5, position=(0.0, 0.0)),))


@pytest.fixture
def stage() -> Iterator[Rehearsal]:
    """A robot that lies, and lives in real time."""
    stage = rehearse(GO2, TrotStub(GO2), SCRIPT)
    patient = replace(
        stage.deployment.safety.limits, state_age=3.0, pose_age=3.0, command_gap=3.0, policy_age=1.0
    )  # a busy machine is no fault here
    stage.deployment.safety.limits = patient

    def live(now: float) -> None:
        stage.world.step(2)
        stage.poses.receive(*stage.world.captured(), now=now)
        stage.link.states.put(encode_state(GO2, stage.world.sense(), stage.world.steps))

    life = Ticker("robot", 0.002, live, lambda error: None)
    life.start()
    assert stage.link.states.wait(5.0)
    yield stage
    life.stop()


def run(stage: Rehearsal, settle: float = 0.05):
    return DeploySession(stage.deployment, Operator(0.0), settle).run()


def test_it_ends_when_the_deployment_does(stage):
    say = stage.deployment.say

    def stop_once_it_stands_up(text: str) -> None:
        say(text)
        if text == "idle -> standing up":
            stage.deployment.emergency = "test"

    stage.deployment.say = stop_once_it_stands_up
    outcome = run(stage)
    assert outcome.state is DeployState.DAMPING
    assert outcome.reason == "emergency stop"
    assert outcome.stream.ticks >= stage.deployment.commands_sent > 0
    assert "idle -> standing up" in stage.events


def test_a_stream_that_fails_is_followed_by_brakes(stage):
    sent = []
    send = stage.link.send

    def fail_once(record) -> None:
        motors = record["motor_cmd"][:12]
        sent.append(not motors["kp"].any() and bool(motors["kd"].all()))
        if len(sent) == 20:
            raise ConnectionError("gone")
        send(record)

    stage.link.send = fail_once
    outcome = run(stage, settle=0.3)
    assert "gone" in outcome.reason
    assert len(sent) > 30
    assert all(sent[20:])


def test_a_policy_that_raises_is_told_and_the_stream_goes_on(stage):
    def broken(state, goals, step):
        raise ZeroDivisionError("thought too hard")

    stage.deployment.player.step = broken
    outcome = run(stage)
    assert outcome.reason == "policy too late"
    assert any("thought too hard" in event for event in stage.events)
    changes = [event for event in stage.events if " -> " in event]
    assert changes[-2:] == ["running -> stopping: policy too late", "stopping -> damping: policy too late"]


def test_a_guard_that_is_gone_is_an_emergency(stage):
    stage.deployment.heartbeat = lambda now: "guard process lost"
    assert run(stage).reason == "emergency stop"
    assert stage.deployment.emergency == "guard process lost"


def test_an_error_at_the_operators_side_is_an_emergency_too(stage):
    class Broken(Operator):
        def poll(self, deployment, now):
            raise OSError("terminal gone")

    with pytest.raises(OSError, match="terminal gone"):
        DeploySession(stage.deployment, Broken(), 0.1).run()
    assert stage.deployment.safety.state is DeployState.DAMPING
    assert stage.deployment.emergency == "program error"


def test_no_thread_is_left(stage):
    before = threading.active_count()
    stage.deployment.emergency = "test"
    run(stage)
    time.sleep(0.05)
    assert threading.active_count() == before


def test_a_computer_that_was_suspended_is_an_emergency(stage):
    woken = time.monotonic() + 1.0
    slept = DeploySession(
        stage.deployment,
        Operator(0.0),
        0.05,
        boot_clock=lambda: time.monotonic() + (60.0 if time.monotonic() > woken else 0.0),
    )
    assert slept.run().reason == "emergency stop"
    assert stage.deployment.emergency == "computer was suspended"
