"""The operator's side: keys and signals in, messages out. The remote's buttons arrive with the low states."""

import contextlib
import os
import queue
import select
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

from keystride.deploy.deployment import Deployment
from keystride.deploy.states import DeployState, Event

KEYS_HELP = "Enter starts, s stops and lies down, any other key is the emergency stop: damping at once"
START_KEYS, STOP_KEYS = "\r\n", "s"
PENDING_MESSAGES = 1000  # lines that may wait for a slow terminal
STDOUT = 1

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
IGNORED_SIGNALS = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE)  # stop or end a process because of its terminal


class Console:
    """Prints messages on a thread of its own.

    A terminal can be closed, stopped or gone, and a pipe can be full. None of that may delay or end the command stream,
    so `say` never blocks and never raises. Messages that cannot be written are counted and dropped.
    """

    def __init__(self, descriptor: int = STDOUT) -> None:
        self.lost = 0
        self._descriptor = descriptor
        self._messages: queue.Queue[str | None] = queue.Queue(PENDING_MESSAGES)
        self._thread = threading.Thread(target=self._write_all, name="console", daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Queue one line."""
        try:
            self._messages.put_nowait(text)
        except queue.Full:
            self.lost += 1

    def close(self, seconds: float = 1.0) -> None:
        """Wait until everything is written, but no longer than `seconds`."""
        try:
            self._messages.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _write_all(self) -> None:
        # Writes to the file descriptor: sys.stdout has a lock that the rest of the program shares, and text left in its
        # buffer when the terminal closes would change the exit code.
        while (text := self._messages.get()) is not None:
            data = (text + "\n").encode(errors="replace")
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                self.lost += 1


def keyboard() -> int | None:
    """Return the file descriptor of the terminal on standard input, or None if there is none."""
    try:
        return sys.stdin.fileno() if sys.stdin.isatty() else None
    except (OSError, ValueError):  # closed, or not a file
        return None


@dataclass
class Operator:
    start_after: float | None = None  # start without a key after standing for this many seconds
    terminal: int | None = field(default_factory=keyboard)
    _ready_since: float | None = field(default=None, init=False)

    def poll(self, deployment: Deployment, now: float) -> None:
        """Pass keys on to the deployment; call this often while it runs."""
        self._start_without_key(deployment, now)
        if self.terminal is None:
            return
        keys = pressed_keys(self.terminal)
        if keys is None:
            self.terminal = None
            deployment.emergency = deployment.emergency or "terminal lost"
        for key in keys or "":
            press(deployment, key)

    def _start_without_key(self, deployment: Deployment, now: float) -> None:
        if deployment.safety.state is not DeployState.READY or self.start_after is None:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = now
        elif now - self._ready_since >= self.start_after:
            self._ready_since = now + 1.0  # if the start is refused, try again a second later
            deployment.ask(Event.START)


def press(deployment: Deployment, key: str) -> None:
    if key in START_KEYS:
        deployment.ask(Event.START)
    elif key in STOP_KEYS:
        deployment.ask(Event.STOP)
    else:
        deployment.emergency = deployment.emergency or "key"


def pressed_keys(terminal: int) -> str | None:
    """Return everything typed since the last call, without waiting; None when the terminal is gone."""
    try:  # not sys.stdin: its buffer would hold keys back
        if not select.select([terminal], [], [], 0.0)[0]:
            return ""
        data = os.read(terminal, 256)
    except (OSError, ValueError):
        return None
    return data.decode(errors="replace") or None


@contextlib.contextmanager
def single_keys(terminal: int | None) -> Iterator[None]:
    """Deliver keys one at a time, without Enter and without echo; Ctrl-C, Ctrl-Z and Ctrl-S arrive as keys too.

    Nothing here waits for pending output to be printed: on a frozen terminal it never would be.
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
        with contextlib.suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(terminal, termios.TCSANOW, before)


@contextlib.contextmanager
def stop_signals(deployment: Deployment) -> Iterator[None]:
    """Turn signals that would end or stop the program, such as SIGTERM or SIGHUP, into emergency stops."""

    def stop(number: int, frame: FrameType | None) -> None:
        deployment.emergency = deployment.emergency or signal.Signals(number).name

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
