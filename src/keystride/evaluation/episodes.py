"""Simulate many robots with one controller, each with its own start and keyframes, and measure the error at each keyframe."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT, Goals, goal_errors, used
from keystride.physics.simulator import CpuSimulator, Randomization, Simulator, StartState, State, standing_start
from keystride.policy.guide import guided
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.task.rewards import error_sizes
from keystride.task.terminations import fallen

SECONDS_AFTER = 1.0  # an episode ends this long after its last keyframe, as in training
NEVER_FELL = -1

Progress = Callable[[float], None]  # called with the fraction of control steps done

# In the order of goal COMPONENTS, followed by the height, which is part of the distance but has its own threshold too.
METRICS = ("distance_m", "roll_deg", "pitch_deg", "yaw_deg", "posture_deg", "height_m")


@dataclass(frozen=True)
class Thresholds:
    """The largest errors with which a keyframe counts as met, unless the robot has fallen. Absent components do not count."""

    distance_m: float = 0.15
    roll_deg: float = 10.0
    pitch_deg: float = 10.0
    yaw_deg: float = 15.0
    posture_deg: float = 10.0
    height_m: float = 0.05

    def __str__(self) -> str:
        return (
            f"{self.distance_m:g} m, height {self.height_m:g} m, roll and pitch {self.roll_deg:g} deg, yaw {self.yaw_deg:g} deg, "
            f"posture {self.posture_deg:g} deg"
        )


THRESHOLDS = Thresholds()


class Controller(Protocol):
    """A `Policy`, or anything else that turns states and keyframes into joint targets."""

    def step(self, state: Any, goals: Goals, now: Any, previous_action: Floats) -> tuple[Floats, Floats]: ...

    def resting_action(self, joint_angles: Floats) -> Floats: ...


@dataclass(frozen=True)
class World:
    """The simulated world: randomization, ground friction, seed and threads."""

    randomization: Randomization | None = None
    friction: float | None = None  # the same for all robots; None: the model's own
    seed: int = 0  # of the randomization
    threads: int = 0  # 0: one per core; results do not depend on it


@dataclass(frozen=True)
class Trace:
    """The trajectories of E robots: T + 1 states and T joint targets."""

    position: Floats  # (T + 1, E, 3)
    orientation: Floats  # (T + 1, E, 4)
    joint_angles: Floats  # (T + 1, E, 12)
    joint_velocities: Floats  # (T + 1, E, 12)
    linear_velocity: Floats  # (T + 1, E, 3) world
    joint_targets: Floats  # (T, E, 12)


@dataclass(frozen=True)
class EpisodeRollout:
    """The simulated episodes of E robots with up to K keyframes each."""

    goals: Goals  # (E, K)
    trace: Trace
    end: NDArray[np.int64]  # (E,) control step at which each episode ends
    fell: NDArray[np.int64]  # (E,) control step of the fall, or NEVER_FELL

    @property
    def falls(self) -> int:
        return int((self.fell != NEVER_FELL).sum())

    @property
    def errors(self) -> Floats:
        """Return the errors (E, K, 6) when each keyframe is due. A fallen robot is measured where it lies; no episode is excluded."""
        return errors_when_due(self.goals, self.trace)

    @property
    def met(self) -> NDArray[np.bool_]:
        """Return (E, K) whether each keyframe is within the thresholds and due before any fall."""
        upright = (self.fell[:, None] == NEVER_FELL) | (self.goals.step < self.fell[:, None])
        return met(self.errors) & upright

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Return (E, K) whether each keyframe was due after the robot had fallen."""
        return used(self.goals) & (self.fell[:, None] != NEVER_FELL) & (self.goals.step >= self.fell[:, None])


def run_episodes(
    controller: Controller,
    robot: Robot,
    start: StartState,
    goals: Goals,
    *,
    world: World | None = None,
    progress: Progress | None = None,
    inbetween: bool = True,
    seconds_after: float = SECONDS_AFTER,
) -> EpisodeRollout:
    """Simulate until `seconds_after` the last keyframe. The same arguments give bitwise identical results.

    Gaps longer than the policy was trained on are filled with waypoints, unless `inbetween` is False.
    """
    controller = guided(controller, robot, inbetween=inbetween)
    simulator = make_simulator(robot, len(goals.step), world or World())
    simulator.reset(np.arange(len(goals.step)), start)
    end = episode_ends(goals, seconds_after)
    trace, fell = _simulate(controller, robot, simulator, goals, int(end.max()), progress)
    return EpisodeRollout(goals, trace, end, np.where(fell <= end, fell, NEVER_FELL))


def make_simulator(robot: Robot, environments: int, world: World) -> Simulator:
    simulator = CpuSimulator(
        robot, environments, randomization=world.randomization, seed=world.seed, threads=world.threads
    )
    if world.friction is not None:
        simulator.set_friction(world.friction)
    return simulator


def episode_ends(goals: Goals, seconds_after: float = SECONDS_AFTER) -> NDArray[np.int64]:
    """Return the control step (E,) at which each episode ends."""
    return np.where(used(goals), goals.step, 0).max(axis=1) + round(seconds_after / CONTROL_DT)


