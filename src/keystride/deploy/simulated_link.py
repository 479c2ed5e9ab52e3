"""The simulated robot on the network: low states out, low commands in, the services, and a virtual motion capture.

It keeps real time in a process of its own and behaves as the robot does, with noise, latency and loss that can be
changed while it runs: each disturbance has a value and lasts for some seconds.
"""

import json
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cyclonedds.domain import DomainParticipant

from keystride.deploy.clock import Lateness, ticks
from keystride.deploy.codec import (
    BUTTONS,
    CHECK_MODE,
    MOTION_SWITCHER,
    NO_SUCH_CALL,
    RELEASE_MODE,
    SPORT,
    STAND_DOWN,
    decode_command,
    encode_state,
)
from keystride.deploy.layout import Record, is_sealed, seal
from keystride.deploy.link import LOW_CMD_TOPIC, LOW_STATE_TOPIC, Publication, Subscription
from keystride.deploy.messages import LowCmd, LowState
from keystride.deploy.pose import DEFAULT_PORT, Pose, pose_message
from keystride.deploy.safety import FOLDED_LEG, RAMP_GAINS, MotorCommand, Ramp
from keystride.deploy.services import Answer, Server
from keystride.deploy.simulated import SILENT, STEP, Noise, SimulatedGo2
from keystride.robot.description import Robot

PERIOD = 0.002  # s: states at 500 Hz
POSE_EVERY = 4  # periods: 125 Hz
RECORD_EVERY = 10  # periods: 50 Hz
CATCH_UP = 20  # physics steps that one period may make up for when the machine was busy

# What can be disturbed, and its value when nothing is.
DISTURBANCES: dict[str, Any] = {
    "loss": 0.0,  # share of messages lost, each way
    "delay": 0.0,  # s added to every message
    "states_off": False,
    "pose_off": False,
    "pose_nan": False,
    "pose_shift": 0.0,  # m along x
    "battery": 90.0,
    "motor_temperature": 40.0,
    "button": None,
}


@dataclass(frozen=True)
class SimulatedConfig:
    posture: str = "lying"
    sport: bool = True  # whether the robot's own motion service holds the motors at first
    noise: bool = True
    latency: float = 0.001  # s, each way
    loss: float = 0.0
    pose_port: int = DEFAULT_PORT
    pose_latency: float = 0.008  # s
    seed: int = 0
    record: Path | None = None  # .npz of what really happened, 50 rows a second


def simulated_world(robot: Robot, config: SimulatedConfig) -> SimulatedGo2:
    return SimulatedGo2(robot, posture=config.posture, noise=Noise() if config.noise else SILENT, seed=config.seed)


@dataclass
class Disturbances:
    active: dict[str, tuple[Any, float]] = field(default_factory=dict)  # name: value, until when

    def set(self, name: str, value: Any, seconds: float, now: float) -> None:
        """Raises ValueError for a name that is none."""
        if name not in DISTURBANCES:
            raise ValueError(f"unknown disturbance {name!r}: expected one of {', '.join(DISTURBANCES)}")
        if name == "button" and value not in BUTTONS:
            raise ValueError(f"unknown button {value!r}: expected one of {', '.join(BUTTONS)}")
        self.active[name] = (value, now + seconds)

    def get(self, name: str, now: float) -> Any:
        value, until = self.active.get(name, (None, -np.inf))
        return value if now < until else DISTURBANCES[name]


