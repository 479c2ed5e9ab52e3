import os
import pty
import select
import signal
import termios
import time
import tty

import pytest

from keystride.deploy.operator import (
    PENDING_MESSAGES,
    Console,
    Operator,
    press,
    pressed_keys,
    single_keys,
    stop_signals,
)
from keystride.deploy.sim.rehearsal import Rehearsal, rehearse
from keystride.deploy.states import DeployState, Event
from keystride.deploy.stub import TrotStub
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2


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
