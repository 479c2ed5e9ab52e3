"""Forecasts in a process of their own, so that they do not slow down playback. Messages are lines of JSON."""

import json
import os
import subprocess
import sys
import threading
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
_free = threading.BoundedSemaphore(MOST_PROCESSES)


class Forecaster:
    """Sends questions to the process and passes on its answers, from a thread of its own.

    The process starts with the first question. Once the maximum number of processes is running, further sessions get no
    answers.
    """

    def __init__(self, answer: Callable[[Question, Chances], None]) -> None:
        self._answer = answer
        self._asked: tuple[int, Question] | None = None
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def process(self) -> int | None:
        """Identifier of the process; None before the first question."""
        return None if self._process is None else self._process.pid

    def ask(self, question: Question) -> None:
        """Send a question; it replaces the previous one."""
        number = self._asked[0] + 1 if self._asked else 1
        self._asked = (number, question)
        process = self._started()
        if process is None or process.stdin is None:
            return
        line = {"number": number, "script": script_data(question.script), "policy": question.policy}
        line |= {"robot": ROBOT_FORMAT.dump_python(question.robot, mode="json")}
        line |= {"friction": question.friction, "inbetween": question.inbetween}
        with suppress(BrokenPipeError, ValueError):  # closed, or it ended and has printed why
            print(json.dumps(line), file=process.stdin, flush=True)

    def close(self) -> None:
        """End the process. The browser and the server may both close a session at the same time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            process = self._process
        if process is None or self._reader is None:
            return
        process.kill()
        process.wait()
        self._reader.join()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe is not None else None
        _free.release()

    def _started(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._process is None and not self._closed and _free.acquire(blocking=False):
                command = [sys.executable, "-m", __name__]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                self._reader = threading.Thread(target=self._read, args=(self._process,), name="forecasts", daemon=True)
                self._reader.start()
            return self._process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
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
