"""Run a deployment in real time: two loops on threads, the operator, and damping at the end whatever happens."""

import gc
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from keystride.deploy.clock import Lateness, Ticker, since_boot
from keystride.deploy.deployment import Deployment
from keystride.deploy.operator import Operator, single_keys, stop_signals
from keystride.deploy.safety import STREAM_PERIOD, brake
from keystride.deploy.states import DeployState, Event
from keystride.keyframes.goals import CONTROL_DT

LOOK = 0.3  # s of reading states before standing up, so that every check has run
FINAL_BRAKE = 2.0  # s of braking at the end
POLL = 0.02  # s
SERVICE_EVERY = 0.5  # s between queries of the robot's motion service
HANGING = 2.0  # s without a command after which the stream is given up
SUSPENDED = 0.05  # s of suspension of the computer, during which nothing controlled the robot
CONFIRMED = 20  # consecutive brake commands after which the robot may be left


@dataclass(frozen=True)
class Outcome:
    state: DeployState
    played: bool  # whether the script was played to its end
    damped: bool  # whether brake commands were sent at the end
    reason: str  # why it was stopped; empty when it was played
    stream: Lateness
    control: Lateness


class DeploySession:
    def __init__(
        self,
        deployment: Deployment,
        operator: Operator,
        settle: float = FINAL_BRAKE,
        motion_service: Callable[[], str] | None = None,  # asks the robot which one holds the motors; slow
        boot_clock: Callable[[], float] = since_boot,
    ) -> None:
        self.deployment = deployment
        self.operator = operator
        self.settle = settle
        self.failure = ""
        self._stream = Ticker("stream", STREAM_PERIOD, self._stream_tick, self._stream_failed)
        self._control = Ticker("control", CONTROL_DT, deployment.control, self._control_failed)
        self._brake = Ticker("brake", STREAM_PERIOD, self._brake_tick, lambda error: None)
        self._ask = motion_service
        self._boot_clock = boot_clock
        self._asleep = boot_clock() - time.monotonic()  # s that the computer has been suspended since it was started
        self._over_event = threading.Event()

    def run(self) -> Outcome:
        """Stand up, play, lie down; end in damping."""
        gc.freeze()  # objects made so far are no longer scanned, which would pause the stream
        sys.setswitchinterval(0.0005)  # s: a quarter of the stream's period
        with stop_signals(self.deployment), single_keys(self.operator.terminal):
            self._stream.start()
            self._control.start()
            if self._ask is not None:
                threading.Thread(target=self._watch_service, name="motion service", daemon=True).start()
            try:
                self._wait_for_end()
            finally:
                self._down()
        safety = self.deployment.safety
        reason = self.failure or safety.reason or ("" if safety.played else "ended before the script was played")
        damped = self.deployment.brakes_sent >= CONFIRMED
        return Outcome(
            safety.state, safety.played and not reason, damped, reason, self._stream.lateness, self._control.lateness
        )

    def _wait_for_end(self) -> None:
        begun, stood = time.monotonic(), False
        while not self._over():
            now = time.monotonic()
            if not stood and now - begun > LOOK:
                stood = True
                self.deployment.ask(Event.STAND)
            sent_at = self.deployment.sent_at
            if sent_at is not None and now - sent_at > HANGING:  # the guard has braked by now
                self.failure = "command stream hangs"
            self.operator.poll(self.deployment, now)
            time.sleep(POLL)

    def _over(self) -> bool:
        return bool(self.failure) or self.deployment.safety.state is DeployState.DAMPING

    def _down(self) -> None:
        """Keep braking for the settling time, also after an error in the operator's loop."""
        if not self._over():
            self.deployment.emergency = self.deployment.emergency or "program error"
        time.sleep(self.settle)
        self._over_event.set()
        for loop in (self._control, self._stream, self._brake):
            loop.stop()

    def _stream_tick(self, now: float) -> None:
        if self._boot_clock() - time.monotonic() - self._asleep > SUSPENDED:
            self.deployment.emergency = self.deployment.emergency or "computer was suspended"
        self.deployment.stream(now, self._stream.lateness.last)

    def _stream_failed(self, error: BaseException) -> None:
        self._brake.start()
        self.failure = f"command stream failed: {error!r}"
        self.deployment.say(self.failure)

    def _brake_tick(self, now: float) -> None:
        self.deployment.send(now, brake())

    def _control_failed(self, error: BaseException) -> None:
        self.deployment.say(f"policy failed: {error!r}")  # the check of the targets' age stops the robot

    def _watch_service(self) -> None:
        assert self._ask is not None
        while not self._over_event.wait(SERVICE_EVERY):
            name = self._ask()
            if name:
                self.deployment.motion_service = name
                return
