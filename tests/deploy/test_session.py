"""Keys, signals and terminals, and threads in real time against the simulated robot in this process, without a network."""

import os
import pty
import select
import signal
import termios
import threading
import time
import tty
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from keystride.deploy.clock import Ticker
from keystride.deploy.fault_checks import DeployState, Event
from keystride.deploy.guard import Guards
from keystride.deploy.players import TrotStub
from keystride.deploy.session import (
    PENDING_MESSAGES,
    Console,
    DeploySession,
    Operator,
    press,
    pressed_keys,
    single_keys,
    stop_signals,
)
from keystride.deploy.sim.rehearsal import DirectLink, Rehearsal, rehearse
from keystride.deploy.sim.robot import SimulatedGo2
from keystride.deploy.unitree.codec import encode_state
from keystride.deploy.unitree.wire_format import Record
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

from .test_guard import started_guard


@pytest.fixture
def rehearsal() -> Rehearsal:
    return rehearse(GO2, TrotStub(GO2), Script(keyframes=(Keyframe(time=1.0, position=(0.2, 0.0)),)))


@pytest.mark.parametrize(("key", "event"), [("\n", Event.START), ("\r", Event.START), ("s", Event.STOP)])
def test_keys_that_ask(rehearsal, key, event):
    press(rehearsal.deployment, key)
    assert rehearsal.deployment.asks.get() is event
    assert rehearsal.deployment.emergency is None


@pytest.mark.parametrize("key", [" ", "q", "\x1b", "S", "ö"])
def test_every_other_key_is_the_emergency_stop(rehearsal, key):
    press(rehearsal.deployment, key)
    assert rehearsal.deployment.emergency == "key"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP"])
def test_signals_are_emergency_stops_and_come_back_afterwards(rehearsal, name):
    before = signal.getsignal(signal.Signals[name])
    with stop_signals(rehearsal.deployment):
        os.kill(os.getpid(), signal.Signals[name])
        assert rehearsal.deployment.emergency == name
    assert signal.getsignal(signal.Signals[name]) is before


def test_it_starts_by_itself_after_standing_for_a_while(rehearsal):
    operator, deployment = Operator(0.5, terminal=None), rehearsal.deployment
    deployment.ask(Event.STAND)
    assert rehearsal.until(DeployState.READY, 5.0)
    for now in (0.0, 0.4):
        operator.poll(deployment, now)
        assert deployment.asks.empty()
    operator.poll(deployment, 0.6)
    assert deployment.asks.get() is Event.START
    operator.poll(deployment, 0.7)  # not again at once, should it be refused
    assert deployment.asks.empty()


def test_without_being_told_it_does_not_start(rehearsal):
    deployment = rehearsal.deployment
    deployment.ask(Event.STAND)
    rehearsal.until(DeployState.READY, 5.0)
    operator = Operator(terminal=None)
    operator.poll(deployment, 0.0)
    operator.poll(deployment, 100.0)
    assert deployment.asks.empty()


def test_keys_typed_at_once_are_all_heard():
    outside, inside = pty.openpty()
    tty.setcbreak(inside)
    assert pressed_keys(inside) == ""
    os.write(outside, b"s q")
    assert select.select([inside], [], [], 5.0)[0]
    assert pressed_keys(inside) == "s q"
    os.close(outside)
    os.close(inside)


def test_control_keys_are_keys_and_the_terminal_is_put_back():
    outside, inside = pty.openpty()
    before = termios.tcgetattr(inside)
    with single_keys(inside):
        os.write(outside, b"\x03\x1a\x13\x11\x1c\x16")  # Ctrl-C, -Z, -S, -Q, -\, -V
        assert select.select([inside], [], [], 5.0)[0]
        assert pressed_keys(inside) == "\x03\x1a\x13\x11\x1c\x16"
    assert termios.tcgetattr(inside) == before
    os.close(outside)
    os.close(inside)


def test_a_terminal_that_is_gone_is_an_emergency(rehearsal):
    outside, inside = pty.openpty()
    operator = Operator(terminal=inside)
    with single_keys(inside):
        operator.poll(rehearsal.deployment, 0.0)
        assert rehearsal.deployment.emergency is None
        os.close(outside)
        operator.poll(rehearsal.deployment, 0.1)
    assert rehearsal.deployment.emergency == "terminal lost"
    operator.poll(rehearsal.deployment, 0.2)  # and it is not looked at again
    os.close(inside)


