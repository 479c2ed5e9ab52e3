"""The self-test's two processes: the simulated robot and the deployment, as a person would start them."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from keystride.deploy.clock import Latest
from keystride.deploy.faults import AT, Act, Case, Disturb

RUNNING = "ready -> running"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Talking:
    """A process whose words are kept."""

    def __init__(self, words: list[str], stdin: int, mark: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "keystride", "deploy", *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.marked: Latest[bool] = Latest()  # when it said the mark
        self._mark = mark
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(self._mark):
                self.marked.put(True)
            self.lines.append(line.rstrip())

    def wait(self, seconds: float) -> int | None:
        """Its exit code; none when it has not ended, and then it is killed."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = None
        self._reader.join(timeout=1.0)
        return code


class RobotProcess(Talking):
    def __init__(self, options: tuple[str, ...], domain: int, port: int, record: Path) -> None:
        words = ["sim", "--control", "--domain", str(domain), "--pose-port", str(port), "--record", str(record)]
        super().__init__([*words, *options], subprocess.PIPE, "simulated Go2")

    def disturb(self, disturbance: Disturb) -> None:
        assert self.process.stdin is not None
        message = asdict(disturbance)
        self.process.stdin.write(json.dumps({"disturb": message.pop("name"), **message}) + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """It writes what it recorded."""
        self.marked.wait(30.0)
        time.sleep(0.3)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.wait(20.0)


class DeployProcess(Talking):
    """`keystride deploy go2` at a terminal of its own."""

    def __init__(self, policy: str, script: Path, domain: int, port: int) -> None:
        words = ["go2", "--policy", policy, "--script", str(script), "--interface", "lo", "--domain", str(domain)]
        words += ["--pose", f"udp://127.0.0.1:{port}", "--start-after", "0.2", "--settle", "0.4"]
        self._terminal, inside = pty.openpty()
        super().__init__(words, inside, RUNNING)
        os.close(inside)

    def act(self, act: Act) -> None:
        if act.kind == "key":
            os.write(self._terminal, act.what.encode())
        elif act.kind == "signal":
            self.process.send_signal(signal.Signals[act.what])
        else:
            if act.what == "both":
                os.kill(self._guard(), signal.SIGKILL)
            self.process.kill()

    def _guard(self) -> int:
        found = re.search(r"guard stands by as process (\d+)", "\n".join(self.lines))
        if found is None:
            raise RuntimeError("the deployment did not name its guard")
        return int(found[1])

    def close(self) -> int | None:
        code = self.wait(40.0)
        os.close(self._terminal)
        return code


@dataclass(frozen=True)
class Run:
    """A case as it was run."""

    lines: list[str]  # that the deployment said
    exit_code: int | None  # none when it did not end
    started: float | None  # when it began to play
    caused: float | None  # when the fault was caused
    late: float  # s by which one of the processes was late, at worst

    @property
    def last(self) -> str:
        return self.lines[-1] if self.lines else "nothing was said"


def play(case: Case, policy: str, script: Path, domain: int, record: Path) -> Run:
    port = free_port()
    robot = RobotProcess(case.robot, domain, port, record)
    deploy = DeployProcess(policy, script, domain, port)
    caused: float | None = None
    if case.does is not None and deploy.marked.wait(30.0):
        time.sleep(max(AT - deploy.marked.age(), 0.0))
        caused = time.monotonic()
        if isinstance(case.does, Disturb):
            robot.disturb(case.does)
        else:
            deploy.act(case.does)
    code = deploy.close()
    robot.close()
    started = time.monotonic() - deploy.marked.age() if deploy.marked.value else None
    return Run(deploy.lines, code, started, caused, lateness([*deploy.lines, *robot.lines]))


def lateness(lines: list[str]) -> float:
    """The largest that the processes admit to, s."""
    found = re.findall(r"the latest(?: step)? by ([0-9.]+) ms", "\n".join(lines))
    return max((float(ms) / 1000.0 for ms in found), default=0.0)
