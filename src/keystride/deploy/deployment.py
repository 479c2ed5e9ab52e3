"""The deployment itself: reads low states and poses, sends safe commands at 500 Hz and runs the policy at 50 Hz.

Two functions do the work, `stream` and `control`. Neither reads a clock, so they run on threads with a robot and step by
step with a simulation. Only `stream` uses the safety layer and the estimator. It sends the command before it prints or
logs anything, so nothing that can block or fail comes between a decision and its command.
"""

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from keystride import geometry
from keystride.deploy.clock import Latest
from keystride.deploy.consistency import (
    HeadingCheck,
    MotorObedience,
    PoseMonitor,
    SensorConsistency,
    StateFreshness,
)
from keystride.deploy.fault_checks import DeployState, Event, MotorTrend, Reading
from keystride.deploy.log.flight import FlightLog
from keystride.deploy.players import MeasuredState, ScriptPlayer
from keystride.deploy.pose.estimator import Estimator, LegOdometry
from keystride.deploy.pose.source import PoseSource
from keystride.deploy.safety import STOPPED_BY_OPERATOR, MotorCommand, Safety
from keystride.deploy.unitree.codec import LowReading, decode_state, encode_command
from keystride.deploy.unitree.wire_format import Record
from keystride.keyframes.goals import CONTROL_DT, Goals, goal_errors
from keystride.keyframes.resolve import finished, script_goals
from keystride.keyframes.script import Script
from keystride.robot.description import Floats, Robot

EMERGENCY_BUTTON, START_BUTTON, STOP_BUTTON = "B", "start", "X"
CONFIRMED = 20  # consecutive brake commands, of which one must have arrived if the link works
LIMP_TORQUE = 0.7  # N m, largest mean difference from the torque of a braked motor
LIMP_TIME = 0.1  # s for which low states must show braked motors
CALM_BEFORE_START = 0.5  # s before the start in which no pose may have been rejected

_STATES = list(DeployState)
_NOTHING = Reading(  # before the first low state
    state_age=0.0,
    state_valid=True,
    imu_age=0.0,
    pose_age=np.inf,
    pose_silence=np.inf,
    policy_age=0.0,
    command_gap=0.0,
    joint_angles=np.zeros(12),
    joint_velocities=np.zeros(12),
    mean_speed=np.zeros(12),
    torques=np.zeros(12),
    motors_on=True,
    lost_packets=0.0,
    down=np.array([0.0, 0.0, -1.0]),
    height=0.0,
    distance=0.0,
    battery=100.0,
    battery_status=0,
    motor_temperature=0.0,
)


def _down(quaternion: Floats) -> Floats:
    """Return the downward unit vector in the base frame, (3,). Plain arithmetic, because this runs 500 times per second."""
    w, x, y, z = quaternion / max(float(np.sqrt(quaternion @ quaternion)), 1e-9)
    return np.array([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1.0])


class Link(Protocol):
    @property
    def states(self) -> Latest[Record]: ...

    @property
    def other_commands(self) -> int:
        """Number of low commands that other programs have sent."""
        ...

    @property
    def other_states(self) -> int:
        """Number of low states that other robots have sent."""
        ...

    def send(self, command: Record) -> None: ...


@dataclass(frozen=True)
class Arrival:
    """Error at a keyframe's time, by the robot's own estimate."""

    keyframe: int
    step: int
    error: Floats  # (18,), see `goal_errors`