def test_a_frozen_terminal_does_not_hold_anything_up():
    outside, inside = pty.openpty()
    termios.tcflow(inside, termios.TCOOFF)
    os.set_blocking(inside, False)
    with single_keys(inside):
        os.write(outside, b" ")
        assert select.select([inside], [], [], 5.0)[0]
        assert pressed_keys(inside) == " "
    os.close(outside)
    os.close(inside)


def test_lines_come_out_in_order():
    read, write = os.pipe()
    console = Console(write)
    for number in range(5):
        console.say(f"line {number}")
    console.close(30.0)
    assert os.read(read, 4096).decode().splitlines() == [f"line {number}" for number in range(5)]
    os.close(read)
    os.close(write)


def test_a_reader_that_has_gone_raises_nothing():
    read, write = os.pipe()
    os.close(read)
    console = Console(write)
    console.say("into the void")
    console.say("again")
    console.close(30.0)
    assert console.lost == 2
    os.close(write)


def test_a_terminal_that_is_closed_raises_nothing():
    outside, inside = pty.openpty()
    os.close(outside)
    console = Console(inside)
    console.say("into the void")
    console.close(30.0)
    assert console.lost == 1
    os.close(inside)


def test_a_frozen_terminal_does_not_block():
    """More than the queue holds: what does not fit is counted, and nobody waits."""
    outside, inside = pty.openpty()
    termios.tcflow(inside, termios.TCOOFF)
    console = Console(inside)
    for _ in range(2 * PENDING_MESSAGES):
        console.say("x" * 100)
    assert console.lost >= PENDING_MESSAGES - 2
    console.close(0.1)
    termios.tcflow(inside, termios.TCOON)
    until = time.monotonic() + 30.0
    while not console._messages.empty() and time.monotonic() < until:
        os.read(outside, 65536)
    os.close(outside)
    os.close(inside)


SCRIPT = Script(keyframes=(Keyframe(time=0.5, position=(0.0, 0.0)),))


