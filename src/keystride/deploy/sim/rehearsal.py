"""The whole deployment against a simulated robot in one process, without network or threads, as fast as the machine allows.

The tests use it, the self-test compares runs over the network with it, and the dry run prints what it would have sent.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keystride.deploy.clock import Lateness, Latest
from keystride.deploy.deployment import Deployment
from keystride.deploy.fault_checks import SPEED_MEMORY, DeployState, Event, Limits
from keystride.deploy.launch import Plan, limits_for
from keystride.deploy.log.flight import FlightLog
from keystride.deploy.log.status import StatusStream
from keystride.deploy.players import ScriptPlayer
from keystride.deploy.pose.estimator import OdometryPoses
from keystride.deploy.pose.source import Mounting, Pose, Poses
from keystride.deploy.preflight import checked_script, open_player, outside, try_player
from keystride.deploy.safety import STREAM_PERIOD, MotorCommand, Safety
from keystride.deploy.session import Outcome
from keystride.deploy.sim.disturbances import Disturbances
from keystride.deploy.sim.robot import PHYSICS_STEP, Noise, SimulatedGo2
from keystride.deploy.unitree.codec import (
    CHECK_MODE,
    LOOPBACK,
    RELEASE_MODE,
    STAND_DOWN,
    decode_command,
    encode_command,
    encode_state,
)
from keystride.deploy.unitree.wire_format import LOW_CMD, Record, motor_order, seal, to_wire
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.script import Script
from keystride.robot.description import Floats, Robot

PRINT_EVERY = 0.5  # s between the commands that a dry run prints
MAX_DRY_RUN = 3600.0  # s that a dry run may take
POSE_EVERY_TICKS = 4  # stream ticks per pose: 125 Hz
POSE_LATE = 4  # stream ticks of latency: 8 ms


class DirectLink:
    """Passes commands directly to the simulated robot."""

    def __init__(self, robot: SimulatedGo2) -> None:
        self.robot = robot
        self.states: Latest[Record] = Latest()
        self.other_commands = 0
        self.other_states = 0
        self.deaf = False  # whether the robot ignores commands

    def send(self, command: Record) -> None:
        if not self.deaf:
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
    _captured: deque[Pose] = field(default_factory=lambda: deque(maxlen=POSE_LATE // POSE_EVERY_TICKS + 1))

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
        if self.tick % POSE_EVERY_TICKS == 0:
            self._capture(now)
        self.command = self.deployment.stream(now)
        if self.tick % round(CONTROL_DT / STREAM_PERIOD) == 0:
            self.deployment.control(now)
        self.world.step(round(STREAM_PERIOD / PHYSICS_STEP))
        self.tick += 1

    def _report(self, now: float) -> None:
        look = self.disturbances.get
        record = encode_state(self.world.robot, self.world.sense(), self.world.steps)
        record = self.disturbances.disturb_state(record, now)
        if not look("states_off", now):
            self.link.states.put(record, now)
        self.link.other_commands += int(look("other_writer", now))
        self.link.other_states += int(look("other_robot", now))
        self.link.deaf = look("deaf", now)
        self.deployment.motion_service = look("motion_service", now) or ""

    def _capture(self, now: float) -> None:
        self._captured.append(Pose(*self.world.captured(), time=now, sequence=self.tick))
        if len(self._captured) < (self._captured.maxlen or 0):  # the first pose has not arrived yet
            return
        pose = self.disturbances.disturb_pose(self._captured[0], now, self.world.random)
        if pose is not None and not isinstance(self.poses, OdometryPoses):
            position = np.full(3, np.nan) if self.disturbances.get("pose_nan", now) else pose.position
            self.poses.receive(position, pose.orientation, pose.time, pose.sequence, now)

    def until(self, state: DeployState, seconds: float) -> bool:
        """Step until a state is reached; return whether it was reached in time."""
        limit = self.now + seconds
        while self.deployment.safety.state is not state and self.now < limit:
            self.step()
        return self.deployment.safety.state is state

    def play(self, seconds: float) -> DeployState:
        """Stand up, play and lie down, as an operator would; return the final state."""
        self.advance(0.1)
        self.deployment.ask(Event.STAND)
        if self.until(DeployState.READY, 5.0):
            self.advance(0.5)
            self.deployment.ask(Event.START)
        self.until(DeployState.DAMPING, seconds)
        return self.deployment.safety.state


@dataclass
class WalkStatistics:
    """Odometry drift and joint speeds while the script is played, measured against the simulator's truth."""

    rehearsal: Rehearsal
    peak_speed: float = 0.0  # share of the rated speed, the fastest joint
    mean_speed: float = 0.0  # the same, averaged as in the fault check
    _path: list[tuple[Floats, Floats]] = field(default_factory=list)  # (2,) true and odometry position

    def update(self) -> None:
        """Include the present state; call this after every step."""
        deployment, world = self.rehearsal.deployment, self.rehearsal.world
        if deployment.safety.state is not DeployState.RUNNING:
            return
        self._path.append((world.data.qpos[:2].copy(), deployment.odometry.position[:2].copy()))
        speed = float((np.abs(world.data.qvel[6:]) / world.robot.speed_limit).max())
        self.peak_speed = max(self.peak_speed, speed)
        self.mean_speed = max(self.mean_speed, float(deployment.trend.mean_speed.max()))

    @property
    def walked(self) -> float:
        """Length of the true path over the ground, m."""
        places = np.array([truth for truth, _ in self._path]).reshape(-1, 2)
        return float(np.linalg.norm(np.diff(places, axis=0), axis=-1).sum())

    @property
    def drift(self) -> float:
        """Distance between the true and the odometry position at the end, both measured from the start, m."""
        if not self._path:
            return 0.0
        (first, felt_first), (last, felt_last) = self._path[0], self._path[-1]
        return float(np.linalg.norm((last - first) - (felt_last - felt_first)))

    @property
    def drift_per_metre(self) -> float:
        return self.drift / self.walked if self.walked else 0.0


