"""The processes of the self-test: the simulated robot, and the deployment with its own controlling terminal.

Both are forked from a process that has imported the program, because starting two interpreters takes longer than most rows.
"""

import contextlib
import fcntl
import json
import multiprocessing
import os
import re
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import SystemRandom
from typing import Any

from keystride.deploy.clock import Latest, Ticker, real_time
from keystride.deploy.selftest.faults import BRAKED_LINE, MARKS, STANDING_UP_LINE, UNKNOWN_LINE, Act, Disturb

PROGRAM = [sys.executable, "-m", "keystride", "deploy"]
PRELOADED = ["keystride.commands.main", "keystride.deploy.selftest.processes", "keystride.deploy.sim.server"]
NORMAL_PRIORITY = (
    "import os, sys; os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)); os.execv(sys.argv[1], sys.argv[1:])"
)
NO_LIMIT, FULL_DISK = -1, 20_000  # bytes, largest size of a file
ROBOT_UP = "simulated Go2"
QUESTION = "Confirm"
START = 60.0  # s for a process to start on a busy machine
GUARD_TIME = 2.0  # s to wait for a guard to say that it braked
OUTGOING_PORTS = 32_768  # the first ephemeral port on Linux
DOMAINS = range(20, 220)  # DDS domains for simulated robots; robots use 0
DDS_PORTS, DDS_STRIDE, DDS_USED = 7400, 250, 150  # first port, distance between domains, ports per domain
PARTICIPANT_PORTS = range(10, 30)  # offsets within a domain: the ports of its first ten participants
RESERVING_PORT = DDS_STRIDE - 1  # offset within a domain: bound while the domain is reserved
SLOT_PORTS = 7300  # below those of DDS; one is bound while a simulated robot is deployed
POSE_PORTS = [
    port for port in range(20_000, OUTGOING_PORTS) if DDS_USED <= (port - DDS_PORTS) % DDS_STRIDE < RESERVING_PORT
]


def free_port() -> int:
    """Return a UDP port that stays free until it is bound, because nothing else takes it unasked.

    It lies below the ports of outgoing connections and between those of the DDS domains.
    """
    for port in SystemRandom().sample(POSE_PORTS, 100):
        if _is_free(port):
            return port
    raise RuntimeError("no UDP port is free")


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", port))
        return True
    return False


@contextlib.contextmanager
def reserved_domain(domains: Sequence[int] = DOMAINS) -> Iterator[int]:
    """Reserve a DDS domain that no program on this computer uses, such as the guard of an earlier run.

    Two deployments in the same domain would send commands to the same robot. Other callers, also in other processes, get
    other domains as long as the context lasts.
    """
    for domain in SystemRandom().sample(domains, len(domains)):
        first = DDS_PORTS + DDS_STRIDE * domain
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reservation:
            try:
                reservation.bind(("127.0.0.1", first + RESERVING_PORT))
            except OSError:
                continue
            if all(_is_free(first + port) for port in PARTICIPANT_PORTS):
                yield domain
                return
    raise RuntimeError("no DDS domain is free")


@contextlib.contextmanager
def reserved_slot(slots: int) -> Iterator[int]:
    """Wait for one of a number of slots that all self-tests on this computer share, and reserve it.

    Too many processes with real-time priority would keep one another, and everything else, from running.
    """
    while True:
        for slot in range(slots):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reservation:
                try:
                    reservation.bind(("127.0.0.1", SLOT_PORTS + slot))
                except OSError:
                    continue
                yield slot
                return
        time.sleep(0.1)


class Output:
    """Reads lines from a file descriptor on a thread; `marks` record when a line began with a given text."""

    def __init__(self, descriptor: int, *marks: str) -> None:
        self.lines: list[str] = []
        self.marks: dict[str, Latest[bool]] = {mark: Latest() for mark in marks}
        self._descriptor = descriptor
        self._pauses = 0  # number of times that nothing arrived for a while
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        text = ""
        with real_time(), contextlib.suppress(OSError):  # reading fails once the other side of a terminal has closed
            while not self._given_up.is_set():
                if not select.select([self._descriptor], [], [], 0.02)[0]:
                    self._pauses += 1
                    continue
                data = os.read(self._descriptor, 4096)
                if not data:
                    return
                *lines, text = (text + data.decode(errors="replace")).replace("\r", "").split("\n")
                for line in [*lines, text] if text.startswith(QUESTION) else lines:
                    for mark, when in self.marks.items():
                        if line.startswith(mark) and when.value is None:
                            when.put(True)
                self.lines += lines

    @property
    def closed(self) -> bool:
        return self._given_up.is_set()

    def drain(self) -> None:
        """Read what a process wrote before it ended. A guard may outlive it, so there may be no end of file."""
        pauses, until = self._pauses, time.monotonic() + 2.0
        while self._pauses < pauses + 2 and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)

    def close(self) -> None:
        """Stop reading, so that the descriptor can be closed: it stays open while a thread reads from it."""
        self._given_up.set()
        self._thread.join()


