"""What is wrong with a script, in words for the person who wrote it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from keystride.errors import FileError
from keystride.reading import one_line

HUGE = 1e300  # an integer beyond may not even be a float
LONGEST_MESSAGE, LONGEST_NAME = 600, 120  # characters of a message, and of a field's name in it
MOST_SHOWN = 30  # a file of nonsense has as many problems as lines

FieldPath = tuple[str | int, ...]  # ("keyframes", 2, "yaw")


@dataclass(frozen=True)
class Problem:
    """One mistake: where it stands, what is wrong, what is allowed."""

    place: FieldPath
    message: str
    line: int | None = None  # counted from 1

    def __str__(self) -> str:
        field = one_line(field_name(self.place), LONGEST_NAME)
        return one_line(f"{field}: {self.message}" if field else self.message, LONGEST_MESSAGE)


class ScriptError(FileError):
    """Everything that is wrong with a script, at once."""

    def __init__(self, problems: Iterable[Problem], source: str = "script"):
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line a problem, as compilers print them: file, line, field, what is allowed."""
        shown = [f"{self._mark(problem)}: {problem}" for problem in self.problems[:MOST_SHOWN]]
        left = len(self.problems) - len(shown)
        return [*shown, f"{self.source}: and {left} more"] if left else shown

    def _mark(self, problem: Problem) -> str:
        return f"{self.source}:{problem.line}" if problem.line else self.source


def field_name(place: FieldPath) -> str:
    """keyframes, 2, posture, 0 is `keyframe 3, posture[0]`: keyframes and obstacles are counted as people count."""
    prefix, rest = "", place
    if len(place) > 1 and place[0] == "keyframes" and isinstance(place[1], int):
        prefix, rest = f"keyframe {place[1] + 1}", place[2:]
    elif len(place) > 2 and place[:2] == ("stage", "obstacles") and isinstance(place[2], int):
        prefix, rest = f"obstacle {place[2] + 1}", place[3:]
    name = ""
    for part in rest:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return ", ".join(filter(None, (prefix, name)))


def shorten(value: Any) -> str:
    """Return a value as text that fits in one line."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int | float):
        return "a huge number" if HUGE < abs(value) < inf else f"{value:.6g}"
    text = repr(str(value))
    return text if len(text) <= 40 else f"{text[:36]}...'"
