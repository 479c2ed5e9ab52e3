"""A Go2 in MuJoCo as its motor board sees it: commands with gains in, sensor readings out, 1000 steps a second.

The motors' PD law runs on every physics step, with their torque limits. When commands stop for COMMAND_TIMEOUT, the
motors brake.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from keystride import geometry
from keystride.deploy.estimator import BaseState
from keystride.deploy.safety import BRAKE, FOLDED_LEG, MotorCommand
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.robot.model import load_spec

STEP = 0.001  # s
COMMAND_TIMEOUT = 0.1  # s without a command, and the simulated motor board brakes

POSTURES = ("lying", "standing", "upside-down")


@dataclass(frozen=True)
class Noise:
    """Standard deviations of what the sensors add."""

    joint_angle: float = 0.001  # rad
    joint_velocity: float = 0.05  # rad/s
    gyroscope: float = 0.01  # rad/s
    accelerometer: float = 0.1  # m/s2
    tilt: float = 0.003  # rad, of the IMU's own orientation
    pose_position: float = 0.0005  # m
    pose_angle: float = 0.002  # rad


SILENT = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Sensed:
    """One reading of the robot's own sensors, in the robot's joint order."""

    joint_angles: Floats
    joint_velocities: Floats
    torques: Floats
    quaternion: Floats  # IMU: w x y z
    gyroscope: Floats  # base frame
    accelerometer: Floats  # base frame, gravity included; the mean since the last reading
    feet: Floats  # (4,) N on each foot, in the robot's leg order


class SimulatedGo2:
    def __init__(self, robot: Robot, *, posture: str = "lying", noise: Noise = SILENT, seed: int = 0) -> None:
        self.robot = robot
        self.noise = noise
        self.random = np.random.default_rng(seed)
        self.model = _model(robot)
        self.data = mujoco.MjData(self.model)
        self.command: MotorCommand | None = None
        self.steps = 0
        self._command_at = -np.inf
        self._felt: list[Floats] = []
        self._place(posture)
        self._apply(None)

    @property
    def time(self) -> float:
        return self.steps * STEP

    @property
    def obeys(self) -> bool:
        """Whether commands come; otherwise it brakes."""
        return self.time - self._command_at <= COMMAND_TIMEOUT

    def receive(self, command: MotorCommand) -> None:
        self.command = command
        self._command_at = self.time

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self._apply(self.command if self.obeys else None)
            mujoco.mj_step(self.model, self.data)
            self._felt.append(self.data.sensor("accelerometer").data.copy())
            self.steps += 1

    def _apply(self, command: MotorCommand | None) -> None:
        gain, bias = self.model.actuator_gainprm, self.model.actuator_biasprm
        stiffness = np.zeros(12) if command is None else command.stiffness
        gain[:, 0] = stiffness
        bias[:, 1] = -stiffness
        bias[:, 2] = -BRAKE if command is None else -command.damping
        self.data.ctrl[:] = 0.0 if command is None else np.where(stiffness > 0.0, command.target, 0.0)

    def truth(self) -> BaseState:
        orientation = self.data.qpos[3:7].copy()
        return BaseState(
            position=self.data.qpos[:3].copy(),
            orientation=orientation,
            linear_velocity=geometry.rotate_inverse(orientation, self.data.qvel[:3]),
            angular_velocity=self.data.qvel[3:6].copy(),
        )

    def sense(self) -> Sensed:
        add = self._noisy
        felt = np.mean(self._felt, axis=0) if self._felt else -9.81 * geometry.projected_gravity(self.data.qpos[3:7])
        self._felt.clear()
        tilt = geometry.from_rotation_vector(add(np.zeros(3), self.noise.tilt))
        return Sensed(
            joint_angles=add(self.data.qpos[7:], self.noise.joint_angle),
            joint_velocities=add(self.data.qvel[6:], self.noise.joint_velocity),
            torques=self.data.actuator_force.copy(),
            quaternion=geometry.multiply(self.data.qpos[3:7], tilt),
            gyroscope=add(self.data.qvel[3:6], self.noise.gyroscope),
            accelerometer=add(felt, self.noise.accelerometer),
            feet=np.array([self.data.sensor(f"{leg}_touch").data[0] for leg in self.robot.leg_names]),
        )

    def captured(self) -> tuple[Floats, Floats]:
        """Position and orientation as a motion-capture system sees them."""
        turn = geometry.from_rotation_vector(self._noisy(np.zeros(3), self.noise.pose_angle))
        position = self._noisy(self.data.qpos[:3], self.noise.pose_position)
        return position, geometry.multiply(self.data.qpos[3:7], turn)

    def _noisy(self, values: Floats, deviation: float) -> Floats:
        return values + deviation * self.random.standard_normal(values.shape)

    def _place(self, posture: str) -> None:
        if posture not in POSTURES:
            raise ValueError(f"unknown posture {posture!r}: expected one of {', '.join(POSTURES)}")
        joints = self.robot.stance if posture == "standing" else np.tile(FOLDED_LEG, 4)
        height = float(standing_height(self.robot, joints))
        self.data.qpos[:3] = (0.0, 0.0, height)
        self.data.qpos[7:] = joints
        if posture == "upside-down":
            self.data.qpos[2:7] = (0.15, 0.0, 1.0, 0.0, 0.0)
        mujoco.mj_forward(self.model, self.data)


def _model(robot: Robot) -> mujoco.MjModel:
    spec = load_spec(robot)
    spec.option.timestep = STEP
    accelerometer, site = mujoco.mjtSensor.mjSENS_ACCELEROMETER, mujoco.mjtObj.mjOBJ_SITE
    spec.add_sensor(name="accelerometer", type=accelerometer, objtype=site, objname="imu")
    return spec.compile()
