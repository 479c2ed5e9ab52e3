"""The forecast's own process: it never takes the time that the player needs. Questions and answers are lines of JSON."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from keystride.keyframes.files import plain
from keystride.keyframes.validate import validate_script
from keystride.studio import controllers
from keystride.studio.forecast import Chances, Question, Rounds

POLITENESS = 10  # how far it stands back, as `nice` has it


class Forecaster:
    """Asks the process, and hands on what it answers, in a thread of its own."""

    def __init__(self, answer: Callable[[Question, Chances], None]) -> None:
        self._answer = answer
        self._asked: tuple[int, Question] | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, name="forecasts", daemon=True)
        self._reader.start()

    def ask(self, question: Question) -> None:
        """Only the latest question is answered."""
        number = self._asked[0] + 1 if self._asked else 1
        self._asked = (number, question)
        line = {"number": number, "script": plain(question.script), "policy": question.policy}
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has been closed, or has said on its own why it ended
            print(json.dumps(line | {"friction": question.friction}), file=self._process.stdin, flush=True)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe is not None else None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found, asked = json.loads(line), self._asked
            if asked is not None and asked[0] == found["number"]:
                met, path = np.array(found["met"]), np.array(found["path"])
                self._answer(asked[1], Chances(met, found["falls"], found["rollouts"], path))


def main() -> None:
    """Until nobody asks any more."""
    if hasattr(os, "nice"):
        os.nice(POLITENESS)
    rounds = Rounds(controllers.load, _tell)
    for line in sys.stdin:
        asked = json.loads(line)
        script = validate_script(asked["script"])
        rounds.ask(Question(script, asked["policy"], asked["friction"], asked["number"]))
    rounds.close()


def _tell(question: Question, chances: Chances) -> None:
    line = {"number": question.number, "falls": chances.falls, "rollouts": chances.rollouts}
    lists = {"met": chances.met.tolist(), "path": chances.path.round(3).tolist()}
    print(json.dumps(line | lists), flush=True)


if __name__ == "__main__":
    main()
