"""The person at the machine: keys, signals, and a start without one. The remote's buttons come with the low states."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

from keystride.deploy.deployment import Deployment
from keystride.deploy.states import Event, State

KEYS_HELP = "Enter starts, s stops and lies down, any other key is the emergency stop: damping at once"
START_KEYS, STOP_KEYS = "\r\n", "s"


def keyboard() -> int | None:
    """Return the file descriptor of the terminal that keys come from; None without one."""
    try:
        return sys.stdin.fileno() if sys.stdin.isatty() else None
    except (OSError, ValueError):  # closed, or not a file
        return None


@dataclass
class Operator:
    start_after: float | None = None  # s of standing, then start without a key
    terminal: int | None = field(default_factory=keyboard)
    _ready_since: float | None = field(default=None, init=False)

    def attend(self, deployment: Deployment, now: float) -> None:
        """Look for keys; called often while the deployment runs."""
        self._start_by_itself(deployment, now)
        if self.terminal is None:
            return
        keys = pressed_keys(self.terminal)
        if keys is None:
            self.terminal = None
            deployment.emergency = deployment.emergency or "terminal lost"
        for key in keys or "":
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


def pressed_keys(terminal: int) -> str | None:
    """Return all that has been typed, without waiting; None when the terminal is gone.

    Not through sys.stdin, whose buffer would keep keys back.
    """
    try:
        if not select.select([terminal], [], [], 0.0)[0]:
            return ""
        data = os.read(terminal, 256)
    except (OSError, ValueError):
        return None
    return data.decode(errors="replace") or None


@contextlib.contextmanager
def single_keys(terminal: int | None) -> Iterator[None]:
    """Let keys arrive one by one, without Enter and unseen, and Ctrl-C, Ctrl-Z, Ctrl-S and the like as keys too.

    Nothing here waits for the terminal to print what is pending: a frozen one never would.
    """
    if terminal is None:
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(terminal)
    with contextlib.suppress(termios.error):
        tty.setcbreak(terminal, termios.TCSANOW)
        mode = termios.tcgetattr(terminal)
        mode[tty.IFLAG] &= ~(termios.IXON | termios.IXOFF | termios.INLCR | termios.IGNCR)
        mode[tty.LFLAG] &= ~(termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # it may be gone
            termios.tcsetattr(terminal, termios.TCSANOW, before)


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
IGNORED_SIGNALS = (
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGPIPE,
)  # would stop or end the process for its terminal's sake


@contextlib.contextmanager
def stop_signals(deployment: Deployment) -> Iterator[None]:
    """Make Ctrl-C, a request to terminate or stop, and a lost terminal emergency stops, not the end of the program."""

    def stop(number: int, frame: FrameType | None) -> None:
        deployment.emergency = deployment.emergency or signal.Signals(number).name

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
