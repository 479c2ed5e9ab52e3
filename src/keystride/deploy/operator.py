"""The person at the machine: keys, signals, and a start without one. The remote's buttons come with the low states."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

from keystride.deploy.control import Deployment
from keystride.deploy.states import Event, State

KEYS_HELP = "Enter starts, s stops and lies down, any other key (or Ctrl-C) is the emergency stop"
START_KEYS, STOP_KEYS = "\r\n", "s"


@dataclass
class Operator:
    start_after: float | None = None  # s of standing, then start without a key
    _ready_since: float | None = field(default=None, init=False)

    def attend(self, deployment: Deployment, now: float) -> None:
        """Called often while the deployment runs."""
        self._start_by_itself(deployment, now)
        for key in pressed_keys(sys.stdin.fileno()) if sys.stdin.isatty() else "":
            press(deployment, key)

    def _start_by_itself(self, deployment: Deployment, now: float) -> None:
        if deployment.safety.state is not State.READY or self.start_after is None:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = now
        elif now - self._ready_since >= self.start_after:
            self._ready_since = now + 1.0  # should it be refused, not at once again
            deployment.ask(Event.START)


def press(deployment: Deployment, key: str) -> None:
    if key in START_KEYS:
        deployment.ask(Event.START)
    elif key in STOP_KEYS:
        deployment.ask(Event.STOP)
    else:
        deployment.emergency = deployment.emergency or "key"


def pressed_keys(terminal: int) -> str:
    """All that has been typed, without waiting. Not through sys.stdin, whose buffer would keep keys back."""
    if not select.select([terminal], [], [], 0.0)[0]:
        return ""
    return os.read(terminal, 256).decode(errors="replace")


@contextlib.contextmanager
def single_keys() -> Iterator[None]:
    """Keys arrive one by one, without Enter, and are not shown."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextlib.contextmanager
def signals_stop(deployment: Deployment) -> Iterator[None]:
    """Ctrl-C, a request to terminate and a lost terminal are emergency stops, not the end of the program."""

    def stop(number: int, frame: FrameType | None) -> None:
        deployment.emergency = deployment.emergency or signal.Signals(number).name

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