class SimulatedRobot:
    def __init__(self, world: SimulatedGo2, participant: DomainParticipant, config: SimulatedConfig) -> None:
        self.config = config
        self.world = world
        self.disturbances = Disturbances()
        self.lateness = Lateness()
        self.mode = "normal" if config.sport else ""
        self.closed = False
        self.rows: list[tuple[np.ndarray, ...]] = []
        self._random = np.random.default_rng(config.seed + 1)
        self._hold = Ramp(self.world.data.qpos[7:].copy(), ())  # what the robot's own motion service does
        self._hold_since = 0.0
        self._commands: deque[tuple[float, MotorCommand]] = deque(maxlen=1000)
        self._states: deque[tuple[float, Record]] = deque(maxlen=1000)
        self._captured: deque[tuple[float, Pose]] = deque(maxlen=1000)
        self._slip: float | None = None
        self._tick = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._publication = Publication(participant, LOW_STATE_TOPIC, LowState)
        self._open = [
            Subscription(participant, LOW_CMD_TOPIC, LowCmd, self._received),
            Server(participant, MOTION_SWITCHER, self._switcher),
            Server(participant, SPORT, self._sport),
        ]

    def run(self) -> None:
        """Until closed."""
        for now in ticks(PERIOD, self.lateness):
            self.step(now)
            if self.closed:
                break
        for part in self._open:
            part.close()
        self._socket.close()
        self._save()

    def step(self, now: float) -> None:
        self._obey(now)
        self.world.step(self._steps_due(now))
        self._publish(now)
        if self._tick % POSE_EVERY == 0:
            self._capture(now)
        if self._tick % RECORD_EVERY == 0:
            self._note(now)
        self._tick += 1

    def _steps_due(self, now: float) -> int:
        """Real time, unless the machine is too busy for it: then the simulation slips rather than leaps."""
        if self._slip is None:
            self._slip = now - self.world.time
        due = round((now - self._slip - self.world.time) / STEP)
        if due > CATCH_UP:
            self._slip += (due - CATCH_UP) * STEP
        return min(due, CATCH_UP)

    def _received(self, sample: Any) -> None:
        now = time.monotonic()
        if is_sealed(sample.record) and not self._lost(now):
            command = decode_command(self.world.robot, sample.record)
            self._commands.append((now + self._delay(now), command))

    def _obey(self, now: float) -> None:
        if self.mode:  # the robot's own motion service holds the motors
            posture = self._hold.at(self.world.time - self._hold_since)
            self.world.receive(MotorCommand(posture, RAMP_GAINS.stiffness, RAMP_GAINS.damping))
            self._commands.clear()
            return
        while self._commands and self._commands[0][0] <= now:
            self.world.receive(self._commands.popleft()[1])

    def _publish(self, now: float) -> None:
        look = self.disturbances.get
        button = look("button", now)
        record = encode_state(
            self.world.robot,
            self.world.sense(),
            self.world.steps,
            battery=look("battery", now),
            temperature=look("motor_temperature", now),
            buttons=frozenset() if button is None else frozenset({button}),
        )
        self._states.append((now + self._delay(now), record))
        while self._states and self._states[0][0] <= now + PERIOD / 2:
            due = self._states.popleft()[1]
            if not look("states_off", now) and not self._lost(now):
                seal(due)
                self._publication.send(LowState(due))

    def _capture(self, now: float) -> None:
        self._captured.append((now + self.config.pose_latency, Pose(*self.world.captured())))
        while self._captured and self._captured[0][0] <= now + PERIOD / 2:
            pose = self._captured.popleft()[1]
            if self.disturbances.get("pose_off", now):
                continue
            message = pose_message(self._disturbed(pose, now))
            if self.disturbances.get("pose_nan", now):
                message = b'{"position": [NaN, NaN, NaN], "orientation": [1, 0, 0, 0]}'
            self._socket.sendto(message, ("127.0.0.1", self.config.pose_port))

    def _disturbed(self, pose: Pose, now: float) -> Pose:
        shift = np.array([self.disturbances.get("pose_shift", now), 0.0, 0.0])
        return Pose(pose.position + shift, pose.orientation)

    def _delay(self, now: float) -> float:
        return self.config.latency + float(self.disturbances.get("delay", now))

    def _lost(self, now: float) -> bool:
        return self._random.random() < max(self.config.loss, self.disturbances.get("loss", now))

    def _switcher(self, api: int, parameter: str) -> Answer:
        if api == RELEASE_MODE:
            self.mode = ""
        elif api != CHECK_MODE:
            return NO_SUCH_CALL, ""
        return 0, json.dumps({"form": "0", "name": self.mode})

    def _sport(self, api: int, parameter: str) -> Answer:
        if api != STAND_DOWN:
            return NO_SUCH_CALL, ""
        self._hold_since = self.world.time
        self._hold = Ramp(self.world.data.qpos[7:].copy(), ((np.tile(FOLDED_LEG, 4), 1.5),))
        return 0, ""

    def _note(self, now: float) -> None:
        data = self.world.data
        stiffness = -self.world.model.actuator_biasprm[:, 1]
        row = (np.array(now), data.qpos, data.qvel, stiffness, data.actuator_force, np.array(self.world.obeys))
        self.rows.append(tuple(values.copy() for values in row))

    def _save(self) -> None:
        if self.config.record is None:
            return
        names = ("time", "qpos", "qvel", "stiffness", "torque", "obeys")
        columns: dict[str, Any] = {
            name: np.array(values) for name, values in zip(names, zip(*self.rows, strict=True), strict=True)
        }
        part = self.config.record.with_suffix(".part")
        with part.open("wb") as file:
            np.savez(file, **columns)
        part.replace(self.config.record)