def rehearse(
    robot: Robot,
    player: ScriptPlayer,
    script: Script,
    *,
    noise: Noise | None = None,
    posture: str = "lying",
    seed: int = 0,
    poses: Poses | None = None,
    limits: Limits | None = None,
    log: FlightLog | None = None,
) -> Rehearsal:
    """Connect a deployment to a simulated robot; poses come from simulated motion capture unless `poses` is given."""
    world = SimulatedGo2(robot, posture=posture, noise=noise or Noise(), seed=seed)
    link, poses, events = DirectLink(world), poses or Poses(Mounting()), []
    safety = Safety(robot, player.gains, limits or Limits())
    deployment = Deployment(robot, link, poses, player, script, safety, say=events.append, log=log)
    return Rehearsal(deployment, world, link, poses, events)


def dry_run(plan: Plan, robot: Robot) -> bool:
    """Play the plan in simulation and print what would be sent; return whether the script was played."""
    script = checked_script(plan.script, robot, doubtful=plan.doubtful)
    player = open_player(plan.policy, robot, LOOPBACK[0], inbetween=plan.inbetween)
    for line in outside(plan.script, player, script, allowed=plan.outside_training):
        print(f"warning: {line}", flush=True)
    try_player(plan.policy, player, script, robot)
    poses, limits = OdometryPoses() if plan.pose == "odometry" else None, limits_for(plan, script, robot)
    rehearsal = rehearse(robot, player, script, poses=poses, limits=limits)
    print(f"dry run for {plan.interface}, domain {plan.domain}, poses from {plan.pose}; nothing is sent", flush=True)
    print(f"rt/api/motion_switcher/request: {CHECK_MODE}, and while a motion service is active")
    print(f"rt/api/sport/request: {STAND_DOWN}, rt/api/motion_switcher/request: {RELEASE_MODE}")
    print(f"rt/lowcmd every {1000 * STREAM_PERIOD:g} ms, motors in the order of the robot's board, rad:", flush=True)
    walk = _play(rehearsal, StatusStream(plan.status))
    print(f"leg odometry: {walk.drift:.3f} m off after {walk.walked:.2f} m, {walk.drift_per_metre:.3f} m per metre")
    print(f"fastest joint: {walk.peak_speed:.2f} of its rated speed, fault at {limits.joint_speed_share:g}; ", end="")
    print(f"averaged over {SPEED_MEMORY:g} s: {walk.mean_speed:.2f}, fault at {limits.joint_speed_mean:g}")
    print(f"ends in {rehearsal.deployment.safety.state.value} after {rehearsal.now:.1f} s", flush=True)
    return rehearsal.deployment.safety.played


def _play(rehearsal: Rehearsal, status: StatusStream) -> WalkStatistics:
    deployment, printed = rehearsal.deployment, 0
    walk = WalkStatistics(rehearsal)
    deployment.ask(Event.STAND)
    while deployment.safety.state is not DeployState.DAMPING and rehearsal.now < MAX_DRY_RUN:
        rehearsal.step()
        walk.update()
        if deployment.safety.state is DeployState.READY and rehearsal.tick % 100 == 0:
            deployment.ask(Event.START)
        for event in rehearsal.events[printed:]:
            print(f"{rehearsal.now:7.3f} s  {event}", flush=True)
        changed, printed = printed < len(rehearsal.events), len(rehearsal.events)
        if changed:
            status.report_state(deployment)
        if changed or rehearsal.tick % round(PRINT_EVERY / STREAM_PERIOD) == 0:
            print(_command_line(rehearsal), flush=True)
    safety = deployment.safety
    damped = safety.state is DeployState.DAMPING
    status.end(deployment, Outcome(safety.state, safety.played, damped, safety.reason, Lateness(), Lateness()))
    return walk


def _command_line(rehearsal: Rehearsal) -> str:
    command, robot = rehearsal.command, rehearsal.world.robot
    assert command is not None
    record = encode_command(robot, command)
    seal(record)
    order = motor_order(robot)
    gains = f"kp {command.stiffness[0]:g} kd {command.damping[0]:g}"
    angles = np.array2string(command.target[order], precision=2, suppress_small=True, max_line_width=200)
    shown = f"q {angles} " if command.stiffness.any() else ""
    size = len(to_wire(LOW_CMD, record))
    return f"{rehearsal.now:7.3f} s  {shown}{gains}  crc {int(record['crc']):08x}  {size} bytes"
