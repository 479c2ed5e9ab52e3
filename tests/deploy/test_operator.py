import os
import pty
import select
import signal
import tty

import pytest

from keystride.deploy.operator import Operator, press, pressed_keys, signals_stop
from keystride.deploy.rehearsal import Rehearsal, rehearse
from keystride.deploy.states import Event, State
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


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_are_emergency_stops_and_come_back_afterwards(rehearsal, name):
    before = signal.getsignal(signal.Signals[name])
    with signals_stop(rehearsal.deployment):
        os.kill(os.getpid(), signal.Signals[name])
        assert rehearsal.deployment.emergency == name
    assert signal.getsignal(signal.Signals[name]) is before


def test_it_starts_by_itself_after_standing_for_a_while(rehearsal):
    operator, deployment = Operator(start_after=0.5), rehearsal.deployment
    deployment.ask(Event.STAND)
    assert rehearsal.until(State.READY, 5.0)
    for now in (0.0, 0.4):
        operator.attend(deployment, now)
        assert deployment.asks.empty()
    operator.attend(deployment, 0.6)
    assert deployment.asks.get() is Event.START
    operator.attend(deployment, 0.7)  # not again at once, should it be refused
    assert deployment.asks.empty()


def test_without_being_told_it_does_not_start(rehearsal):
    deployment = rehearsal.deployment
    deployment.ask(Event.STAND)
    rehearsal.until(State.READY, 5.0)
    operator = Operator()
    operator.attend(deployment, 0.0)
    operator.attend(deployment, 100.0)
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
