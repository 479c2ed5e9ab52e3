"""Can physics follow a clip? A small whole-body controller plays it in MuJoCo, at the robot's gains and torques.

Joint targets are the clip's, plus what its own dynamics and a correction of the base ask of the standing feet.
"""

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

from keystride import geometry
from keystride.motion.authored.catalogue import authored_clips
from keystride.motion.clip import Clip
from keystride.motion.signals import Flags, clip_feet, foot_clearance
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model

STEPS = 4  # of physics a frame
PULL = np.array([600.0, 600.0, 900.0, 120.0, 120.0, 60.0])  # N/m and N m/rad, on the base
RIDGE = 0.02  # m^2: keeps forces sane where two feet in a line cannot turn the trunk about that line
GRIP = 0.7  # below the ground's friction of 0.8
DAMP = np.array([90.0, 90.0, 90.0, 8.0, 8.0, 5.0])


@dataclass(frozen=True)
class Track:
    """What came of it."""

    position: Floats  # (T, 3)
    orientation: Floats  # (T, 4)
    torque_share: Floats  # (T,) of the motor that works hardest

    def tilt_error(self, clip: Clip) -> Floats:
        """(T,) angle between the gravity felt and that of the clip, rad."""
        felt, meant = (geometry.projected_gravity(q) for q in (self.orientation, clip.base_orientation))
        return np.arccos(np.clip(np.sum(felt * meant, axis=-1), -1.0, 1.0))

    def way_off(self, clip: Clip) -> Floats:
        return np.linalg.norm(self.position - clip.base_position, axis=-1)  # (T,) m


@dataclass(frozen=True)
class Goal:
    """Where a frame of the clip wants the robot to be, as MuJoCo has it."""

    pose: Floats  # (19,)
    speed: Floats  # (18,)
    needed: Floats  # (18,) forces for it, were there no ground
    standing: Flags  # (4,)


class Tracker:
    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.model = load_model(robot, visual=False)
        self.ideal = load_model(robot, visual=False)  # without ground: for the forces that a motion needs
        self.ideal.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.sites = [self.model.site(name).id for name in robot.foot_sites]

    def play(self, clip: Clip) -> Track:
        real = mujoco.MjData(self.model)
        real.qpos[:] = _poses(clip)[0]
        rows = [self._frame(real, goal) for goal in self._goals(clip)]
        position, orientation, torque = (np.array(column) for column in zip(*rows, strict=True))
        return Track(position, orientation, torque)

    def _goals(self, clip: Clip) -> list[Goal]:
        """Of every frame's successor."""
        pose, speed = _poses(clip), _speeds(clip)
        acceleration = np.stack([np.gradient(column, 1 / clip.fps) for column in speed.T], axis=-1)  # (T, 18)
        standing = foot_clearance(clip_feet(clip, self.robot), self.robot) < 0.003  # (T, 4)
        frames = np.minimum(np.arange(len(clip)) + 1, len(clip) - 1)
        needed = [self._needed(*row) for row in zip(pose, speed, acceleration, strict=True)]
        return [Goal(pose[i], speed[i], needed[i], standing[i]) for i in frames]

    def _needed(self, pose: Floats, speed: Floats, acceleration: Floats) -> Floats:
        data = mujoco.MjData(self.ideal)
        data.qpos[:], data.qvel[:], data.qacc[:] = pose, speed, acceleration
        mujoco.mj_inverse(self.ideal, data)
        return data.qfrc_inverse.copy()

    def _frame(self, real: mujoco.MjData, goal: Goal) -> tuple[Floats, Floats, float]:
        for _ in range(STEPS):
            ahead = self.robot.damping * goal.speed[6:] + self._torque(real, goal)
            real.ctrl[:] = goal.pose[7:] + ahead / self.robot.stiffness
            mujoco.mj_step(self.model, real)
        worst = np.abs(real.actuator_force / self.robot.torque_limit).max()
        return real.qpos[:3].copy(), real.qpos[3:7].copy(), worst

    def _torque(self, real: mujoco.MjData, goal: Goal) -> Floats:
        """(12,) of the motors, with the base's wrench (6,) put on the standing feet as far as they can push."""
        feet = [self._push(real, site) for site in np.compress(goal.standing, self.sites)]
        if not feet:
            return goal.needed[6:]
        pushes = np.concatenate(feet)  # (3 F, 18)
        lever = pushes[:, :6]
        force = lever @ np.linalg.solve(lever.T @ lever + RIDGE * np.eye(6), goal.needed[:6] + _correction(real, goal))
        return goal.needed[6:] - pushes[:, 6:].T @ _within_friction(force.reshape(-1, 3)).reshape(-1)

    def _push(self, real: mujoco.MjData, site: int) -> Floats:
        jacobian = np.zeros((3, self.model.nv))
        mujoco.mj_jacSite(self.model, real, jacobian, None, site)
        return jacobian


def _within_friction(force: Floats) -> Floats:
    """(F, 3) feet neither pull nor push further sideways than they grip."""
    up = np.maximum(force[:, 2:], 0.0)
    side = np.linalg.norm(force[:, :2], axis=-1, keepdims=True)
    return np.concatenate([force[:, :2] * np.minimum(1.0, GRIP * up / np.maximum(side, 1e-9)), up], axis=-1)


def _correction(real: mujoco.MjData, goal: Goal) -> Floats:
    """(6,) force in the world, moment in the base frame."""
    turn = geometry.multiply(geometry.conjugate(real.qpos[3:7]), goal.pose[3:7])
    off = np.concatenate([goal.pose[:3] - real.qpos[:3], geometry.rotation_vector(turn)])
    return PULL * off + DAMP * (goal.speed[:6] - real.qvel[:6])


def _poses(clip: Clip) -> Floats:
    return np.concatenate([clip.base_position, clip.base_orientation, clip.joint_angles], axis=-1)  # (T, 19)


def _speeds(clip: Clip) -> Floats:
    spin = geometry.rotate_inverse(clip.base_orientation, clip.base_angular_velocity)
    return np.concatenate([clip.base_linear_velocity, spin, clip.joint_velocities], axis=-1)  # (T, 18)


@pytest.fixture(scope="session")
def tracker() -> Tracker:
    return Tracker(GO2)


@pytest.fixture(scope="session")
def clips() -> dict[str, Clip]:
    return {clip.name: clip for clip in authored_clips(GO2)}
