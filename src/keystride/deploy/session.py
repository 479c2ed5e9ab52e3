"""Run a deployment in real time: two loops on threads, the operator, and damping at the end in all cases.

The operator's keys and signals come in here, and messages go out; the remote's buttons arrive with the low states.
"""

import contextlib
import gc
import os
import queue
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

import numpy as np

from keystride.deploy.clock import Lateness, Ticker, since_boot
from keystride.deploy.deployment import Deployment
from keystride.deploy.fault_checks import DeployState, Event
from keystride.deploy.safety import STREAM_PERIOD, brake
from keystride.keyframes.goals import CONTROL_DT

KEYS_HELP = "Enter starts, s stops and lies down, any other key is the emergency stop: damping at once"
START_KEYS, STOP_KEYS = "\r\n", "s"
GIVE_UP_KEY = "q"  # a specific key, unlikely to be pressed by accident
UNKNOWN = (
    "the robot's state is unknown: {why}. Stay clear and cut its power. "
    f"Brake commands go on until it obeys; {GIVE_UP_KEY} or a signal gives up"
)
PENDING_MESSAGES = 1000  # lines to queue for a slow terminal
STDOUT = 1

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
IGNORED_SIGNALS = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE)  # would stop or end it because of its terminal


class Console:
    """Prints messages on a separate thread.

    A terminal can be closed, stopped or lost, and a pipe can be full. None of this may delay or end the command stream,
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

    def poll(self, deployment: Deployment, now: float) -> str:
        """Pass keys on to the deployment and return them; call this often while it runs."""
        self._start_without_key(deployment, now)
        if self.terminal is None:
            return ""
        keys = pressed_keys(self.terminal)
        if keys is None:
            self.terminal = None
            deployment.emergency = deployment.emergency or "terminal lost"
        for key in keys or "":
            press(deployment, key)
        return keys or ""

    def _start_without_key(self, deployment: Deployment, now: float) -> None:
        if deployment.safety.state is not DeployState.READY or self.start_after is None:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = now
        elif now - self._ready_since >= self.start_after:
            self._ready_since = now + 1.0  # if the start is refused, try again after a second
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
        with contextlib.suppress(termios.error):  # the terminal may have been closed
            termios.tcsetattr(terminal, termios.TCSANOW, before)


@contextlib.contextmanager
def stop_signals(deployment: Deployment) -> Iterator[None]:
    """Turn signals that would end or stop the program, such as SIGTERM or SIGHUP, into emergency stops."""

    def stop(number: int, frame: FrameType | None) -> None:
        deployment.interrupts += 1
        deployment.emergency = deployment.emergency or signal.Signals(number).name

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


LOOK = 0.3  # s of reading states before standing up, so that every check has had data
FINAL_BRAKE = 2.0  # s of braking at the end
POLL = 0.02  # s
SERVICE_EVERY = 0.5  # s between queries of the robot's motion service
HANGING = 2.0  # s without a command after which the stream counts as hung
SUSPENDED = 0.05  # s of suspension of the computer after which the robot is stopped: nothing controlled it meanwhile
ABANDONED = 60.0  # s of further braking when there is no terminal on which an operator could give up
PATIENCE = 2.0  # s of braking after which a robot that is not seen to be limp is reported


@dataclass(frozen=True)
class Outcome:
    state: DeployState
    played: bool  # whether the script was played to its end
    damped: bool  # whether the robot's own states show that its motors are in damping
    reason: str  # why it was stopped; empty when it was played
    stream: Lateness
    control: Lateness


class DeploySession:
    def __init__(
        self,
        deployment: Deployment,
        operator: Operator,
        settle: float = FINAL_BRAKE,
        motion_service: Callable[[], str] | None = None,  # asks the robot which service holds the motors; slow
        boot_clock: Callable[[], float] = since_boot,
        abandoned: float = ABANDONED,
    ) -> None:
        self.deployment = deployment
        self.operator = operator
        self.settle = settle
        self.abandoned = abandoned
        self.failure = ""
        self._stream = Ticker("stream", STREAM_PERIOD, self._stream_tick, self._stream_failed)
        self._control = Ticker("control", CONTROL_DT, deployment.control, self._control_failed)
        self._brake = Ticker("brake", STREAM_PERIOD, self._brake_tick, lambda error: None)
        self._ask = motion_service
        self._boot_clock = boot_clock
        self._asleep = boot_clock() - time.monotonic()  # s that the computer has been suspended since it was started
        self._over_event = threading.Event()

    def run(self) -> Outcome:
        """Stand up, play, lie down; end in damping."""
        gc.freeze()  # exclude existing objects from garbage collection, which would pause the stream
        sys.setswitchinterval(0.0005)  # s: a quarter of the stream's period
        with stop_signals(self.deployment), single_keys(self.operator.terminal), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # printing a warning could block the stream
            self._stream.start()
            self._control.start()
            if self._ask is not None:
                threading.Thread(target=self._watch_service, name="motion service", daemon=True).start()
            try:
                self._wait_for_end()
            finally:
                self._down()
        safety = self.deployment.safety
        damped = self.deployment.limp
        graver = f", then {safety.cause}" if safety.cause not in ("", safety.reason) else ""
        reason = self.failure or safety.reason + graver
        if not reason and not (safety.played and damped):
            reason = "ended before the script was played" if not safety.played else "damping not confirmed"
        return Outcome(
            safety.state, safety.played and not reason, damped, reason, self._stream.lateness, self._control.lateness
        )

    def _wait_for_end(self) -> None:
        begun, stood = time.monotonic(), False
        while not self._over():
            now = time.monotonic()
            if not stood and now - begun > LOOK:
                stood = True
                self.deployment.ask(Event.STAND)
            sent_at = self.deployment.sent_at
            if sent_at is not None and now - sent_at > HANGING:  # by now the guard has braked
                self.deployment.emergency = self.deployment.emergency or "command stream hangs"
                self.failure = "command stream hangs"
                self._start_braking()
            self.operator.poll(self.deployment, now)
            time.sleep(POLL)

    def _over(self) -> bool:
        return bool(self.failure) or self.deployment.safety.state is DeployState.DAMPING

    def _down(self) -> None:
        """Keep braking, also after an error in the operator's loop: for the settling time, and until the robot is limp.

        Brake commands may not have arrived. Only low states that show braked motors end this, or a
        motion service that has taken the motors, or the operator.
        """
        if not self._over():
            self.deployment.emergency = self.deployment.emergency or "program error"
        begun = time.monotonic()
        while (now := time.monotonic()) - begun < max(self.settle, PATIENCE) and not self._left(now - begun):
            self._keys(now)  # keys pressed for the emergency stop must not count as giving up
            time.sleep(POLL)
        if not self._left(now - begun):
            self.deployment.unknown = self._why_unknown()
            self.deployment.report(now, UNKNOWN.format(why=self.deployment.unknown))
            self._wait_until_limp()
            if self._left(np.inf):
                self.deployment.unknown = ""
        self._over_event.set()
        for loop in (self._control, self._stream, self._brake):
            loop.stop()

    def _left(self, seconds: float) -> bool:
        """Return whether the robot may be left after braking for this long."""
        return seconds >= self.settle and (self.deployment.limp or bool(self.deployment.motion_service))

    def _why_unknown(self) -> str:
        if self.deployment.heard_at < time.monotonic() - self.deployment.safety.limits.state_age:
            return "it sends no states"
        return f"its motors do not follow the brake commands, {self.deployment.obedience.error:.0f} N m off"

    def _wait_until_limp(self) -> None:
        """Wait until low states show that the robot is limp, or the operator gives up."""
        interrupts, keys, begun = self.deployment.interrupts, "", time.monotonic()
        while not self._left(np.inf) and GIVE_UP_KEY not in keys and self.deployment.interrupts == interrupts:
            keys = self._keys(time.monotonic())
            time.sleep(POLL)
            if self.operator.terminal is None and time.monotonic() - begun > self.abandoned:
                return

    def _keys(self, now: float) -> str:
        try:
            return self.operator.poll(self.deployment, now)
        except Exception:  # an error must not end the braking
            return ""

    def _stream_tick(self, now: float) -> None:
        if self._boot_clock() - time.monotonic() - self._asleep > SUSPENDED:
            self.deployment.emergency = self.deployment.emergency or "computer was suspended"
        self.deployment.stream(now, self._stream.lateness.last)

    def _stream_failed(self, error: BaseException) -> None:
        self._start_braking()
        self.failure = f"command stream failed: {error!r}"
        self.deployment.report(time.monotonic(), self.failure)

    def _start_braking(self) -> None:
        if self._brake.ident is None:  # a thread can be started only once
            self._brake.start()

    def _brake_tick(self, now: float) -> None:
        with contextlib.suppress(Exception):  # try again at the next tick
            self.deployment.send(now, brake())
        with contextlib.suppress(Exception):
            self.deployment.listen(now)

    def _control_failed(self, error: BaseException) -> None:
        # The "policy too late" check stops the robot.
        self.deployment.report(time.monotonic(), f"policy failed: {error!r}")

    def _watch_service(self) -> None:
        assert self._ask is not None
        while not self._over_event.wait(SERVICE_EVERY):
            with contextlib.suppress(Exception):  # ask again later
                self.deployment.motion_service = self._ask()
            if self.deployment.motion_service:
                return
