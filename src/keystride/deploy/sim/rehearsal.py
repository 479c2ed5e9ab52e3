"""The whole deployment against a simulated robot in one process, step by step and as fast as it goes.

No network, no threads, no waiting. It serves the dry run, the tests, and as the measure for what the network changes.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keystride.deploy.clock import Latest
from keystride.deploy.deployment import Deployment
from keystride.deploy.fault_checks import Limits
from keystride.deploy.player import Player
from keystride.deploy.pose.odometry import OdometryPoses
from keystride.deploy.pose.source import Mounting, Pose, Poses
from keystride.deploy.safety import STREAM_PERIOD, MotorCommand, Safety
from keystride.deploy.sim.disturbances import Disturbances
from keystride.deploy.sim.robot import STEP, Noise, SimulatedGo2
from keystride.deploy.states import Event, State
from keystride.deploy.unitree.codec import decode_command, encode_state
from keystride.deploy.unitree.wire_format import Record
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.script import Script
from keystride.robot.description import Floats, Robot

POSE_EVERY = 4  # stream ticks: 125 Hz
POSE_LATE = 4  # stream ticks: 8 ms


class DirectLink:
    """Commands go straight to the simulated robot."""

    def __init__(self, robot: SimulatedGo2) -> None:
        self.robot = robot
        self.states: Latest[Record] = Latest()
        self.other_commands = 0

    def send(self, command: Record) -> None:
        self.robot.receive(decode_command(self.robot.robot, command))


@dataclass
class Rehearsal:
    deployment: Deployment
    world: SimulatedGo2
    link: DirectLink
    poses: Poses
    events: list[str] = field(default_factory=list)
    disturbances: Disturbances = field(default_factory=Disturbances)
    command: MotorCommand | None = None
    tick: int = 0
    _captured: deque[Pose] = field(default_factory=lambda: deque(maxlen=POSE_LATE // POSE_EVERY + 1))

    @property
    def now(self) -> float:
        return self.tick * STREAM_PERIOD

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / STREAM_PERIOD)):
            self.step()

    def disturb(self, name: str, value: Any, seconds: float = np.inf) -> None:
        self.disturbances.set(name, value, seconds, self.now)

    def step(self) -> None:
        """Advance by 2 ms."""
        now = self.now
        self._report(now)
        if self.tick % POSE_EVERY == 0:
            self._capture(now)
        self.command = self.deployment.stream(now)
        if self.tick % round(CONTROL_DT / STREAM_PERIOD) == 0:
            self.deployment.control(now)
        self.world.step(round(STREAM_PERIOD / STEP))
        self.tick += 1

    def _report(self, now: float) -> None:
        look = self.disturbances.get
        record = encode_state(self.world.robot, self.world.sense(), self.world.steps)
        record = self.disturbances.disturb_state(record, now)
        if not look("states_off", now):
            self.link.states.put(record, now)
        self.link.other_commands += int(look("other_writer", now))
        self.deployment.motion_service = look("motion_service", now) or ""

    def _capture(self, now: float) -> None:
        self._captured.append(Pose(*self.world.captured(), time=now, sequence=self.tick))
        if len(self._captured) < (self._captured.maxlen or 0):  # the first is still on its way
            return
        pose = self.disturbances.disturb_pose(self._captured[0], now, self.world.random)
        if pose is not None and not isinstance(self.poses, OdometryPoses):
            position = np.full(3, np.nan) if self.disturbances.get("pose_nan", now) else pose.position
            self.poses.receive(position, pose.orientation, pose.time, pose.sequence, now)

    def until(self, state: State, seconds: float) -> bool:
        """Step until a state is reached; return whether it was in the time."""
        limit = self.now + seconds
        while self.deployment.safety.state is not state and self.now < limit:
            self.step()
        return self.deployment.safety.state is state

    def play(self, seconds: float) -> State:
        """Stand up, play, lie down; as an operator would."""
        self.advance(0.1)
        self.deployment.ask(Event.STAND)
        if self.until(State.READY, 5.0):
            self.advance(0.5)
            self.deployment.ask(Event.START)
        self.until(State.DAMPING, seconds)
        return self.deployment.safety.state


class Drift:
    """How far leg odometry strays from the simulator's truth while the script is played."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._path: list[tuple[Floats, Floats]] = []  # truth and odometry, over the ground

    def follow(self) -> None:
        """Take note of the present moment; called after every step."""
        if self._rehearsal.deployment.safety.state is State.RUNNING:
            odometry = self._rehearsal.deployment.odometry
            self._path.append((self._rehearsal.world.data.qpos[:2].copy(), odometry.position[:2].copy()))

    @property
    def walked(self) -> float:
        """m over the ground."""
        places = np.array([truth for truth, _ in self._path]).reshape(-1, 2)
        return float(np.linalg.norm(np.diff(places, axis=0), axis=-1).sum())

    @property
    def off(self) -> float:
        """m between truth and odometry at the end, having begun in the same place."""
        if not self._path:
            return 0.0
        (first, felt_first), (last, felt_last) = self._path[0], self._path[-1]
        return float(np.linalg.norm((last - first) - (felt_last - felt_first)))

    @property
    def per_metre(self) -> float:
        return self.off / self.walked if self.walked else 0.0


def rehearse(
    robot: Robot,
    player: Player,
    script: Script,
    *,
    noise: Noise | None = None,
    posture: str = "lying",
    seed: int = 0,
    poses: Poses | None = None,
    limits: Limits | None = None,
) -> Rehearsal:
    """Put a deployment and a simulated robot together; poses come from motion capture unless `poses` says otherwise."""
    world = SimulatedGo2(robot, posture=posture, noise=noise or Noise(), seed=seed)
    link, poses, events = DirectLink(world), poses or Poses(Mounting()), []
    safety = Safety(robot, player.gains, limits or Limits())
    deployment = Deployment(robot, link, poses, player, script, safety, say=events.append)
    return Rehearsal(deployment, world, link, poses, events)
