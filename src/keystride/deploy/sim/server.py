"""The simulated robot on the network: low states out, low commands in, motion services, and virtual motion capture.

It runs in real time in a process of its own and behaves as the robot does, with noise, latency and packet loss.
Disturbances can be switched on while it runs; each has a value and a duration.
"""

import gc
import json
import signal
import socket
import sys
import threading
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from cyclonedds.domain import DomainParticipant

from keystride.deploy.clock import ROBOT_PRIORITY, Lateness, Ticker, clock_ticks, real_time
from keystride.deploy.consistency import STATE_PERIOD
from keystride.deploy.pose.source import DEFAULT_PORT, Pose, pose_message
from keystride.deploy.safety import FOLDED_LEG, RAMP_GAINS, MotorCommand, Ramp, brake
from keystride.deploy.sim.disturbances import Disturbances
from keystride.deploy.sim.robot import FAINT_NOISE, PHYSICS_STEP, VIEWER_FRAME, Noise, SimulatedGo2, open_view
from keystride.deploy.unitree.codec import (
    CHECK_MODE,
    MOTION_SWITCHER,
    NO_SUCH_CALL,
    RELEASE_MODE,
    SELECT_MODE,
    SPORT,
    STAND_DOWN,
    decode_command,
    encode_command,
    encode_state,
)
from keystride.deploy.unitree.link import (
    LOW_CMD_TOPIC,
    LOW_STATE_TOPIC,
    Answer,
    LowCmd,
    LowState,
    Publication,
    Server,
    Subscription,
    join,
)
from keystride.deploy.unitree.wire_format import Record, is_sealed, seal
from keystride.files import open_atomically
from keystride.robot.description import Robot

POSE_EVERY = 4  # low states per pose: 125 Hz
RECORD_EVERY = 10  # low states per row of the record: 50 Hz
MAX_CATCH_UP_STEPS = 20  # physics steps to catch up at once after the machine was busy


@dataclass(frozen=True)
class SimulatedConfig:
    posture: str = "lying"
    sport: bool = True  # whether the robot's motion service initially holds the motors
    noise: bool = True
    brake_after: float | None = None  # s without a command after which the motors brake; None: they keep the last one
    latency: float = 0.001  # s, each way
    loss: float = 0.0
    pose_port: int = DEFAULT_PORT
    pose_latency: float = 0.008  # s
    seed: int = 0
    record: Path | None = None  # .npz file for the true states, 50 rows per second, and command times


def simulated_world(robot: Robot, config: SimulatedConfig) -> SimulatedGo2:
    noise = Noise() if config.noise else FAINT_NOISE
    return SimulatedGo2(robot, posture=config.posture, noise=noise, brake_after=config.brake_after, seed=config.seed)


