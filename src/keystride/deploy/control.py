"""The deployment itself: low states and poses in, safe commands out at 500 Hz, the policy at 50 Hz.

Two ticks do all the work, and neither reads a clock, so that they run on threads against a robot as well as step by
step against a simulation. Only the stream's tick touches the safety layer and the estimator.
"""

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from keystride import geometry
from keystride.deploy.clock import Latest
from keystride.deploy.codec import LowReading, decode_state, encode_command
from keystride.deploy.estimator import Estimator
from keystride.deploy.layout import Record
from keystride.deploy.player import Player, RobotState
from keystride.deploy.pose import PoseSource
from keystride.deploy.safety import MotorCommand, Safety
from keystride.deploy.states import Event, State
from keystride.deploy.watches import Reading
from keystride.keyframes.goals import CONTROL_DT, Goals, goal_errors
from keystride.keyframes.resolve import finished, script_goals
from keystride.keyframes.script import Script
from keystride.robot.description import Floats, Robot

STREAM_PERIOD = 0.002  # s

EMERGENCY_BUTTON, START_BUTTON, STOP_BUTTON = "B", "start", "X"


class Link(Protocol):
    @property
    def states(self) -> Latest[Record]: ...

    def send(self, command: Record) -> None: ...


@dataclass(frozen=True)
class Arrival:
    """How a keyframe was met, as the robot's own estimate has it."""

    keyframe: int
    step: int
    error: Floats  # (18,) as in `goal_errors`


@dataclass
class Deployment:
    robot: Robot
    link: Link
    source: PoseSource
    player: Player
    script: Script
    safety: Safety
    estimator: Estimator = field(default_factory=Estimator)
    say: Callable[[str], None] = print
    guarded: Callable[[], bool] = lambda: True  # whether somebody would brake the robot if this process died
    emergency: str | None = None  # set from anywhere to end in damping
    arrivals: list[Arrival] = field(default_factory=list)
    asks: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)
    _targets: Latest[Floats] = field(default_factory=Latest)
    _state: RobotState | None = None
    _low: LowReading | None = None
    _seen: tuple[int, int] = (0, 0)  # low states and poses taken
    _started: float = 0.0
    _goals: Goals | None = None
    _buttons: frozenset[str] = frozenset()

    def ask(self, event: Event) -> None:
        """The operator's wish; from any thread."""
        self.asks.put(event)

    def stream(self, now: float) -> MotorCommand:
        """Every 2 ms: take what has come, watch, send."""
        self._take_low_state(now)
        self._take_pose(now)
        before = self.safety.state
        self._answer(now)
        command = self.safety.command(now, self._reading(now), self._targets.value)
        self._announce(before)
        self.link.send(encode_command(self.robot, command))
        return command

    def control(self, now: float) -> None:
        """Every 20 ms: the policy's next targets."""
        goals, state = self._goals, self._state
        if self.safety.state is not State.RUNNING or goals is None or state is None:
            return
        step = round((now - self._started) / CONTROL_DT)
        self._note_arrivals(goals, state, step)
        if finished(goals, np.array([step]))[0]:
            self.ask(Event.FINISH)
            return
        targets = self.player.step(state, goals, step)
        if np.isfinite(targets).all():  # otherwise its age will tell
            self._targets.put(targets, now)

    def _take_low_state(self, now: float) -> None:
        count, record = self.link.states.count, self.link.states.value
        if record is None or count == self._seen[0]:
            return
        self._seen = (count, self._seen[1])
        low = self._low = decode_state(self.robot, record)
        self.estimator.predict(now, low.quaternion, low.gyroscope, low.accelerometer)
        if self.estimator.started:
            self._state = RobotState(self.estimator.estimate(), low.joint_angles, low.joint_velocities)
        self._press(low.buttons)

    def _take_pose(self, now: float) -> None:
        count, pose = self.source.poses.count, self.source.poses.value
        if pose is None or count == self._seen[1]:
            return
        self._seen = (self._seen[0], count)
        self.estimator.correct(now, pose, may_jump=self.safety.state is not State.RUNNING)

    def _press(self, buttons: frozenset[str]) -> None:
        pressed, self._buttons = buttons - self._buttons, buttons
        if EMERGENCY_BUTTON in buttons:
            self.emergency = self.emergency or "remote"
        for button, event in ((START_BUTTON, Event.START), (STOP_BUTTON, Event.STOP)):
            if button in pressed:
                self.ask(event)

    def _answer(self, now: float) -> None:
        while not self.asks.empty() and self._low is not None:
            event = self.asks.get()
            if event is Event.START and not self._may_start(now):
                continue
            self.safety.tell(event, now, self._low.joint_angles)

    def _may_start(self, now: float) -> bool:
        """With a fresh pose; the script then begins where the robot stands."""
        if self._state is None or now - self.estimator.last_pose > self.safety.limits.pose_age:
            self.say("no start: no pose of the robot")
            return False
        if self.safety.state is State.READY:
            base = self._state.base
            yaw = np.atleast_1d(geometry.yaw_of(base.orientation))
            self._goals = script_goals(self.script, base.position[None], yaw)
            self._started = now
            self.player.reset()
        return True

    def _reading(self, now: float) -> Reading:
        low, base = self._low, self._state
        if low is None:
            nothing = np.zeros(12)
            return Reading(
                0.0, np.inf, 0.0, nothing, nothing, np.array([0.0, 0.0, -1.0]), 0.0, 100.0, 0.0, self.emergency
            )
        return Reading(
            state_age=self.link.states.age(now),
            pose_age=now - self.estimator.last_pose,
            policy_age=now - max(self._started, now - self._targets.age(now)),
            joint_angles=low.joint_angles,
            joint_velocities=low.joint_velocities,
            down=geometry.projected_gravity(geometry.normalize(low.quaternion)),
            height=np.nan if base is None else float(base.base.position[2]),
            battery=low.battery,
            motor_temperature=low.motor_temperature,
            emergency=self.emergency,
        )

    def _announce(self, before: State) -> None:
        state = self.safety.state
        if state is not before:
            who = f" ({self.emergency})" if self.emergency else ""
            why = f": {self.safety.reason}{who}" if self.safety.reason else ""
            self.say(f"{before.value} -> {state.value}{why}")

    def _note_arrivals(self, goals: Goals, state: RobotState, step: int) -> None:
        """At the first control step that is not before a keyframe's time."""
        due = int((goals.step[0] <= step).sum())
        if due == len(self.arrivals):
            return
        base = state.base
        errors = goal_errors(goals, base.position[None], base.orientation[None], state.joint_angles[None])[0]
        for keyframe in range(len(self.arrivals), due):
            self.arrivals.append(Arrival(keyframe, step, errors[keyframe]))
