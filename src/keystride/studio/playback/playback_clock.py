"""How many control steps are due as the wall clock goes on, at any speed."""

from dataclasses import dataclass

from keystride.keyframes.goals import CONTROL_DT

MAX_DELAY = 0.5  # s: what is later than this is dropped, so that after a long stall the robot does not leap ahead


@dataclass
class PlaybackClock:
    speed: float = 1.0
    asked: float = 0.0  # control steps that were due since the beginning
    given: int = 0  # of these, done
    _debt: float = 0.0
    _last: float | None = None

    def start(self, now: float) -> None:
        self._last, self._debt = now, 0.0

    def due(self, now: float) -> int:
        """Whole control steps since the last call; now in seconds."""
        elapsed = now - (now if self._last is None else self._last)
        self._last = now
        self.asked += elapsed * self.speed / CONTROL_DT
        self._debt += min(elapsed, MAX_DELAY) * self.speed / CONTROL_DT
        steps = int(self._debt + 1e-9)
        self._debt -= steps
        return steps

    @property
    def ratio(self) -> float:
        """Steps done to steps due."""
        return self.given / self.asked if self.asked >= 1 else 1.0