def keyframe_errors(goals: Goals, position: Floats, orientation: Floats, joints: Floats) -> Floats:
    """Return the errors (E, K, 6) in the order and units of METRICS, NaN where a keyframe lacks the component.

    The distance is Euclidean, or horizontal if the keyframe has no height. Angle errors are wrapped and absolute, and the
    posture error is the root mean square over the joints. Each of the E poses is compared with all keyframes of its robot.
    """
    sizes = error_sizes(goal_errors(goals, position, orientation, joints))  # m, rad, rad, rad, rad (norm)
    degree = np.degrees(1.0)
    units = np.array([1.0, degree, degree, degree, degree / np.sqrt(joints.shape[-1])])
    errors = np.where(goals.presence, sizes * units, np.nan)
    height = np.abs(goals.position[..., 2] - position[:, None, 2])
    asked = goals.presence[..., 0] & goals.height
    return np.concatenate([errors, np.where(asked, height, np.nan)[..., None]], axis=-1)


def met(errors: Floats, thresholds: Thresholds = THRESHOLDS) -> NDArray[np.bool_]:
    """Return (...,) whether all non-NaN errors (..., 6) are within the thresholds; False if all are NaN."""
    absent = np.isnan(errors)
    within = np.where(absent, 0.0, errors) <= np.array(astuple(thresholds))
    return np.all(within, axis=-1) & ~np.all(absent, axis=-1)


def errors_when_due(goals: Goals, trace: Trace) -> Floats:
    """Return the errors (E, K, 6) of the robots at the control step when each keyframe is due."""
    columns = [
        keyframe_errors(goals[:, k : k + 1], *_poses_at(trace, goals.step[:, k]))[:, 0]
        for k in range(goals.step.shape[1])
    ]
    return np.stack(columns, axis=1)


def _poses_at(trace: Trace, step: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return each robot's pose at its own step (E,)."""
    at = np.minimum(step, len(trace.position) - 1), np.arange(len(step))
    return trace.position[at], trace.orientation[at], trace.joint_angles[at]


def _simulate(
    controller: Controller, robot: Robot, simulator: Simulator, goals: Goals, steps: int, progress: Progress | None
) -> tuple[Trace, NDArray[np.int64]]:
    state = simulator.state()
    action = controller.resting_action(state.joint_angles)
    states, targets = [state], []
    fell = np.full(simulator.environments, np.iinfo(np.int64).max)
    for step in range(steps):
        target, action = controller.step(state, goals, np.full(simulator.environments, step), action)
        state = frozen_where_diverged(simulator.advance(target), state)
        fell = np.where(fallen(robot, state) | state.diverged, np.minimum(fell, step + 1), fell)
        states.append(state)
        targets.append(target)
        if progress is not None:
            progress((step + 1) / steps)
    return _trace(states, targets), fell


def frozen_where_diverged(state: State, before: State) -> State:
    """Return the state, with diverged simulations replaced by their last valid state. They count as falls."""
    if not state.diverged.any():
        return state
    kept = {
        field.name: np.where(_expanded(state.diverged, values), getattr(before, field.name), values)
        for field in fields(State)
        if field.name != "diverged"
        for values in [getattr(state, field.name)]
    }
    return replace(state, **kept)


def _expanded(flags: NDArray[np.bool_], values: Floats) -> NDArray[np.bool_]:
    """Return (E, 1, ...) flags that broadcast with values (E, ...)."""
    return flags.reshape(-1, *[1] * (values.ndim - 1))


def _trace(states: list[State], targets: list[Floats]) -> Trace:
    def stacked(name: str) -> Floats:
        return np.stack([getattr(state, name) for state in states])

    names = [field.name for field in fields(Trace) if field.name != "joint_targets"]
    none = np.zeros((0, *states[0].joint_angles.shape))
    return Trace(*map(stacked, names), joint_targets=np.stack(targets) if targets else none)


@dataclass(frozen=True)
class StanceNoise:
    """Half-widths of uniform perturbations of the initial state.

    Physics and policy are deterministic: without them all episodes of a scenario would be identical.
    """

    joints: float = 0.05  # rad
    joint_speed: float = 0.1  # rad/s
    velocity: float = 0.05  # m/s
    turning: float = 0.05  # rad/s
    tilt: float = 0.01  # rad of roll and pitch; the yaw is exact, because goals are defined relative to it


def exact_stance(robot: Robot, count: int = 1) -> StartState:
    """Return robots in their stance at the origin, facing x, at rest."""
    return standing_start(count, float(standing_height(robot, robot.stance)), robot.stance)


def noisy_stance(robot: Robot, count: int, random: np.random.Generator, noise: StanceNoise | None = None) -> StartState:
    """Return robots at the origin, facing x, close to their stance and to rest, with their feet on the ground."""
    noise = noise or StanceNoise()

    def uniform(width: float, columns: int) -> np.ndarray:
        return random.uniform(-width, width, size=(count, columns))

    joints = np.clip(robot.stance + uniform(noise.joints, len(robot.stance)), robot.lower, robot.upper)
    tilt = np.concatenate([uniform(noise.tilt, 2), np.zeros((count, 1))], axis=1)
    position = np.zeros((count, 3))
    position[:, 2] = standing_height(robot, joints)
    return StartState(
        position=position,
        orientation=geometry.from_roll_pitch_yaw(tilt),
        linear_velocity=uniform(noise.velocity, 3),
        angular_velocity=uniform(noise.turning, 3),
        joint_angles=joints,
        joint_velocities=uniform(noise.joint_speed, len(robot.stance)),
    )
