"""Start one training process per rank, as torchrun does, and stop all of them together.

Signals request a stop, which training checks for between iterations. Workers never outlive their parent.
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

PARENT = "KEYSTRIDE_PARENT"  # environment variable of a worker: the id of its parent process
FAILURES = "KEYSTRIDE_FAILURES"  # environment variable of a worker: the folder to which it reports failures
GRACE_SECONDS = 20.0  # between SIGTERM and SIGKILL for the remaining workers after one has failed
POLL_SECONDS = 0.05


class StopRequest:
    """Record the first SIGINT, SIGTERM or SIGHUP while active; a second SIGINT interrupts immediately."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._parent = int(os.environ.get(PARENT, "0"))
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread can install signal handlers
        for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @property
    def requested(self) -> bool:
        """Return whether this process should stop: it received a signal, or its parent is gone."""
        return self.signal is not None or bool(self._parent and os.getppid() != self._parent)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = self.signal or number


class WorkerCrash(RuntimeError):
    """A worker failed because of a bug; the message contains its traceback."""


class WorkerKilled(UserError):
    """A worker was killed by a signal."""


def launch(command: Sequence[str], processes: int, *, files: Sequence[int] = ()) -> int | None:
    """Run a command in several processes and return the signal that stopped it early, if any.

    A signal to this process is forwarded once, and the workers exit on their own. If a worker fails, all of them are stopped and
    its failure is raised here: UserError if the user can fix it, WorkerCrash otherwise. Workers inherit the file descriptors `files`.
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
    """Make this worker exit with its parent. It ignores Ctrl-C, which the parent forwards as SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != int(os.environ[PARENT]):
        sys.exit("the parent process is gone")


def report_failure(text: str, *, by_user: bool) -> None:
    """Report the failure of this worker to its parent, which prints one message for all workers."""
    reason = {"time": time.time(), "user": by_user, "text": text}
    (Path(os.environ[FAILURES]) / f"rank{os.environ['RANK']}.json").write_text(json.dumps(reason))


def _wait(workers: Sequence["subprocess.Popen[bytes]"], stop: StopRequest) -> list[int | None]:
    """Return the exit codes, with None for workers that had to be killed after another one failed."""
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
    """Return the first failure: the others follow from lost connections."""
    reasons = sorted((json.loads(path.read_text()) for path in folder.glob("*.json")), key=lambda r: r["time"])
    killed = [(rank, -code) for rank, code in enumerate(codes) if code and code < 0 and -code != signal.SIGTERM]
    if killed and not (reasons and reasons[0]["user"]):
        rank, number = killed[0]
        return WorkerKilled(
            f"training process {rank} was killed by {signal.Signals(number).name}"
            + (" (out of memory?)" if number == signal.SIGKILL else "")
        )
    if not reasons:
        return WorkerCrash(f"the training processes exited with codes {', '.join(map(str, codes))}")
    return UserError(reasons[0]["text"]) if reasons[0]["user"] else WorkerCrash(reasons[0]["text"])


def unused_port() -> int:
    """Return a free TCP port below the ephemeral range (from 32768).

    A process that connects before its peer listens could be assigned an ephemeral port and connect to itself.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
