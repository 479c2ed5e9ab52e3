"""A simulator of many robots: its interface, and MuJoCo on CPU threads, thousands of robots in one call per control step.

Training, evaluation, the studio and deployment tests use nothing else."""

from dataclasses import dataclass, fields
from typing import Any, Protocol

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from keystride import geometry
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints
from keystride.robot.model import DAMPING_COLUMN, MAX_LAG_STEPS, PHYSICS_DT, STIFFNESS_COLUMN, VOLTAGE_COLUMN, load_spec

PHYSICS_STEPS = 4  # a control step: 20 ms


@dataclass(frozen=True)
class State:
    """The robots after a control step; E environments, metres, radians, seconds. Arrays are copies, which do not change."""

    position: Floats  # (E, 3) base, world
    orientation: Floats  # (E, 4) w x y z, world from base
    linear_velocity: Floats  # (E, 3) base, world
    angular_velocity: Floats  # (E, 3) base, base frame
    joint_angles: Floats  # (E, 12)
    joint_velocities: Floats  # (E, 12)
    feet: Floats  # (E, 4, 3) centres of the feet, base frame
    contact: Floats  # (E, 4) N, normal force on each foot, in the last physics step
    torque: Floats  # (E, 12) N m, in the last physics step
    diverged: NDArray[np.bool_]  # (E,) the state is not finite or absurd; ignore everything else in that row

    @property
    def base_velocity(self) -> Floats:
        """(E, 3) linear velocity in the base frame."""
        return geometry.rotate_inverse(self.orientation, self.linear_velocity)

    @property
    def feet_in_world(self) -> Floats:
        """(E, 4, 3) centres of the feet, world."""
        return self.position[:, None] + geometry.rotate(self.orientation[:, None], self.feet)


def state_rows(state: State, rows: NDArray[np.intp] | slice) -> State:
    """Return the state of some of the environments."""
    return State(*(getattr(state, field.name)[rows] for field in fields(State)))


@dataclass(frozen=True)
class StartState:
    """The state in which n robots start."""

    position: Floats  # (n, 3)
    orientation: Floats  # (n, 4)
    linear_velocity: Floats  # (n, 3) world
    angular_velocity: Floats  # (n, 3) base frame
    joint_angles: Floats  # (n, 12)
    joint_velocities: Floats  # (n, 12)


@dataclass(frozen=True)
class Randomization:
    """What differs between environments. Defaults are the paper's domain randomization table; what it does not vary is off."""

    friction: tuple[float, float] = (0.25, 1.75)
    stiffness: tuple[float, float] = (0.9, 1.1)
    damping: tuple[float, float] = (0.9, 1.1)
    lag_steps: tuple[int, int] = (0, 6)
    """Physics steps between a joint target and the torque it causes."""
    push_speed: tuple[float, float] = (0.0, 1.0)
    """m/s, added to the base in a random horizontal direction."""
    push_turn: tuple[float, float] = (0.0, 1.0)
    """rad/s, added to the base about a random axis."""
    push_interval: tuple[int, int] = (150, 400)
    """Control steps between pushes, regardless of resets in between; the paper gives none."""
    payload: tuple[float, float] = (0.0, 0.0)
    """kg added to the trunk, drawn once for each robot."""
    center_of_mass: float = 0.0
    """Largest shift of the trunk's centre of mass along each axis in m, drawn once for each robot."""
    strength: tuple[float, float] = (1.0, 1.0)
    """Factor on what each motor produces: gains, peak torque and supply voltage."""
    share: float = 1.0
    """Share of the robots, the first ones, that differ at all; the others are nominal and never pushed."""


ROBOT_RANDOMIZATION = Randomization(
    payload=(-1.0, 3.0), center_of_mass=0.05, strength=(0.8, 1.1), push_interval=(100, 300)
)
"""The paper's table and what else varies on real robots: payload, centre of mass, motors weaker or stronger than rated."""


class Simulator(Protocol):
    """Many robots, each on its own flat ground."""

    environments: int

    def state(self) -> State:
        """Return the state of all robots."""
        ...

    def advance(self, targets: Floats) -> State:
        """Take one control step with PD control towards joint targets (E, 12) rad; return the new state."""
        ...

    def reset(self, ids: NDArray[np.intp], start: StartState) -> None:
        """Put some robots into start states, one for each id."""
        ...

    def push(self, ids: NDArray[np.intp], linear: Floats, angular: Floats) -> None:
        """Add to the base's velocity: (n, 3) m/s world, (n, 3) rad/s base frame."""
        ...

    def set_friction(self, friction: float) -> None:
        """Set the friction of the ground and the feet, for all environments."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return everything that the future depends on, as arrays and plain values."""
        ...

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        ...


