"""MuJoCo on CPU threads: thousands of robots, one call per control step."""

from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from keystride.physics.simulator import PHYSICS_DT, PHYSICS_STEPS, Randomization, StartState, State
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints
from keystride.robot.model import DAMPING_COLUMN, MAX_LAG_STEPS, STIFFNESS_COLUMN, VOLTAGE_COLUMN, load_spec

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
