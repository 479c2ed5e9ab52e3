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


class RobotProcess:
    def __init__(self, options: tuple[str, ...], domain: int, port: int, record: Path) -> None:
        self._record = record
        command = [sys.executable, "-m", "keystride", "deploy", "sim", "--control", "--domain", str(domain)]
        command += ["--pose-port", str(port), "--record", str(record), *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []

    def disturb(self, disturbance: Disturb) -> None:
        assert self._process.stdin is not None
        message = asdict(disturbance)
        self._process.stdin.write(json.dumps({"disturb": message.pop("name"), **message}) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """It writes what it recorded."""
        self.lines = self._process.communicate(timeout=20.0)[0].splitlines()


class DeployProcess:
    """`keystride deploy go2` at a terminal of its own."""

    def __init__(self, policy: str, script: Path, domain: int, port: int) -> None:
        command = [sys.executable, "-m", "keystride", "deploy", "go2", "--policy", policy, "--script", str(script)]
        command += ["--interface", "lo", "--domain", str(domain), "--pose", f"udp://127.0.0.1:{port}"]
        command += ["--start-after", "0.2", "--settle", "0.4"]
        self._terminal, inside = pty.openpty()
        self._process = subprocess.Popen(
            command, stdin=inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        os.close(inside)
        self.lines: list[str] = []
        self.started: Latest[bool] = Latest()  # when it began to play
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(RUNNING):
                self.started.put(True)
            self.lines.append(line.rstrip())

    def act(self, act: Act) -> None:
        if act.kind == "key":
            os.write(self._terminal, act.what.encode())
        elif act.kind == "signal":
            self._process.send_signal(signal.Signals[act.what])
        else:
            if act.what == "both":
                os.kill(self._guard(), signal.SIGKILL)
            self._process.kill()

    def _guard(self) -> int:
        found = re.search(r"guard stands by as process (\d+)", "\n".join(self.lines))
        if found is None:
            raise RuntimeError("the deployment did not name its guard")
        return int(found[1])

    def wait(self, seconds: float) -> int | None:
        """Its exit code; none when it has not ended, and then it is killed."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = None
        self._reader.join(timeout=1.0)
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


def play(case: Case, policy: str, script: Path, domain: int, record: Path) -> Run:
    port = free_port()
    robot = RobotProcess(case.robot, domain, port, record)
    deploy = DeployProcess(policy, script, domain, port)
    caused: float | None = None
    if case.does is not None and deploy.started.wait(30.0):
        time.sleep(max(AT - deploy.started.age(), 0.0))
        caused = time.monotonic()
        if isinstance(case.does, Disturb):
            robot.disturb(case.does)
        else:
            deploy.act(case.does)
    code = deploy.wait(40.0)
    time.sleep(0.3)
    robot.close()
    started = time.monotonic() - deploy.started.age() if deploy.started.value else None
    return Run(deploy.lines, code, started, caused, lateness([*deploy.lines, *robot.lines]))


def lateness(lines: list[str]) -> float:
    """The largest that the processes admit to, s."""
    found = re.findall(r"the latest(?: step)? by ([0-9.]+) ms", "\n".join(lines))
    return max((float(ms) / 1000.0 for ms in found), default=0.0)