class Descriptor:
    """A file descriptor that a forked process inherits under its own number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[..., int], tuple[object]]:
        return _received, (reduction.DupFd(self.number),)


def _received(duplicate: Any) -> int:
    return duplicate.detach()


def started(words: list[str], standard_input: int, output: int, file_size: int = NO_LIMIT) -> BaseProcess:
    """Start `keystride deploy WORDS` in a new session, with its input as controlling terminal if that is a terminal.

    Files that it writes cannot grow beyond `file_size` bytes.
    """
    context = multiprocessing.get_context("forkserver")
    if sys.platform == "linux":  # elsewhere, loaded libraries may not survive a fork
        context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=_run, args=(words, Descriptor(standard_input), Descriptor(output), file_size))
    process.start()
    return process


def _run(words: list[str], standard_input: int, output: int, file_size: int) -> None:
    os.setsid()
    for number, descriptor in enumerate((standard_input, output, output)):
        os.dup2(descriptor, number)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        setattr(sys, name, os.fdopen(number, mode, buffering=1, closefd=False))
    sys.argv = ["keystride", "deploy", *words]
    runpy.run_module("keystride", run_name="__main__", alter_sys=True)


class RobotProcess:
    def __init__(self, options: tuple[str, ...], domain: int, port: int, record: Path) -> None:
        words = ["sim", "--control", "--domain", str(domain), "--pose-port", str(port), "--record", str(record)]
        inside, self._control = os.pipe()
        self._read, output = os.pipe()
        self.process = started([*words, *options], inside, output)
        for descriptor in (inside, output):
            os.close(descriptor)
        self.output = Output(self._read, ROBOT_UP)

    def disturb(self, disturbance: Disturb) -> float:
        """Start a disturbance; return the time at which it was sent."""
        message = asdict(disturbance)
        line = json.dumps({"disturb": message.pop("name"), **message}) + "\n"
        at = time.monotonic()
        os.write(self._control, line.encode())
        return at

    def close(self) -> None:
        """End the process, which then writes its record."""
        until = time.monotonic() + START
        while self.process.is_alive() and time.monotonic() < until and not self.output.marks[ROBOT_UP].wait(0.02):
            pass
        time.sleep(0.1)
        os.close(self._control)
        _ended(self.process, 30.0)
        self.output.drain()
        self.output.close()
        os.close(self._read)


class DeployUnderTest:
    """`keystride deploy go2` with a controlling terminal; `ACTS` lists what can be done to it."""

    def __init__(self, words: list[str], output: str, file_size: int = NO_LIMIT) -> None:
        self._terminal, inside = os.openpty()
        self._inside = os.ttyname(inside)
        read, write = os.pipe() if output == "pipe" else (self._terminal, inside)
        self._read = read
        self.process = started(["go2", *words], inside, write, file_size)
        for descriptor in {inside, write}:
            os.close(descriptor)
        self.output = Output(read, *MARKS, QUESTION, UNKNOWN_LINE, BRAKED_LINE)
        self._words = words

    def reaches(self, mark: str) -> bool:
        """Wait until a mark is printed; return False if the process ends first."""
        until = time.monotonic() + START
        while time.monotonic() < until and self.process.is_alive():
            if self.output.marks[mark].wait(0.02):
                return True
        return False

    def act(self, act: Act) -> float:
        """Do something to the process; return the time at which it was done."""
        return OPERATOR_ACTS[act.kind](self, act.what)

    def key(self, what: str) -> float:
        at = time.monotonic()
        os.write(self._terminal, what.encode())
        return at

    def keys(self, what: str) -> float:
        at = time.monotonic()
        for key in what:
            with contextlib.suppress(OSError):
                self.key(key)
            time.sleep(0.1)
        return at

    def freeze_and_key(self, what: str) -> float:
        """Stop the terminal's output, as a full or hung terminal would, and press a key."""
        terminal = os.open(self._inside, os.O_RDWR | os.O_NOCTTY)
        termios.tcflow(terminal, termios.TCOOFF)
        os.close(terminal)
        return self.key(what)

    def hang_up(self, what: str) -> float:
        self.output.close()
        at = time.monotonic()
        os.close(self._terminal)
        self._terminal = self._read = -1
        return at

    def close_output(self, what: str) -> float:
        self.output.close()
        at = time.monotonic()
        os.close(self._read)
        self._read = -1
        return at

    def signal(self, what: str) -> float:
        at = time.monotonic()
        self._send(self.process.pid, signal.Signals[what])
        return at

    def stop(self, what: str) -> float:
        return self._stop(float(what), self.process.pid)

    def stop_both(self, what: str) -> float:
        return self._stop(float(what), self._guard(), self.process.pid)

    def _stop(self, seconds: float, *processes: int | None) -> float:
        at = time.monotonic()
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for process in processes:
                self._send(process, number)
            if number == signal.SIGSTOP:
                time.sleep(seconds)
        return at

    def kill(self, what: str) -> float:
        at = time.monotonic()
        self._send(self.process.pid, signal.SIGKILL)
        return at

    def kill_guard(self, what: str) -> float:
        return self._signal_guard(signal.SIGKILL)

    def kill_both(self, what: str) -> float:
        self.kill_guard(what)
        return self.kill(what)

    def stop_guard(self, what: str) -> float:
        return self._signal_guard(signal.SIGSTOP)

    def start_again(self, what: str) -> float:
        """Run the same command a second time until it ends, append its output to this one's, and start the script of the first."""
        at = time.monotonic()
        words = [f"{word}.second" if before == "--report" else word for before, word in pairwise(["", *self._words])]
        command = [sys.executable, "-c", NORMAL_PRIORITY, *PROGRAM, "go2", *words]
        try:
            second = subprocess.run(
                command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=START
            )
            self.output.lines += f"{second.stdout}{second.stderr}".splitlines()
        except subprocess.TimeoutExpired:
            self.output.lines.append(f"the second deployment did not end within {START:g} s")
        self.key("\n")
        return at

    def wait(self, what: str) -> float:
        return time.monotonic()

    def _signal_guard(self, number: int) -> float:
        guard, at = self._guard(), time.monotonic()
        self._send(guard, number)
        return at

    @staticmethod
    def _send(process: int | None, number: int) -> None:
        assert process is not None
        with contextlib.suppress(ProcessLookupError):  # it has already ended
            os.kill(process, number)

    def _guard(self) -> int:
        """Return the process id of its own guard, which is the first one printed."""
        found = re.search(r"guard ready: process (\d+)", "\n".join(self.output.lines))
        if found is None:
            raise RuntimeError("the deployment did not print its guard")
        return int(found[1])

    def close(self, *, guarded: bool = False) -> int | None:
        """Return the exit code; None if the process did not end and had to be killed.

        A guard that has to brake may do so afterwards.
        """
        code = _ended(self.process, START)
        if guarded:
            self.output.marks[BRAKED_LINE].wait(GUARD_TIME)
        self.output.drain()
        self.output.close()
        for descriptor in {self._terminal, self._read} - {-1}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        return code