def standing_start(count: int, height: float, joints: Floats) -> StartState:
    """Return start states at the origin, facing x, at rest."""
    return StartState(
        position=np.tile([0.0, 0.0, height], (count, 1)),
        orientation=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
        linear_velocity=np.zeros((count, 3)),
        angular_velocity=np.zeros((count, 3)),
        joint_angles=np.tile(joints, (count, 1)),
        joint_velocities=np.zeros((count, len(joints))),
    )


HISTORY_HEAD = 2 + MAX_LAG_STEPS + 1  # MuJoCo's buffer: user, cursor, times; then the values
ABSURD_SPEED = 200.0  # m/s and rad/s together: no robot gets there, a diverging simulation soon does


class CpuSimulator:
    """The `Simulator` on `mujoco.batch.Batch`. Bit-identical for any number of threads."""

    def __init__(
        self,
        robot: Robot,
        environments: int,
        *,
        randomization: Randomization | None = None,
        seed: int = 0,
        threads: int = 0,
    ) -> None:
        self.robot = robot
        self.environments = environments
        self.randomization = randomization
        self.divergences = 0
        self._random = np.random.default_rng(seed)
        self._model = training_model(robot)
        sliding = self._model.geom_friction[:, 0]
        self._gripping = np.flatnonzero(sliding == sliding[0])  # the ground and the feet
        self._batch = Batch(self._model, nsim=environments, nthread=threads)
        self._qpos, self._qvel, self._ctrl = (self._batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        self._time, self._history = self._batch.bind("time"), self._batch.bind("history")
        self._force, self._touch = self._batch.bind("actuator_force"), self._batch.bind("sensordata")
        self._fresh_history = self._history[0].copy()
        self._varied = {name: self._batch.expand(name) for name in _VARIED} if randomization else {}
        self._push_wait = np.zeros(environments, dtype=np.int64)
        self._varied_count = round(randomization.share * environments) if randomization else 0
        if randomization:
            self._vary_bodies(randomization)
            self._push_wait[:] = self._random.integers(0, randomization.push_interval[1], size=environments)
        self._randomize(np.arange(environments))

    def state(self) -> State:
        qpos, qvel = self._qpos.copy(), self._qvel.copy()
        joints = qpos[:, 7:]
        sane = np.einsum("ij,ij->i", qvel, qvel) < ABSURD_SPEED**2  # False for NaN too
        return State(
            position=qpos[:, :3],
            orientation=qpos[:, 3:7],
            linear_velocity=qvel[:, :3],
            angular_velocity=qvel[:, 3:6],
            joint_angles=joints,
            joint_velocities=qvel[:, 6:],
            feet=feet_from_joints(self.robot, joints.astype(np.float32)),  # to 0.1 um, in a third of the time
            contact=self._touch.copy(),
            torque=self._force.copy(),
            diverged=~(sane & np.isfinite(np.einsum("ij->i", qpos))),
        )

    def advance(self, targets: Floats) -> State:
        np.copyto(self._ctrl, targets)
        if self.randomization:
            self._push_when_due(self.randomization)
        self._batch.step(nstep=PHYSICS_STEPS)
        state = self.state()
        self.divergences += int(state.diverged.sum())
        return state

    def reset(self, ids: NDArray[np.intp], start: StartState) -> None:
        """Put these robots into their start states, with motor targets at the joint angles, and draw new variations for them."""
        self._batch.state[ids] = 0.0
        self._qpos[ids] = np.concatenate([start.position, start.orientation, start.joint_angles], axis=1)
        self._qvel[ids] = np.concatenate(
            [start.linear_velocity, start.angular_velocity, start.joint_velocities], axis=1
        )
        self._ctrl[ids] = start.joint_angles
        history = np.tile(self._fresh_history, (len(ids), 1)).reshape(len(ids), self._model.nu, -1)
        history[..., HISTORY_HEAD:] = start.joint_angles[..., None]
        self._history[ids] = history.reshape(len(ids), -1)
        self._randomize(ids)

    def push(self, ids: NDArray[np.intp], linear: Floats, angular: Floats) -> None:
        self._qvel[ids, :3] += linear
        self._qvel[ids, 3:6] += angular

    def snapshot(self) -> dict[str, Any]:
        varied = {f"varied.{name}": values.copy() for name, values in self._varied.items()}
        return {
            "state": self._batch.state.copy(),
            "force": self._force.copy(),
            "push_wait": self._push_wait.copy(),
            "divergences": self.divergences,
            "random": self._random.bit_generator.state,
            **varied,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._batch.state[:] = np.asarray(snapshot["state"])
        self._push_wait = np.array(snapshot["push_wait"], dtype=np.int64)
        self.divergences = int(snapshot["divergences"])
        self._random.bit_generator.state = snapshot["random"]
        for name, values in self._varied.items():
            values[...] = np.asarray(snapshot[f"varied.{name}"])
        if self._varied:
            self._batch.set_const()  # what MuJoCo derives from the masses

    def set_friction(self, friction: float) -> None:
        self._batch.expand("geom_friction")[:, self._gripping, 0] = friction

    def _vary_bodies(self, ranges: Randomization) -> None:
        """Draw masses, which each robot keeps for good: MuJoCo derives constants from them, which takes time."""
        base, count = self._model.body(self.robot.base_body).id, self._varied_count
        self._varied["body_mass"][:count, base] += self._random.uniform(*ranges.payload, size=count)
        shift = self._random.uniform(-ranges.center_of_mass, ranges.center_of_mass, size=(count, 3))
        self._varied["body_ipos"][:count, base] += shift
        self._batch.set_const()

    def _randomize(self, ids: NDArray[np.intp]) -> None:
        if not self.randomization:
            return
        ids = ids[ids < self._varied_count]
        ranges, count, nominal, varied = self.randomization, len(ids), self._model, self._varied
        friction, stiffness, damping = (
            self._random.uniform(*limits, size=(count, 1))
            for limits in (ranges.friction, ranges.stiffness, ranges.damping)
        )
        lag = self._random.integers(ranges.lag_steps[0], ranges.lag_steps[1] + 1, size=(count, 1))
        varied["geom_friction"][ids[:, None], self._gripping, 0] = friction
        strength = self._random.uniform(*ranges.strength, size=(count, self._model.nu))
        motor, nominal_motor = varied["actuator_gainprm"], nominal.actuator_gainprm
        motor[ids, :, STIFFNESS_COLUMN] = nominal_motor[:, STIFFNESS_COLUMN] * stiffness * strength
        motor[ids, :, DAMPING_COLUMN] = nominal_motor[:, DAMPING_COLUMN] * damping * strength
        motor[ids, :, VOLTAGE_COLUMN] = nominal_motor[:, VOLTAGE_COLUMN] * strength
        varied["actuator_forcerange"][ids] = nominal.actuator_forcerange * strength[..., None]
        # MuJoCo rounds a delay up to whole steps: half a step less keeps rounding errors out.
        varied["actuator_delay"][ids] = np.maximum(lag - 0.5, 0.0) * PHYSICS_DT

    def _push_when_due(self, ranges: Randomization) -> None:
        self._push_wait -= 1
        due = np.flatnonzero(self._push_wait[: self._varied_count] <= 0)
        if not len(due):
            return
        heading = self._random.uniform(-np.pi, np.pi, len(due))
        axis = self._random.normal(size=(len(due), 3))
        axis /= np.linalg.norm(axis, axis=1, keepdims=True)
        speed = self._random.uniform(*ranges.push_speed, size=(len(due), 1))
        turn = self._random.uniform(*ranges.push_turn, size=(len(due), 1))
        direction = np.stack([np.cos(heading), np.sin(heading), np.zeros(len(due))], axis=1)
        self.push(due, speed * direction, turn * axis)
        self._push_wait[due] = self._random.integers(*ranges.push_interval, size=len(due))


_VARIED = (
    "geom_friction",
    "actuator_gainprm",
    "actuator_forcerange",
    "actuator_delay",
    "body_mass",
    "body_ipos",
)


def training_model(robot: Robot) -> mujoco.MjModel:
    """Return the model that is simulated: no visuals, motors with a variable delay, no automatic reset."""
    spec = load_spec(robot, visual=False)
    # We must see, count and restart a diverged state; MuJoCo would silently replace it by the default pose.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    for motor in spec.actuators:
        motor.nsample = MAX_LAG_STEPS + 1
        motor.delay = 0.0
    model = spec.compile()
    assert model.opt.timestep == PHYSICS_DT
    return model
