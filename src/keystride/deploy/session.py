"""A deployment in real time: two loops on threads, the operator, and a way down whatever happens."""

import gc
import sys
import time
from dataclasses import dataclass

from keystride.deploy.clock import Lateness, Ticker
from keystride.deploy.codec import encode_command
from keystride.deploy.control import STREAM_PERIOD, Deployment
from keystride.deploy.operator import Operator, signals_stop, single_keys
from keystride.deploy.safety import brake
from keystride.deploy.states import Event, State
from keystride.keyframes.goals import CONTROL_DT

LOOK = 0.3  # s of reading before standing up: time for every watch to object
SETTLE = 2.0  # s of braking at the end
POLL = 0.02


@dataclass(frozen=True)
class Outcome:
    state: State
    reason: str  # empty: the script was played to its end
    stream: Lateness
    control: Lateness


class Session:
    def __init__(self, deployment: Deployment, operator: Operator, settle: float = SETTLE) -> None:
        self.deployment = deployment
        self.operator = operator
        self.settle = settle
        self.failure = ""
        self._stream = Ticker("stream", STREAM_PERIOD, self._stream_tick, self._stream_failed)
        self._control = Ticker("control", CONTROL_DT, deployment.control, self._control_failed)
        self._brake = Ticker("brake", STREAM_PERIOD, self._brake_tick, lambda error: None)

    def run(self) -> Outcome:
        """Stand up, play, lie down. Ends in damping."""
        gc.freeze()  # what is there by now stays: no pause to look through it
        sys.setswitchinterval(0.0005)  # s: no thread keeps the others waiting for a quarter of the stream's period
        with signals_stop(self.deployment), single_keys():
            self._stream.start()
            self._control.start()
            try:
                self._attend()
            finally:
                self._down()
        safety = self.deployment.safety
        return Outcome(safety.state, self.failure or safety.reason, self._stream.lateness, self._control.lateness)

    def _attend(self) -> None:
        begun, stood = time.monotonic(), False
        while not self._over():
            now = time.monotonic()
            if not stood and now - begun > LOOK:
                stood = True
                self.deployment.ask(Event.STAND)
            if not self.deployment.guarded():
                self.deployment.emergency = self.deployment.emergency or "guard process lost"
            self.operator.attend(self.deployment, now)
            time.sleep(POLL)

    def _over(self) -> bool:
        return bool(self.failure) or self.deployment.safety.state is State.DAMPING

    def _down(self) -> None:
        """Braking to the last: an error in the operator's loop ends here too."""
        if not self._over():
            self.deployment.emergency = self.deployment.emergency or "program error"
        time.sleep(self.settle)
        for loop in (self._control, self._stream, self._brake):
            loop.stop()

    def _stream_tick(self, now: float) -> None:
        self.deployment.stream(now)

    def _stream_failed(self, error: BaseException) -> None:
        self.failure = f"command stream failed: {error!r}"
        self.deployment.say(self.failure)
        self._brake.start()

    def _brake_tick(self, now: float) -> None:
        self.deployment.link.send(encode_command(self.deployment.robot, brake()))

    def _control_failed(self, error: BaseException) -> None:
        self.deployment.say(f"policy failed: {error!r}")  # no more targets: the watch on their age stops the robot
