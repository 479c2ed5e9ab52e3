"""Messages to the operator, written by a thread of their own.

A terminal can be closed, stopped or gone, and a pipe can be full. None of that may hold up or end the command stream:
`say` never blocks and never raises. Messages that cannot be written are counted and dropped.
"""

import os
import queue
import sys
import threading

LENGTH = 1000  # messages waiting at most
STDOUT = 1


class Console:
    def __init__(self, descriptor: int = STDOUT) -> None:
        self.lost = 0
        self._descriptor = descriptor
        self._messages: queue.Queue[str | None] = queue.Queue(LENGTH)
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
        # File descriptors, not sys.stdout: its lock and buffer would be shared with the rest of the program, and
        # what is left in the buffer of a closed terminal would spoil the exit code.
        while (text := self._messages.get()) is not None:
            data = (text + "\n").encode(errors="replace")
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                self.lost += 1


def say(text: str) -> None:
    """Print one line from a program that has no robot to look after."""
    print(text, flush=True, file=sys.stdout)