@dataclass
class Deployment:
    robot: Robot
    link: Link
    source: PoseSource
    player: ScriptPlayer
    script: Script
    safety: Safety
    estimator: Estimator = field(default_factory=Estimator)
    monitor: PoseMonitor = field(default_factory=PoseMonitor)
    say: Callable[[str], None] = print
    log: FlightLog | None = None
    heartbeat: Callable[[float], str] = lambda now: ""  # called after every command; returns a guard's problem, if any
    emergency: str | None = None  # may be set from any thread to end in damping
    motion_service: str = ""  # set from another thread when the robot's motion service has taken the motors again
    arrivals: list[Arrival] = field(default_factory=list)
    asks: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)
    commands_sent: int = 0
    brakes_sent: int = 0  # consecutive commands without stiffness
    limp: bool = False  # whether low states show that the motors follow the brake commands; required to leave it
    unknown: str = ""  # why the robot's state is unknown although it is being braked
    interrupts: int = 0  # signals that asked this program to end
    sent_at: float | None = None  # when the last command was sent
    started: float = 0.0  # when the script began
    walked: float = 0.0  # m walked while running, by leg odometry
    rejection: str = ""  # why the last rejected pose was rejected
    _targets: Latest[Floats] = field(default_factory=Latest)
    _state: MeasuredState | None = None
    _low: LowReading | None = None
    _commanded: Floats | None = None  # the target last sent; None without stiffness
    _fresh: StateFreshness = field(default_factory=StateFreshness)
    _seen: tuple[int, int] = (0, 0)  # low states and poses processed
    _heard: tuple[int, float] = (0, -np.inf)  # messages from the pose source, and when the last one arrived
    _rejected_at: float = -np.inf  # when a pose was last rejected
    _start: Floats = field(default_factory=lambda: np.zeros(3))  # where the script began
    _goals: Goals | None = None
    _buttons: frozenset[str] = frozenset()
    _limp_since: float = np.inf
    _guards_brake: bool = False  # without heartbeats the guards brake, so commands from elsewhere are theirs
    _reported: int = 0  # number of later faults that were reported
    _others: int | None = None  # commands of other programs before our first one

    def __post_init__(self) -> None:
        self.odometry = LegOdometry(self.robot)
        self.trend = MotorTrend(self.robot.speed_limit)
        self.consistency = SensorConsistency()
        self.obedience = MotorObedience(self.robot)
        self.heading = HeadingCheck()

    def ask(self, event: Event) -> None:
        """Queue an event from the operator; may be called from any thread."""
        self.asks.put(event)

    def report(self, now: float, text: str) -> None:
        """Print a message and add it to the flight log; may be called from any thread."""
        self.say(text)
        if self.log is not None:
            self.log.note(now, text)

    def latest(self) -> tuple[LowReading | None, MeasuredState | None]:
        """Return the last low state and the estimated state; may be called from any thread."""
        return self._low, self._state

    @property
    def heard_at(self) -> float:
        """Time at which the robot's state last really changed."""
        return self._fresh.tick_at

    def stream(self, now: float, late: float = 0.0) -> MotorCommand:
        """Process new states and poses, run the fault checks and send a command; called every 2 ms."""
        self.listen(now)
        self._take_pose(now)
        before = self.safety.state
        self._answer(now)
        reading = self._reading(now)
        target = self._targets.value
        command = self.safety.command(now, reading, target)
        self.send(now, command)
        self._announce(now, before)
        self._write_row(now, late, reading, target, command)
        return command

    def send(self, now: float, command: MotorCommand) -> None:
        """Send a command, and then a heartbeat to the guards.

        Without low states it is unknown whether commands arrive. No heartbeat is sent then, so that a guard on the
        robot's own computer brakes.
        """
        self.link.send(encode_command(self.robot, command))
        self.obedience.sent(command)
        self.sent_at = now
        self._commanded = command.target if command.stiffness.any() else None
        self.commands_sent += 1
        self.brakes_sent = 0 if command.stiffness.any() else self.brakes_sent + 1
        if self._silent(now):
            self._guards_brake = True
            return
        trouble = self.heartbeat(now)
        if trouble and not self.emergency:
            self.emergency = trouble

    def control(self, now: float) -> None:
        """Compute the policy's next targets; called every 20 ms."""
        goals, state = self._goals, self._state
        if self.safety.state is not DeployState.RUNNING or goals is None or state is None:
            return
        step = round((now - self.started) / CONTROL_DT)
        self._note_arrivals(goals, state, step)
        if finished(goals, np.array([step]))[0]:
            self.ask(Event.FINISH)
            return
        targets = self.player.step(state, goals, step)
        if np.isfinite(targets).all():  # otherwise the "policy too late" check stops the robot
            self._targets.put(targets, now)

    def listen(self, now: float) -> None:
        """Process a new low state, if there is one, and note whether the robot is limp."""
        self._take_low_state(now)
        self.limp = now - self._limp_since >= LIMP_TIME and not self._silent(now)

    def _silent(self, now: float) -> bool:
        return not now - self._fresh.tick_at <= self.safety.limits.state_age

    def _take_low_state(self, now: float) -> None:
        count, record = self.link.states.count, self.link.states.value
        if record is None or count == self._seen[0]:
            return
        came, self._seen = count - self._seen[0], (count, self._seen[1])
        low = decode_state(self.robot, record)
        if not self._fresh.update(now, low):
            return
        self._low = low
        self.trend.update(now, low.joint_velocities, low.lost)
        self.obedience.update(now, low)
        limp = self.brakes_sent >= CONFIRMED and self.obedience.error < LIMP_TORQUE
        self._limp_since = min(self._limp_since, now) if limp else np.inf
        self._press(low.buttons)
        if not low.valid:  # a fault check stops the robot; keep bad values out of the filters
            return
        self.consistency.update(now, low, self._commanded, came)
        walked = self.odometry.walked
        self.odometry.update(now, low)
        self.heading.follow(now, self.odometry.orientation)
        self.source.follow(now, self.odometry)
        self.estimator.predict(now, low.quaternion, low.gyroscope, low.accelerometer)
        if self.safety.state is DeployState.RUNNING:
            self.walked += self.odometry.walked - walked
        if self.estimator.started:
            self._state = MeasuredState(self.estimator.estimate(), low.joint_angles, low.joint_velocities)

    def _take_pose(self, now: float) -> None:
        count, pose = self.source.poses.count, self.source.poses.value
        heard = count + self.source.rejected
        if heard != self._heard[0]:
            self._heard = (heard, now)
        if pose is None or count == self._seen[1] or self._low is None:
            return
        self._seen = (self._seen[0], count)
        running = self.safety.state is DeployState.RUNNING
        problem = self.monitor.contradiction(now, pose, self.odometry)
        if not problem and not self.estimator.correct(now, pose, may_jump=not running):
            problem = "position jumped"
        if not problem:
            self.heading.update(now, pose, self.odometry, self.estimator.config.pose_latency + pose.delay)
        else:
            self.heading.restart()
            self.rejection, self._rejected_at = problem, now
            self.estimator.rejected += 1
            if not running:  # the robot may have been carried, so start again from here
                self.monitor.restart()

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
            reason = STOPPED_BY_OPERATOR if event is Event.STOP else ""
            self.safety.process(event, now, self._low.joint_angles, reason)

    def _may_start(self, now: float) -> bool:
        """Return whether poses are fresh and accepted; if so, place the script where the robot stands."""
        if self._state is None or now - self.estimator.last_pose > self.safety.limits.pose_age:
            self.report(now, "cannot start: no pose of the robot")
            return False
        if now - self._rejected_at < CALM_BEFORE_START:
            self.report(now, f"cannot start: pose rejected, {self.rejection}")
            return False
        if self.safety.state is DeployState.READY:
            base = self._state.base
            yaw = np.atleast_1d(geometry.yaw_of(base.orientation))
            self._goals = script_goals(self.script, base.position[None], yaw, robot=self.robot)
            self.started, self._start = now, base.position
            self.player.reset()
        return True

    def _reading(self, now: float) -> Reading:
        low, base = self._low, self._state
        others = self.link.other_commands
        self._others = others if self._others is None else self._others
        if low is None:
            return _NOTHING
        place = np.full(3, np.nan) if base is None else base.base.position
        return Reading(
            state_age=now - self._fresh.tick_at,
            state_valid=low.valid,
            imu_age=self._fresh.tick_at - self._fresh.imu_at,
            pose_age=now - self.estimator.last_pose,
            pose_silence=now - self._heard[1],
            policy_age=now - max(self.started, now - self._targets.age(now)),
            command_gap=0.0 if self.sent_at is None else now - self.sent_at,
            joint_angles=low.joint_angles,
            joint_velocities=low.joint_velocities,
            mean_speed=self.trend.mean_speed,
            torques=low.torques,
            motors_on=low.motors_on,
            lost_packets=self.trend.lost_packets,
            motor_frozen=self.consistency.frozen,
            joint_conflict=self.consistency.joint,
            imu_conflict=self.consistency.imu,
            clock_conflict=self.consistency.clock,
            down=_down(low.quaternion),
            height=float(place[2]),
            distance=float(np.hypot(*(place - self._start)[:2])),
            battery=low.battery,
            battery_status=low.battery_status,
            motor_temperature=low.motor_temperature,
            state_interval=self._fresh.interval,
            ramp_lag=self.safety.ramp_lag(now, low.joint_angles),
            torque_error=self.obedience.error,
            other_writer=others != self._others and not self._guards_brake,
            heading_wrong=bool(self.heading.problem),
            other_robot=self.link.other_states > 0,
            motion_service=self.motion_service,
            emergency=self.emergency,
        )

    def _announce(self, now: float, before: DeployState) -> None:
        safety, state = self.safety, self.safety.state
        if state is not before:
            cause = safety.cause or safety.reason
            why = f": {self._in_detail(cause)}" if cause else ""
            first = f", after {safety.reason}" if cause != safety.reason else ""
            self.report(now, f"{before.value} -> {state.value}{why}{first}")
        for reason in safety.later[self._reported :]:
            if state is before or reason != safety.cause:
                self.report(now, f"also: {self._in_detail(reason)}")
        self._reported = len(safety.later)

    def _in_detail(self, reason: str) -> str:
        details = {"emergency stop": self.emergency, "pose rejected": self.rejection}
        detail = (details | {"heading of the poses is wrong": self.heading.problem}).get(reason)
        return f"{reason} ({detail})" if detail else reason

    def _write_row(self, now: float, late: float, reading: Reading, target: Floats | None, sent: MotorCommand) -> None:
        low, state, pose = self._low, self._state, self.source.poses.value
        if self.log is None or low is None:
            return
        row = self.log.row()
        row["time"], row["late"], row["tick"] = now, late, low.tick
        row["state"] = _STATES.index(self.safety.state)
        row["state_age"], row["pose_age"] = reading.state_age, reading.pose_age
        row["joint_angles"], row["joint_velocities"], row["torques"] = (
            low.joint_angles,
            low.joint_velocities,
            low.torques,
        )
        row["quaternion"], row["gyroscope"], row["accelerometer"] = low.quaternion, low.gyroscope, low.accelerometer
        row["battery"], row["temperature"] = low.battery, low.motor_temperature
        row["odometry"] = self.odometry.position
        row["target"], row["stiffness"], row["damping"] = sent.target, sent.stiffness, sent.damping
        row["policy_target"] = np.nan if target is None or self.safety.state is not DeployState.RUNNING else target
        row["pose_count"], row["pose_rejected"] = self.source.poses.count, self.estimator.rejected
        row["pose_position"] = np.nan if pose is None else pose.position
        row["pose_orientation"] = np.nan if pose is None else pose.orientation
        row["base_position"] = np.nan if state is None else state.base.position
        row["base_orientation"] = np.nan if state is None else state.base.orientation
        row["base_velocity"] = np.nan if state is None else state.base.linear_velocity

    def _note_arrivals(self, goals: Goals, state: MeasuredState, step: int) -> None:
        """Record the error of each keyframe at the first control step at or after its time."""
        due = int((goals.step[0] <= step).sum())
        if due == len(self.arrivals):
            return
        base = state.base
        errors = goal_errors(goals, base.position[None], base.orientation[None], state.joint_angles[None])[0]
        for keyframe in range(len(self.arrivals), due):
            self.arrivals.append(Arrival(keyframe, step, errors[keyframe]))
