"""Ending a run: signals as a request that training looks at between iterations, and workers that do not outlive their parent."""

import ctypes
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

PARENT = "KEYSTRIDE_PARENT"  # environment variable of a worker: the process that started it


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


def follow_parent() -> None:
    """Make this worker end with its parent. Ctrl-C on a terminal reaches the parent too, which passes it on as SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != int(os.environ[PARENT]):
        sys.exit("the process that started this one is gone")
