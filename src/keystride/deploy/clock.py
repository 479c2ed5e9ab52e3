"""Loops at a fixed rate, real-time priority, and the newest value of a stream with its age."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

REAL_TIME_PRIORITY = 10  # of 99, for a deployment: below the kernel's own threads
GUARD_PRIORITY = 11  # above the deployment, which must not keep its guard waiting when it hangs
ROBOT_PRIORITY = 12  # for the simulated robot, because nothing delays a real one


class Latest(Generic[T]):
    """The newest value of a stream, for one writer and any number of readers. It is replaced as a whole."""

    def __init__(self) -> None:
        self._slot: tuple[T, float] | None = None
        self._arrived = threading.Event()
        self.count = 0

    def put(self, value: T, at: float | None = None) -> None:
        self._slot = (value, time.monotonic() if at is None else at)
        self.count += 1
        self._arrived.set()

    @property
    def value(self) -> T | None:
        slot = self._slot
        return None if slot is None else slot[0]

    def age(self, now: float | None = None) -> float:
        """Return the seconds since the last value arrived; infinity before the first."""
        slot = self._slot
        return float("inf") if slot is None else (time.monotonic() if now is None else now) - slot[1]

    def wait(self, seconds: float) -> bool:
        """Wait for the first value; return whether it arrived."""
        return self._arrived.wait(seconds)


@dataclass
class Lateness:
    """Statistics of how late a loop's ticks were."""

    ticks: int = 0
    worst: float = 0.0  # s
    skipped: int = 0  # ticks that were so late that the next one was already due
    last: float = 0.0  # s, the most recent tick

    def note(self, late: float, period: float) -> None:
        self.ticks += 1
        self.last = late
        self.worst = max(self.worst, late)
        self.skipped += int(max(late, 0.0) / period)


class Ticker(threading.Thread):
    """Calls `tick(now)` every `period` seconds until stopped; late ticks are not made up for.

    An exception ends the loop and is passed to `failed`.
    """

    def __init__(
        self, name: str, period: float, tick: Callable[[float], None], failed: Callable[[BaseException], None]
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.period = period
        self.lateness = Lateness()
        self._tick = tick
        self._failed = failed
        self._stop_asked = threading.Event()

    def run(self) -> None:
        try:
            for now in clock_ticks(self.period, self.lateness):
                if self._stop_asked.is_set():
                    return
                self._tick(now)
        except BaseException as error:  # report whatever ended the loop
            self._failed(error)

    def stop(self) -> None:
        self._stop_asked.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(timeout=2.0)


def clock_ticks(period: float, lateness: Lateness):
    """Yield the present time every `period` seconds."""
    due = time.monotonic()
    while True:
        now = time.monotonic()
        if now < due:
            time.sleep(due - now)
            now = time.monotonic()
        lateness.note(now - due, period)
        due = max(due + period, now)
        yield now


def since_boot() -> float:
    """Return the seconds since the computer was started, including those it was suspended, which time.monotonic omits."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


@contextmanager
def real_time(priority: int = REAL_TIME_PRIORITY, *, whole_process: bool = False) -> Iterator[bool]:
    """Run this thread, and threads that it starts meanwhile, with real-time priority; yield whether that is allowed.

    Raising the nice value is not enough: on a busy Linux machine a thread was kept waiting for 90 ms with it, and for
    0.7 ms with real-time priority. Among threads of one priority, each may keep the processor for 100 ms. A program
    therefore starts up without it and then raises all of its threads with `whole_process`, those of libraries too: a
    thread that is preempted while it holds the interpreter lock delays the others.
    """
    try:
        threads = [int(name) for name in os.listdir("/proc/self/task")] if whole_process else [0]
        before = {thread: (os.sched_getscheduler(thread), os.sched_getparam(thread)) for thread in threads}
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except (OSError, AttributeError):  # no permission, or not Linux
        yield False
        return
    for thread in threads:
        with suppress(ProcessLookupError):  # the thread may have ended
            os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(priority))
    try:
        yield True
    finally:
        for thread, scheduling in before.items():
            with suppress(ProcessLookupError):
                os.sched_setscheduler(thread, *scheduling)


def real_time_allowed() -> bool:
    with real_time() as allowed:
        return allowed