OPERATOR_ACTS: dict[str, Callable[[DeployUnderTest, str], float]] = {
    "key": DeployUnderTest.key,
    "keys": DeployUnderTest.keys,
    "freeze and key": DeployUnderTest.freeze_and_key,
    "hang up": DeployUnderTest.hang_up,
    "close output": DeployUnderTest.close_output,
    "signal": DeployUnderTest.signal,
    "stop": DeployUnderTest.stop,
    "stop both": DeployUnderTest.stop_both,
    "kill": DeployUnderTest.kill,
    "kill guard": DeployUnderTest.kill_guard,
    "kill both": DeployUnderTest.kill_both,
    "stop guard": DeployUnderTest.stop_guard,
    "start again": DeployUnderTest.start_again,
    "wait": DeployUnderTest.wait,
}


def waited(process: int) -> dict[int, float]:
    """Return how long each thread of a process and of its children was ready to run but had to wait, s.

    The kernel counts it. Time in which a thread sleeps, is stopped or waits for another one is not included.
    """
    found: dict[int, float] = {}
    for thread in _listed(f"/proc/{process}/task"):
        folder = Path(f"/proc/{process}/task/{thread}")
        with contextlib.suppress(OSError, IndexError, ValueError):  # it has ended, or there are no statistics
            found[int(thread)] = int((folder / "schedstat").read_text().split()[1]) / 1e9
            for child in (folder / "children").read_text().split():
                found |= waited(int(child))
    return found


def idle_processors(seconds: float = 1.0) -> float:
    """Measure how many processors are idle; return 0 where the kernel keeps no statistics."""
    before = _idle_seconds()
    time.sleep(seconds)
    return (_idle_seconds() - before) / seconds


def _idle_seconds() -> float:
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0].split()  # cpu user nice system idle ...
    except OSError:
        return 0.0
    return int(first[4]) / os.sysconf("SC_CLK_TCK")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


class WaitingWatch:
    """Measures how long the machine kept processes waiting while the deployment controlled the robot."""

    EVERY = 0.05  # s

    def __init__(self, output: Output, *processes: int) -> None:
        self.worst = 0.0  # s, longest wait of any thread within an interval of EVERY
        self._output, self._processes = output, processes
        self._before: dict[int, float] = {}
        self._loop = Ticker("waiting", self.EVERY, self._look, lambda error: None)
        self._loop.start()

    def _look(self, now: float) -> None:
        times = {thread: time for process in self._processes for thread, time in waited(process).items()}
        if self._output.marks[STANDING_UP_LINE].value is not None and not self._over():
            grown = (time - self._before[thread] for thread, time in times.items() if thread in self._before)
            self.worst = max(self.worst, *grown, 0.0)
        self._before = times

    def _over(self) -> bool:
        return self._output.closed or any("-> damping" in line for line in self._output.lines)

    def close(self) -> None:
        self._loop.stop()


def _ended(process: BaseProcess, seconds: float) -> int | None:
    process.join(seconds)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    return code
