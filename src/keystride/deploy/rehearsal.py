"""The whole deployment against a simulated robot in one process, step by step and as fast as it goes: no network,
no threads, no waiting. It serves the dry run, the tests, and as the measure for what the network changes."""

from collections import deque
from dataclasses import dataclass, field

from keystride.deploy.clock import Latest
from keystride.deploy.codec import decode_command, encode_state
from keystride.deploy.control import STREAM_PERIOD, Deployment
from keystride.deploy.layout import Record
from keystride.deploy.player import Player
from keystride.deploy.pose import Mounting, Poses
from keystride.deploy.safety import MotorCommand, Safety
from keystride.deploy.simulated import STEP, Noise, SimulatedGo2
from keystride.deploy.states import Event, State
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

    def send(self, command: Record) -> None:
        self.robot.receive(decode_command(self.robot.robot, command))


class DirectPoses(Poses):
    def close(self) -> None:
        pass


@dataclass
class Rehearsal:
    deployment: Deployment
    world: SimulatedGo2
    link: DirectLink
    poses: DirectPoses
    events: list[str] = field(default_factory=list)
    command: MotorCommand | None = None
    tick: int = 0
    _captured: deque[tuple[Floats, Floats]] = field(default_factory=lambda: deque(maxlen=POSE_LATE // POSE_EVERY + 1))

    @property
    def now(self) -> float:
        return self.tick * STREAM_PERIOD

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / STREAM_PERIOD)):
            self.step()

    def step(self) -> None:
        """2 ms."""
        now = self.now
        self.link.states.put(encode_state(self.world.robot, self.world.sense(), self.world.steps), now)
        if self.tick % POSE_EVERY == 0:
            self._captured.append(self.world.captured())
            self.poses.receive(*self._captured[0])
        self.command = self.deployment.stream(now)
        if self.tick % round(CONTROL_DT / STREAM_PERIOD) == 0:
            self.deployment.control(now)
        self.world.step(round(STREAM_PERIOD / STEP))
        self.tick += 1

    def until(self, state: State, seconds: float) -> bool:
        """Whether the state was reached in the time."""
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


def rehearse(
    robot: Robot, player: Player, script: Script, *, noise: Noise | None = None, posture: str = "lying", seed: int = 0
) -> Rehearsal:
    world = SimulatedGo2(robot, posture=posture, noise=noise or Noise(), seed=seed)
    link, poses, events = DirectLink(world), DirectPoses(Mounting()), []
    deployment = Deployment(robot, link, poses, player, script, Safety(robot, player.gains), say=events.append)
    return Rehearsal(deployment, world, link, poses, events)
