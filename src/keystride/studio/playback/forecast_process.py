"""Forecasts in a separate process, so that they do not slow down playback. Messages are lines of JSON."""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from keystride.keyframes.files import script_data, validate_script
from keystride.robot.description import Robot
from keystride.studio.playback import controllers
from keystride.studio.playback.coaching import Tip
from keystride.studio.playback.forecast import Chances, Question, Rounds

NICENESS = 10
ROBOT_FORMAT = TypeAdapter(Robot)
MOST_PROCESSES = 4  # over all sessions; each takes more than 100 MB


class ProcessQueue:
    """Limits the number of processes. Further ones start when another one ends, in the order of their requests.

    `start` starts a process and returns whether it did.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[Callable[[], bool]] = deque()
        self._lock = threading.Lock()

    def enter(self, start: Callable[[], bool]) -> None:
        """Call `start` now, or once a process has ended."""
        with self._lock:
            if start in self._waiting:
                return
            self._waiting.append(start)
            self._admit()

    def withdraw(self, start: Callable[[], bool]) -> None:
        """Leave the queue without having started."""
        with self._lock:
            if start in self._waiting:
                self._waiting.remove(start)

    def leave(self) -> None:
        """Let the next process start in place of one that has ended."""
        with self._lock:
            self._free += 1
            self._admit()

    def _admit(self) -> None:
        while self._free and self._waiting:
            self._free -= self._waiting.popleft()()


PROCESSES = ProcessQueue(MOST_PROCESSES)


class Forecaster:
    """Sends questions to the process and passes on its answers, on a separate thread.

    The process starts with the first question, or once one of another session ends if too many are running.
    """

    def __init__(self, answer: Callable[[Question, Chances], None], processes: ProcessQueue = PROCESSES) -> None:
        self._answer, self._processes = answer, processes
        self._asked: tuple[int, Question] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._closed = False

    @property
    def queued(self) -> bool:
        """Whether the process cannot start yet, because too many of other sessions are running."""
        return self._asked is not None and self._process is None

    @property
    def process(self) -> int | None:
        """Identifier of the process; None before the first question."""
        return None if self._process is None else self._process.pid

    def ask(self, question: Question) -> None:
        """Send a question; it replaces the previous one."""
        self._asked = (self._asked[0] + 1 if self._asked else 1, question)
        if self._process is None:
            self._processes.enter(self._start)
        else:
            self._send(self._process)

    def close(self) -> None:
        """End the process. The browser and the server may both close a session at the same time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            process = self._process
        if process is None or self._reader is None:
            self._processes.withdraw(self._start)
            return
        process.kill()
        process.wait()
        self._reader.join()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe is not None else None
        self._processes.leave()

    def _start(self) -> bool:
        """Start the process, and the thread that sends it the latest question."""
        with self._lock:
            if self._closed or self._process is not None:
                return False
            command = [sys.executable, "-m", __name__]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._reader = threading.Thread(target=self._read, args=(process,), name="forecasts", daemon=True)
            self._process = process
            self._reader.start()
        return True

    def _send(self, process: subprocess.Popen[str]) -> None:
        with self._sending, suppress(BrokenPipeError, ValueError):  # closed, or it ended and has printed why
            if self._asked is None:
                return
            number, question = self._asked
            line = {"number": number, "script": script_data(question.script), "policy": question.policy}
            line |= {"robot": ROBOT_FORMAT.dump_python(question.robot, mode="json")}
            line |= {"friction": question.friction, "inbetween": question.inbetween}
            print(json.dumps(line), file=process.stdin, flush=True)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._send(process)
        for line in process.stdout:
            found, asked = json.loads(line), self._asked
            if asked is not None and asked[0] == found["number"]:
                self._answer(asked[1], _chances(found))


def serve_forecasts() -> None:
    """Answer questions from standard input until it is closed."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    rounds = Rounds(controllers.load_controller, _write_answer)
    for line in sys.stdin:
        asked = json.loads(line)
        robot = ROBOT_FORMAT.validate_python(asked["robot"])
        script = validate_script(asked["script"], robot)
        rounds.ask(Question(robot, script, asked["policy"], asked["friction"], asked["number"], asked["inbetween"]))
    rounds.close()


def _write_answer(question: Question, chances: Chances) -> None:
    errors = [] if chances.errors is None else np.nan_to_num(chances.errors, nan=-1.0).round(3).tolist()
    line = {
        "number": question.number,
        "falls": chances.falls,
        "rollouts": chances.rollouts,
        "met": chances.met.tolist(),
        "path": chances.path.round(3).tolist(),
        "errors": errors,  # -1 where a component is absent
        "tips": [asdict(tip) for tip in chances.tips],
    }
    print(json.dumps(line), flush=True)


def _chances(found: dict[str, Any]) -> Chances:
    errors = np.array(found["errors"])
    tips = tuple(
        Tip(**{**tip, "position": None if tip["position"] is None else tuple(tip["position"])}) for tip in found["tips"]
    )
    return Chances(
        np.array(found["met"]),
        found["falls"],
        found["rollouts"],
        np.array(found["path"]),
        np.where(errors < 0, np.nan, errors),
        tips,
    )


if __name__ == "__main__":
    serve_forecasts()
