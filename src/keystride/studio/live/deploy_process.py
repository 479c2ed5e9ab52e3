"""`keystride deploy` as a process with its own pseudo-terminal, as if a person had started it.

The terminal is what makes this safe: a key on it is the deployment's own emergency stop, and if the studio dies for any
reason, the terminal closes and the deployment goes to damping by itself. No part of the deployment runs here.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from keystride.deploy.selftest.processes import PROGRAM, ROBOT_UP
from keystride.deploy.session import GIVE_UP_KEY

TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
EMERGENCY_KEY = b"\x03"  # Ctrl-C: emergency stop of a running deployment; ends one that is preparing
START_KEY, LIE_DOWN_KEY, GIVE_UP = b"\r", b"s", GIVE_UP_KEY.encode()
INSIST = 1.0  # s from the key to a signal, if the robot is not in damping by then
LINE_WAIT = 0.5  # s
LINES = 200  # of output kept
LONGEST_LINE = 1000  # characters
ROBOT_START = 60.0  # s for the simulated robot to start on a busy machine

Status = dict[str, Any]


class DeployProcess:
    """A deployment and, if options for it are given, a simulated robot to play on."""

    def __init__(self, words: Sequence[str], simulated: Sequence[str] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=LINES)
        self.status: Status = {}  # latest report
        self.ended: Status | None = None  # outcome as reported by the deployment
        self.exit_code: int | None = None
        self._terminal = -1
        self._stopped = False
        self._hung_up = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._robot: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, args=(list(words), simulated), name="deployment", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether `emergency` was called."""
        return self._stopped

    def press(self, key: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._terminal >= 0:
                os.write(self._terminal, key)

    def emergency(self) -> None:
        """Stop with damping at once. Callable from any thread, does not block; a signal follows if the key has no effect."""
        self._stopped = True
        self.press(EMERGENCY_KEY)
        threading.Timer(INSIST, self._insist).start()

    def close(self) -> None:
        """Stop the deployment if it is running; it brakes and ends by itself."""
        if self.running:
            self.emergency()

    def hang_up(self) -> None:
        """Close the terminal: a deployment that brakes a robot in an unknown state then ends by itself after a while."""
        self._hung_up.set()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end; return whether it was reached in time."""
        self._thread.join(seconds)
        return not self.running

    def _insist(self) -> None:
        process = self._process
        if process is not None and process.poll() is None and self.status.get("state") != "damping":
            process.send_signal(signal.SIGTERM)

    def _run(self, words: list[str], simulated: Sequence[str] | None) -> None:
        try:
            if simulated is None or self._start_robot(simulated):
                self._play(words)
        except OSError as error:
            self._say(f"error: {error}")
        finally:
            self._end_robot()

    def _start_robot(self, words: Sequence[str]) -> bool:
        """Start the simulated robot. It ends when its standard input closes, even if the studio is killed."""
        self._robot = subprocess.Popen(
            [*PROGRAM, "sim", "--control", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._robot.stdout is not None
        until = time.monotonic() + ROBOT_START
        found = ""
        while time.monotonic() < until and not self._stopped:
            if select.select([self._robot.stdout], [], [], 0.1)[0]:
                data = os.read(self._robot.stdout.fileno(), 4096).decode(errors="replace")
                found += data
                if ROBOT_UP in found or not data:
                    break
        for line in found.splitlines():
            self._say(line)
        return ROBOT_UP in found and not self._stopped

    def _play(self, words: list[str]) -> None:
        terminal, inside = os.openpty()
        read, write = os.pipe()
        words = [*words, "--status", str(write)]
        command = [sys.executable, "-c", TAKE_TERMINAL, *PROGRAM, "go2", *words]
        try:
            process = subprocess.Popen(
                command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True, pass_fds=(write,)
            )
        finally:
            os.close(inside)
            os.close(write)
        with self._lock:
            self._terminal, self._process = terminal, process
        if self._stopped:  # during the start
            self.press(EMERGENCY_KEY)
        self._follow(terminal, read)
        self.exit_code = process.wait()
        self._close_terminal()
        os.close(read)

    def _close_terminal(self) -> None:
        with self._lock:
            if self._terminal >= 0:
                os.close(self._terminal)
            self._terminal = -1

    def _follow(self, terminal: int, statuses: int) -> None:
        """Read the terminal and the status lines until the process closes them."""
        takers: dict[int, Callable[[str], None]] = {terminal: self._say, statuses: self._take}
        rest = {terminal: "", statuses: ""}
        while takers:
            if self._hung_up.is_set() and terminal in takers:
                del takers[terminal]
                self._close_terminal()
            for source in select.select(list(takers), [], [], LINE_WAIT)[0]:
                try:
                    data = os.read(source, 65536).decode(errors="replace")
                except OSError:  # the other side of the terminal has closed
                    data = ""
                *lines, rest[source] = (rest[source] + data).replace("\r", "").split("\n")
                for line in lines:
                    takers[source](line)
                rest[source] = rest[source][-LONGEST_LINE:] if source == terminal else rest[source]
                if not data:
                    del takers[source]

    def _say(self, line: str) -> None:
        if line.strip():
            self.lines.append(line[:LONGEST_LINE])

    def _take(self, line: str) -> None:
        try:
            status = json.loads(line)
        except ValueError:
            return
        if "ended" in status:
            self.ended = status["ended"]
        self.status = {**self.status, **status}

    def _end_robot(self) -> None:
        robot = self._robot
        if robot is None:
            return
        assert robot.stdin is not None
        assert robot.stdout is not None
        robot.stdin.close()
        try:
            robot.wait(ROBOT_START)
        except subprocess.TimeoutExpired:
            robot.kill()
            robot.wait()
        robot.stdout.close()
