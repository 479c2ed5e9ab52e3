"""A second process that brakes the robot when the deploying process dies or stops sending commands.

Unitree does not document what a Go2's motors do when low-level commands stop, so nothing here relies on it. The
deployment sends the guard heartbeats for the commands that it has sent to the robot. When heartbeats stop (the process
was killed, stopped, swapped out, hangs, or receives no states from the robot) or the pipe closes, the guard sends brake
commands: until the deployment tells it that the robot is in damping, or for some seconds after the pipe was closed. It
exits without braking only after the deployment has told it that the robot is in damping.

The two communicate through standard input and output. A guard can therefore also run on the robot's own computer, over
ssh, where it survives a failure of this computer or its cable (`keystride deploy guard`, docs/deploy.md).
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keystride.deploy.clock import GUARD_PRIORITY, Lateness, Latest, clock_ticks, real_time

BRAKED_WITHIN = 0.05  # s from the last heartbeat to the first brake command
HEARTBEAT_TIMEOUT = 0.045  # s without a heartbeat after which the guard brakes; the rest is left for braking itself
SILENCE_RANGE = (0.02, 0.2)  # s: allowed values of this timeout
BRAKING = 5.0  # s of brake commands after the deployment has ended
BRAKE_PERIOD = 0.002  # s between brake commands
DISCOVERY_TIMEOUT = 5.0  # s to wait for the robot to be discovered
HEARTBEAT_EVERY = 2  # commands per heartbeat
NO_ANSWER = 1.0  # s without a reply after which the guard counts as lost

GUARD_SENTENCE = re.compile(r"guard: braked ([0-9.]+) ms after the last heartbeat, woken ([0-9.]+) ms late")
STANDING_BY, NO_ROBOT = b"standing by\n", b"no robot\n"
HEARTBEAT, DISMISSED, BRAKES = b".", b"!", b"B"


def local_guard(interface: str, domain: int) -> list[str]:
    return [sys.executable, "-m", "keystride.deploy.guard", interface, str(domain)]


class Guard:
    """The deployment's end of a guard process. Only `wait` and `dismiss` block."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._trouble = ""
        self._heard: float | None = None  # when it last answered a heartbeat
        self._armed = False
        self._ended = False
        self._count = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, seconds: float) -> str:
        """Wait until the guard is ready; return why it is not, or an empty string."""
        until, text = time.monotonic() + seconds, b""
        while not text.endswith(STANDING_BY):
            left = until - time.monotonic()
            if left <= 0.0 or not select.select([self._from], [], [], left)[0]:
                return "the guard did not start"
            data = os.read(self._from, 4096)
            text += data
            if text.endswith(NO_ROBOT):
                return "the guard cannot reach the robot: check its --interface and --domain"
            if not data:
                return "the guard did not start"
        return ""

    def beat(self, now: float) -> str:
        """Report that a command was sent; return what is wrong with the guard, or an empty string."""
        if not self._armed:
            self._armed, self._heard = True, now
        self._count += 1
        if self._count % HEARTBEAT_EVERY or self.trouble(now):
            return self._trouble
        try:
            os.write(self._to, HEARTBEAT)
        except BlockingIOError:  # the guard does not read, which its missing replies will show
            pass
        except OSError:
            self._trouble = self._trouble or "guard process lost"
        return self._trouble

    def trouble(self, now: float) -> str:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._from, 4096)
            if not data:
                self._trouble = self._trouble or "guard process lost"
            elif BRAKES in data:
                self._trouble = self._trouble or "guard braked the robot"
            else:
                self._heard = now
        if self._armed and self._heard is not None and now - self._heard > NO_ANSWER:
            self._trouble = self._trouble or "guard does not answer"
        return self._trouble

    def dismiss(self, *, safe: bool) -> None:
        """End the guard: at once if the robot is safe (in damping, or never driven), otherwise after it has braked."""
        if self._ended:
            return
        self._ended = True
        if safe:
            with contextlib.suppress(OSError):
                os.write(self._to, DISMISSED)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._process.wait(10.0 if safe else 0.1)
        except subprocess.TimeoutExpired:
            if safe:
                self._process.kill()  # the guard hangs, and the robot is down


class Guards:
    """All guards of a deployment."""

    def __init__(self, guards: list[Guard]) -> None:
        self.guards = guards

    def beat(self, now: float) -> str:
        return next((trouble for trouble in [guard.beat(now) for guard in self.guards] if trouble), "")

    def dismiss(self, *, safe: bool) -> None:
        for guard in self.guards:
            guard.dismiss(safe=safe)