@pytest.fixture
def stage() -> Iterator[Rehearsal]:
    """A robot that lies, and lives in real time."""
    stage = rehearse(GO2, TrotStub(GO2), SCRIPT)
    patient = replace(
        stage.deployment.safety.limits, state_age=3.0, state_interval=3.0, pose_age=3.0, command_gap=3.0, policy_age=1.0
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


def once_it_stands_up(stage: Rehearsal, act: Callable[[], object]) -> None:
    """Do something from another thread when the robot has begun to stand up."""

    def wait() -> None:
        while "idle -> standing up" not in stage.events:
            time.sleep(0.005)
        act()

    threading.Thread(target=wait, daemon=True).start()


def test_a_key_ends_it_while_the_robot_stands_up(stage):
    outside, inside = pty.openpty()
    once_it_stands_up(stage, lambda: os.write(outside, b" "))
    outcome = DeploySession(stage.deployment, Operator(0.0, inside), 0.05).run()
    assert outcome.state is DeployState.DAMPING
    assert outcome.reason == "emergency stop"
    assert stage.deployment.emergency == "key"
    assert outcome.stream.ticks >= stage.deployment.commands_sent > 0
    os.close(outside)
    os.close(inside)


class FailingLink(DirectLink):
    """A network that fails for some commands once 20 have passed."""

    failures = 3

    def __init__(self, robot: SimulatedGo2) -> None:
        super().__init__(robot)
        self.tried: list[bool] = []  # whether each command was a brake

    def send(self, command: Record) -> None:
        motors = command["motor_cmd"][:12]
        self.tried.append(not motors["kp"].any() and bool(motors["kd"].all()))
        if 20 <= len(self.tried) < 20 + self.failures:
            raise ConnectionError("gone")
        super().send(command)


def test_a_stream_that_fails_is_followed_by_brakes_however_often_these_fail(stage):
    link = FailingLink(stage.world)
    stage.deployment.link = stage.link = link
    outcome = run(stage, settle=0.3)
    assert "gone" in outcome.reason
    assert len(link.tried) > 50
    assert all(link.tried[20:])
    assert outcome.damped


class FailingPlayer(TrotStub):
    def step(self, state, goals, step):
        raise ZeroDivisionError("thought too hard")


def test_a_policy_that_raises_is_told_and_the_stream_goes_on(stage):
    stage.deployment.player = FailingPlayer(GO2)
    outcome = run(stage)
    assert outcome.reason == "policy too late"
    assert any("thought too hard" in event for event in stage.events)
    changes = [event for event in stage.events if " -> " in event]
    assert changes[-2:] == ["running -> stopping: policy too late", "stopping -> damping: policy too late"]


def test_a_guard_that_is_killed_is_an_emergency(stage):
    guard = started_guard(1e6)
    stage.deployment.heartbeat = Guards([guard]).beat
    once_it_stands_up(stage, lambda: os.kill(guard.pid, signal.SIGKILL))
    assert run(stage).reason == "emergency stop"
    assert stage.deployment.emergency == "guard process lost"
    guard.dismiss(safe=True)


def test_an_error_at_the_operators_side_is_an_emergency_too(stage):
    class Broken(Operator):
        def poll(self, deployment, now):
            raise OSError("terminal gone")

    with pytest.raises(OSError, match="terminal gone"):
        DeploySession(stage.deployment, Broken(), 0.1).run()
    assert stage.deployment.safety.state is DeployState.DAMPING
    assert stage.deployment.emergency == "program error"


class WarningPlayer(TrotStub):
    def step(self, state, goals, step):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return super().step(state, goals, step)


def test_a_warning_is_not_printed_by_the_threads_that_control_the_robot(stage, recwarn):
    stage.deployment.player = WarningPlayer(GO2)
    assert run(stage).played
    assert len(recwarn) == 0


def test_a_motion_service_is_noticed_after_questions_that_failed(stage):
    answers = iter([ConnectionError("no answer"), ConnectionError("no answer"), "normal"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    outcome = DeploySession(stage.deployment, Operator(), 0.05, ask).run()
    assert outcome.reason == "motion service active again"


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


def once_it_is_unknown(stage: Rehearsal, act: Callable[[], object]) -> None:
    def wait() -> None:
        while not any(event.startswith("the robot's state is unknown") for event in stage.events):
            time.sleep(0.005)
        act()

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize("give_up", ["key", "signal"])
def test_a_robot_that_does_not_obey_the_brake_is_braked_until_the_operator_gives_up(stage, give_up):
    outside, inside = pty.openpty()
    once_it_stands_up(stage, lambda: (time.sleep(1.0), setattr(stage.link, "deaf", True), os.write(outside, b"q")))
    sent: list[int] = []

    def act() -> None:
        sent.append(stage.deployment.commands_sent)
        os.write(outside, b" ")  # neither does a key that is pressed in panic
        time.sleep(0.3)
        sent.append(stage.deployment.commands_sent)
        os.write(outside, b"q") if give_up == "key" else os.kill(os.getpid(), signal.SIGTERM)

    once_it_is_unknown(stage, act)
    outcome = DeploySession(stage.deployment, Operator(0.0, inside), 0.05).run()
    assert sent[1] > sent[0]
    assert not outcome.damped
    assert not outcome.played
    assert stage.world.stiffness.any()
    os.close(outside)
    os.close(inside)


def test_a_robot_that_obeys_again_ends_the_braking(stage):
    once_it_stands_up(stage, lambda: (time.sleep(1.0), setattr(stage.link, "deaf", True)))
    once_it_is_unknown(stage, lambda: setattr(stage.link, "deaf", False))
    outcome = run(stage)
    assert outcome.reason in ("motors do not obey", "joints do not follow")
    assert outcome.damped
    assert not stage.world.stiffness.any()


def test_without_a_terminal_a_robot_that_stays_silent_is_given_up_after_a_while(stage):
    once_it_stands_up(stage, lambda: (time.sleep(1.0), setattr(stage.link, "deaf", True)))
    outcome = DeploySession(stage.deployment, Operator(0.0, None), 0.05, abandoned=0.5).run()
    assert not outcome.damped
    assert any(event.startswith("the robot's state is unknown") for event in stage.events)