class SimulatedRobot:
    def __init__(self, world: SimulatedGo2, participant: DomainParticipant, config: SimulatedConfig) -> None:
        self.config = config
        self.world = world
        self.disturbances = Disturbances()
        self.lateness = Lateness()
        self.mode = "normal" if config.sport else ""
        self.closed = False
        self.rows: list[tuple[np.ndarray, ...]] = []
        self.commands: list[tuple[float, float]] = []  # of each: time by the sender's clock, largest stiffness
        self._random = np.random.default_rng(config.seed + 1)
        self._hold = Ramp(self.world.data.qpos[7:].copy(), ())  # motion commanded by the robot's own motion service
        self._hold_since = 0.0
        self._commands: deque[tuple[float, MotorCommand]] = deque(maxlen=1000)
        self._states: deque[tuple[float, Record]] = deque(maxlen=1000)
        self._captured: deque[tuple[float, Pose]] = deque(maxlen=1000)
        self._heard = brake()  # the last command received, obeyed or not
        self._slip: float | None = None  # s from simulated to real time
        self._tick = 0
        self._number = 0  # of the last captured pose
        self._participant = participant
        self._intruder: Publication | None = None
        self._second: Publication | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._publication = Publication(participant, LOW_STATE_TOPIC, LowState)
        self._open = [
            Subscription(participant, LOW_CMD_TOPIC, LowCmd, self._received),
            Server(participant, MOTION_SWITCHER, self._switcher),
            Server(participant, SPORT, self._sport),
        ]

    def run(self) -> None:
        """Run until closed."""
        for now in clock_ticks(STATE_PERIOD, self.lateness):
            self.step(now)
            if self.closed:
                break

    def close(self) -> None:
        """Leave the network and write the record."""
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
        """Return the number of physics steps due in real time; on a busy machine the simulation falls behind instead."""
        if self._slip is None:
            self._slip = now - self.world.time
        due = round((now - self._slip - self.world.time) / PHYSICS_STEP)
        if due > MAX_CATCH_UP_STEPS:
            self._slip += (due - MAX_CATCH_UP_STEPS) * PHYSICS_STEP
        return min(due, MAX_CATCH_UP_STEPS)

    def _received(self, sample: Any) -> None:
        now = time.monotonic()
        if is_sealed(sample.record) and not self._lost(now) and not self.disturbances.get("deaf", now):
            command = decode_command(self.world.robot, sample.record)
            self._commands.append((now + self._delay(now), command))
            self.commands.append((sample.sample_info.source_timestamp / 1e9, float(command.stiffness.max())))

    def _obey(self, now: float) -> None:
        taken = self.disturbances.get("motion_service", now)
        if taken and not self.mode:
            self._select(taken)
        if self.mode:  # the robot's own motion service holds the motors
            posture = self._hold.at(self.world.time - self._hold_since)
            self.world.receive(MotorCommand(posture, RAMP_GAINS.stiffness, RAMP_GAINS.damping))
        while self._commands and self._commands[0][0] <= now:
            self._heard = self._commands.popleft()[1]
            if not self.mode:
                self.world.receive(self._heard)

    def _publish(self, now: float) -> None:
        look = self.disturbances.get
        record = self.disturbances.disturb_state(
            encode_state(self.world.robot, self.world.sense(), self.world.steps), now
        )
        self._states.append((now + self._delay(now), record))
        while self._states and self._states[0][0] <= now + STATE_PERIOD / 2:
            due = self._states.popleft()[1]
            if not look("states_off", now) and not self._lost(now):
                if not look("states_unsealed", now):
                    seal(due)
                self._publication.send(LowState(due))
        if look("other_writer", now):
            self._intrude()
        if look("other_robot", now):
            self._second_robot(record.copy())

    def _intrude(self) -> None:
        """Send a low command as another program on the network would."""
        record = encode_command(self.world.robot, brake())
        seal(record)
        if self._intruder is None:
            self._intruder = Publication(self._participant, LOW_CMD_TOPIC, LowCmd)
        self._intruder.send(LowCmd(record))

    def _second_robot(self, record: Record) -> None:
        """Send a state as a second robot on the network would."""
        record["tick"] += 1_000_000
        seal(record)
        if self._second is None:
            self._second = Publication(self._participant, LOW_STATE_TOPIC, LowState)
        self._second.send(LowState(record))

    def _capture(self, now: float) -> None:
        self._number += 1
        late = self.config.pose_latency + self.disturbances.get("pose_late", now)
        self._captured.append((now + late, Pose(*self.world.captured(), time=now, sequence=self._number)))
        while self._captured and self._captured[0][0] <= now + STATE_PERIOD / 2:
            pose = self.disturbances.disturb_pose(self._captured.popleft()[1], now, self._random)
            if pose is None:
                continue
            message = pose_message(pose)
            if self.disturbances.get("pose_nan", now):
                message = b'{"position": [NaN, NaN, NaN], "orientation": [1, 0, 0, 0]}'
            self._socket.sendto(message, ("127.0.0.1", self.config.pose_port))

    def _delay(self, now: float) -> float:
        return self.config.latency + float(self.disturbances.get("delay", now))

    def _lost(self, now: float) -> bool:
        return self._random.random() < max(self.config.loss, self.disturbances.get("loss", now))

    def _switcher(self, api: int, parameter: str) -> Answer:
        if api == RELEASE_MODE:
            self.mode = ""
        elif api == SELECT_MODE:
            self._select(str(json.loads(parameter).get("name") or "normal"))
        elif api != CHECK_MODE:
            return NO_SUCH_CALL, ""
        return 0, json.dumps({"form": "0", "name": self.mode})

    def _select(self, mode: str) -> None:
        """Have a motion service take the motors and hold the robot as it stands or lies."""
        self._hold, self._hold_since = Ramp(self.world.data.qpos[7:].copy(), ()), self.world.time
        self.mode = mode

    def _sport(self, api: int, parameter: str) -> Answer:
        if api != STAND_DOWN:
            return NO_SUCH_CALL, ""
        if self.disturbances.get("service_stays_up", time.monotonic()):
            return 0, ""
        self._hold_since = self.world.time
        self._hold = Ramp(self.world.data.qpos[7:].copy(), ((np.tile(FOLDED_LEG, 4), 1.5),))
        return 0, ""

    def _note(self, now: float) -> None:
        data, world = self.world.data, self.world
        row = (
            np.array(now),
            data.qpos,
            data.qvel,
            world.stiffness,
            self._heard.stiffness,
            data.actuator_force,
            np.array(world.commanded),
            np.array(bool(self.mode)),
        )
        self.rows.append(tuple(values.copy() for values in row))

    def _save(self) -> None:
        if self.config.record is None:
            return
        names = ("time", "qpos", "qvel", "stiffness", "heard_stiffness", "torque", "commanded", "motion_service")
        columns: dict[str, Any] = {
            name: np.array(values) for name, values in zip(names, zip(*self.rows, strict=True), strict=True)
        }
        columns["sent"], columns["sent_stiffness"] = np.array(self.commands).reshape(-1, 2).T
        with open_atomically(self.config.record) as file:
            np.savez(file, **columns)