def stand_guard(interface: str, domain: int, silence: float = HEARTBEAT_TIMEOUT) -> int:
    """Run the guard on standard input and output; return 0 if it was dismissed, 1 if it braked.

    Return 2 immediately if the robot cannot be reached, because such a guard could not brake it. Raise ValueError for a
    timeout that would brake a healthy deployment or come too late.
    """
    from keystride.deploy.unitree.codec import brake_record
    from keystride.deploy.unitree.link import (
        LOW_CMD_TOPIC,
        LOW_STATE_TOPIC,
        LowCmd,
        LowState,
        Publication,
        Subscription,
        join,
    )
    from keystride.deploy.unitree.wire_format import seal

    shortest, longest = SILENCE_RANGE
    if not shortest <= silence <= longest:
        raise ValueError(f"silence {silence:g} s is outside the range {shortest:g} to {longest:g} s")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a lost connection is a reason to brake, not to exit
    participant = join(interface, domain)
    commands = Publication(participant, LOW_CMD_TOPIC, LowCmd)
    record = brake_record()
    seal(record)
    sample = LowCmd(record)
    robot: Latest[object] = Latest()
    states = Subscription(participant, LOW_STATE_TOPIC, LowState, robot.put)
    seen = robot.wait(DISCOVERY_TIMEOUT)
    states.close()
    until = time.monotonic() + DISCOVERY_TIMEOUT
    while seen and not commands.readers and time.monotonic() < until:
        time.sleep(0.01)
    if not seen or not commands.readers:
        with contextlib.suppress(BrokenPipeError):
            os.write(1, NO_ROBOT)
        return 2
    with real_time(GUARD_PRIORITY, whole_process=True):
        with contextlib.suppress(BrokenPipeError):  # the deployment has ended, which `silent` detects
            os.write(1, STANDING_BY)
        heard = silent(0, 1, silence)
        if heard is None:
            return 0
        keep_braking(lambda: commands.send(sample), BRAKING, 0, lambda: write_line(2, heard.sentence(time.monotonic())))
    return 1


def write_line(descriptor: int, text: str) -> None:
    """Write a line on a separate thread: a frozen terminal would block it, and a closed one would raise."""

    def write() -> None:
        with contextlib.suppress(OSError):
            os.write(descriptor, f"{text}\n".encode())

    threading.Thread(target=write, daemon=True).start()


def keep_braking(
    send: Callable[[], None], seconds: float, source: int, braked: Callable[[], None] = lambda: None
) -> None:
    """Send brake commands until dismissed, or until `seconds` after the pipe was closed.

    A failure to send does not prevent the next attempt: while the deployment lives, the robot may become reachable again.
    `braked` is called after the first one that was sent.
    """
    end: float | None = None
    first = True
    for now in clock_ticks(BRAKE_PERIOD, Lateness()):
        with contextlib.suppress(Exception):
            send()
            if first:
                first = False
                braked()
        if end is None and select.select([source], [], [], 0.0)[0]:
            data = os.read(source, 4096)
            if DISMISSED in data:
                return
            end = None if data else now + seconds
        if end is not None and now > end:
            return


@dataclass(frozen=True)
class Silence:
    """The end of the heartbeats, by the guard's own clock."""

    heard_at: float  # s, when the last heartbeat was read
    woken_late: float  # s from the timeout until the machine woke the guard; 0 if the pipe was closed

    def sentence(self, braked_at: float) -> str:
        after, late = 1000 * (braked_at - self.heard_at), 1000 * self.woken_late
        return f"guard: braked {after:.1f} ms after the last heartbeat, woken {late:.1f} ms late by the machine"


def silent(source: int, answers: int, silence: float) -> Silence | None:
    """Read heartbeats until they stop; return None if the guard is dismissed instead.

    Before the first heartbeat the robot has not been driven, so silence means nothing.
    """
    os.set_blocking(answers, False)
    heard_at: float | None = None
    while True:
        left = None if heard_at is None else max(heard_at + silence - time.monotonic(), 0.0)
        more = bool(select.select([source], [], [], left)[0])
        now = time.monotonic()
        data = os.read(source, 4096) if more else b""
        if DISMISSED in data:
            return None
        if not data:  # no heartbeat in time, or the pipe was closed
            with contextlib.suppress(OSError):
                os.write(answers, BRAKES)
            if heard_at is None:
                return None
            return Silence(heard_at, 0.0 if more else max(now - heard_at - silence, 0.0))
        heard_at = now
        with contextlib.suppress(OSError):
            os.write(answers, HEARTBEAT)


if __name__ == "__main__":  # this starts faster than `keystride deploy guard`
    sys.exit(stand_guard(sys.argv[1], int(sys.argv[2])))
