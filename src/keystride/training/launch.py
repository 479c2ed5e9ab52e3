"""Training processes: start the same program once per rank, as torchrun does, and end all of them together.

Signals are a request that training looks at between iterations; workers do not outlive their parent.
"""

import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from keystride.errors import UserError

PARENT = "KEYSTRIDE_PARENT"  # environment variable of a worker: the process that started it
FAILURES = "KEYSTRIDE_FAILURES"  # environment variable of a worker: the folder where it says why it failed
GRACE_SECONDS = 20.0  # between asking the other workers to end and killing them, once one has failed
POLL_SECONDS = 0.05


class StopRequest:
    """Remembers the first SIGINT, SIGTERM or SIGHUP while it is active; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._parent = int(os.environ.get(PARENT, "0"))
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is not threading.main_thread():
            return self  # Python allows handlers in the main thread only
        for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @property
    def requested(self) -> bool:
        """Whether this process should end: a signal came, or the process that started it is gone."""
        return self.signal is not None or bool(self._parent and os.getppid() != self._parent)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = self.signal or number


class WorkerCrash(RuntimeError):
    """A worker failed by a defect of the program; the message holds its traceback."""


class WorkerKilled(UserError):
    """A worker was ended from outside."""


def launch(command: Sequence[str], processes: int, *, files: Sequence[int] = ()) -> int | None:
    """Run a command in several processes and return the signal that ended it early, if one did.

    A signal to this process is passed on once; the workers end by themselves. One that fails ends all of them, and its failure is
    raised here: UserError for what the user can fix, WorkerCrash otherwise. Workers inherit the given file descriptors.
    """
    with tempfile.TemporaryDirectory(prefix="keystride-") as folder, StopRequest() as stop:
        shared = {
            **os.environ,
            "WORLD_SIZE": str(processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(unused_port()),
            PARENT: str(os.getpid()),
            FAILURES: folder,
        }
        workers: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(processes):
                own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                workers.append(subprocess.Popen(command, env=own, pass_fds=tuple(files)))
            codes = _wait(workers, stop)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    worker.kill()
                    worker.wait()
        if any(codes) and not (stop.signal and set(codes) <= {0, -signal.SIGTERM}):
            raise _failure(Path(folder), codes)
        return stop.signal


def follow_parent() -> None:
    """Make this worker end with its parent. Ctrl-C on a terminal reaches the parent too, which passes it on as SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != int(os.environ[PARENT]):
        sys.exit("the process that started this one is gone")


def report_failure(text: str, *, by_user: bool) -> None:
    """Leave the reason for the parent, which prints one message for all workers. Workers call this."""
    reason = {"time": time.time(), "user": by_user, "text": text}
    (Path(os.environ[FAILURES]) / f"rank{os.environ['RANK']}.json").write_text(json.dumps(reason))


def _wait(workers: Sequence["subprocess.Popen[bytes]"], stop: StopRequest) -> list[int | None]:
    """Return the exit codes, with None for workers that did not end in time after another one failed."""
    asked, deadline = False, float("inf")
    while any(worker.poll() is None for worker in workers):
        failed = any(worker.poll() for worker in workers)
        if failed and deadline == float("inf"):
            deadline = time.monotonic() + GRACE_SECONDS
        if (failed or stop.requested) and not asked:
            asked = True
            for worker in workers:
                if worker.poll() is None:
                    worker.terminate()
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    return [worker.poll() for worker in workers]


def _failure(folder: Path, codes: Sequence[int | None]) -> Exception:
    """Return the first failure: the other workers only lost their connection to it."""
    reasons = sorted((json.loads(path.read_text()) for path in folder.glob("*.json")), key=lambda r: r["time"])
    killed = [(rank, -code) for rank, code in enumerate(codes) if code and code < 0 and -code != signal.SIGTERM]
    if killed and not (reasons and reasons[0]["user"]):
        rank, number = killed[0]
        return WorkerKilled(
            f"training process {rank} was ended by {signal.Signals(number).name}"
            + (" (out of memory?)" if number == signal.SIGKILL else "")
        )
    if not reasons:
        return WorkerCrash(f"the training processes ended with codes {', '.join(map(str, codes))}")
    return UserError(reasons[0]["text"]) if reasons[0]["user"] else WorkerCrash(reasons[0]["text"])


def unused_port() -> int:
    """Return a free TCP port below those that systems give to outgoing connections (from 32768 on).

    A process that connects before the other one listens could be given that very port, and would be connected to itself.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
