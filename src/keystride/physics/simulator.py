"""The interface of a simulator of many robots. Training, evaluation, the studio and deployment tests use nothing else."""

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.robot.description import Floats

PHYSICS_DT = 0.005  # s
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