def serve(robot: Robot, interface: str, domain: int, config: SimulatedConfig, *, viewer: str, control: bool) -> int:
    """Run the simulated robot until a signal, or the end of standard input, closes it."""
    world = simulated_world(robot, config)
    with ExitStack() as stack:
        simulated = SimulatedRobot(world, join(interface, domain), config)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(simulated, "closed", True))
        if control:
            threading.Thread(target=read_disturbances, args=(simulated,), daemon=True).start()
        print(f"simulated Go2; poses to udp://127.0.0.1:{config.pose_port}; press Ctrl-C to stop", flush=True)
        if viewer != "none":
            _view(simulated, viewer, stack)
        simulated.step(time.monotonic())  # the first step is slow
        gc.freeze()
        with real_time(ROBOT_PRIORITY, whole_process=True):
            simulated.run()
        simulated.close()
    late = simulated.lateness
    print(f"{world.time:.1f} s simulated; the latest step was {1000 * late.worst:.1f} ms late", flush=True)
    return 0


def read_disturbances(robot: SimulatedRobot) -> None:
    """Apply disturbances from standard input, one JSON object per line; close the robot at its end."""
    for line in sys.stdin:
        try:
            message = json.loads(line)
            seconds = float(message.get("seconds", 1e9))
            robot.disturbances.set(message["disturb"], message["value"], seconds, time.monotonic())
        except (ValueError, KeyError, TypeError) as error:
            print(f"error: {line.strip()}: {error}", file=sys.stderr)
    robot.closed = True


def _view(robot: SimulatedRobot, viewer: str, stack: ExitStack) -> None:
    """Draw a copy of the robot on another thread, so that drawing does not delay the simulation."""
    model = robot.world.model
    copy = mujoco.MjData(model)
    draw = open_view(model, copy, viewer, stack)

    def frame(now: float) -> None:
        copy.qpos[:] = robot.world.data.qpos
        mujoco.mj_forward(model, copy)
        draw()

    loop = Ticker("viewer", VIEWER_FRAME, frame, lambda error: print(f"viewer closed: {error}", flush=True))
    loop.start()
    stack.callback(loop.stop)
