"""A Go2 in MuJoCo at the level of its motor board: commands with gains in, sensor readings out, 1000 steps per second.

The motors' PD law runs on every physics step, with their torque limits. When commands stop, the motors keep following the
last one, which is the worst case; `brake_after` makes the motor board brake by itself instead.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import mujoco
import numpy as np

from keystride import geometry
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.safety import BRAKE, FOLDED_LEG, MotorCommand
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.robot.model import DAMPING_COLUMN, STIFFNESS_COLUMN, load_spec

PHYSICS_STEP = 0.001  # s
COMMAND_TIMEOUT = 0.1  # s without a command after which the stream counts as stopped

VIEWER_FRAME = 1 / 30  # s between frames of a viewer

START_POSTURES = ("lying", "standing", "upside-down")


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the sensor noise."""

    joint_angle: float = 0.001  # rad
    joint_velocity: float = 0.05  # rad/s
    gyroscope: float = 0.01  # rad/s
    accelerometer: float = 0.1  # m/s2
    tilt: float = 0.003  # rad, of the IMU's own orientation
    pose_position: float = 0.0005  # m
    pose_angle: float = 0.002  # rad


SILENT = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
FAINT_NOISE = Noise(0.0, 0.0, 1e-4, 1e-3, 0.0, 1e-6, 1e-6)  # real sensors never repeat a value to the last bit


@dataclass(frozen=True)
class Sensed:
    """One reading of all sensors, in the robot's joint order."""

    joint_angles: Floats
    joint_velocities: Floats
    torques: Floats
    quaternion: Floats  # IMU: w x y z
    gyroscope: Floats  # base frame
    accelerometer: Floats  # base frame, including gravity; mean since the last reading
    feet: Floats  # (4,) N on each foot, in the robot's leg order


class SimulatedGo2:
    def __init__(
        self,
        robot: Robot,
        *,
        posture: str = "lying",
        noise: Noise = SILENT,
        brake_after: float | None = None,  # s without a command until the motors brake; None: never
        seed: int = 0,
    ) -> None:
        self.robot = robot
        self.brake_after = brake_after
        self.noise = noise
        self.random = np.random.default_rng(seed)
        self.model = _model(robot)
        self.data = mujoco.MjData(self.model)
        self.command: MotorCommand | None = None
        self.steps = 0
        self._command_at = -np.inf
        self._accelerations: list[Floats] = []
        self._accelerometer = self.model.sensor("accelerometer").adr[0]
        self._touch = np.array([self.model.sensor(f"{leg}_touch").adr[0] for leg in robot.leg_names])
        self._place(posture)
        self._apply(None)

    @property
    def time(self) -> float:
        return self.steps * PHYSICS_STEP

    @property
    def commanded(self) -> bool:
        """Whether commands are arriving."""
        return self.time - self._command_at <= COMMAND_TIMEOUT

    @property
    def stiffness(self) -> Floats:
        """Stiffness with which the motors hold their joints, (12,) N m/rad."""
        return np.zeros(12) if self._obeyed is None else self._obeyed.stiffness

    @property
    def _obeyed(self) -> MotorCommand | None:
        """Return the command in force; None if the motor board brakes by itself."""
        if self.brake_after is not None and self.time - self._command_at > self.brake_after:
            return None
        return self.command

    def receive(self, command: MotorCommand) -> None:
        self.command = command
        self._command_at = self.time

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self._apply(self._obeyed)
            mujoco.mj_step(self.model, self.data)
            self._accelerations.append(self.data.sensordata[self._accelerometer : self._accelerometer + 3].copy())
            self.steps += 1

    def _apply(self, command: MotorCommand | None) -> None:
        motor = self.model.actuator_gainprm
        stiffness = np.zeros(12) if command is None else command.stiffness
        motor[:, STIFFNESS_COLUMN] = stiffness
        motor[:, DAMPING_COLUMN] = BRAKE if command is None else command.damping
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
        noise, data = self.noise, self.data
        random = self.random.standard_normal(33)
        acceleration = (
            np.mean(self._accelerations, axis=0)
            if self._accelerations
            else -9.81 * geometry.projected_gravity(data.qpos[3:7])
        )
        self._accelerations.clear()
        return Sensed(
            joint_angles=data.qpos[7:] + noise.joint_angle * random[:12],
            joint_velocities=data.qvel[6:] + noise.joint_velocity * random[12:24],
            torques=data.actuator_force.copy(),
            quaternion=_turned(data.qpos[3:7], noise.tilt * random[24:27]),
            gyroscope=data.qvel[3:6] + noise.gyroscope * random[27:30],
            accelerometer=acceleration + noise.accelerometer * random[30:],
            feet=data.sensordata[self._touch],
        )

    def captured(self) -> tuple[Floats, Floats]:
        """Return position and orientation as measured by motion capture."""
        random = self.random.standard_normal(6)
        position = self.data.qpos[:3] + self.noise.pose_position * random[:3]
        return position, _turned(self.data.qpos[3:7], self.noise.pose_angle * random[3:])

    def _place(self, posture: str) -> None:
        if posture not in START_POSTURES:
            raise ValueError(f"unknown posture {posture!r}: expected one of {', '.join(START_POSTURES)}")
        joints = self.robot.stance if posture == "standing" else np.tile(FOLDED_LEG, 4)
        height = float(standing_height(self.robot, joints))
        self.data.qpos[:3] = (0.0, 0.0, height)
        self.data.qpos[7:] = joints
        if posture == "upside-down":
            self.data.qpos[2:7] = (0.15, 0.0, 1.0, 0.0, 0.0)
        mujoco.mj_forward(self.model, self.data)


def _turned(orientation: Floats, turn: Floats) -> Floats:
    """Rotate an orientation by a small rotation vector, with MuJoCo's functions because this runs 500 times per second."""
    small, result = np.array([1.0, *(turn / 2)]), np.empty(4)
    mujoco.mju_normalize4(small)
    mujoco.mju_mulQuat(result, orientation, small)
    return result


def _model(robot: Robot) -> mujoco.MjModel:
    spec = load_spec(robot)
    spec.option.timestep = PHYSICS_STEP
    accelerometer, site = mujoco.mjtSensor.mjSENS_ACCELEROMETER, mujoco.mjtObj.mjOBJ_SITE
    spec.add_sensor(name="accelerometer", type=accelerometer, objtype=site, objname="imu")
    return spec.compile()


def open_view(model: mujoco.MjModel, data: mujoco.MjData, viewer: str, stack: ExitStack) -> Callable[[], None]:
    """Open a window or a browser page; return a function that draws the present state of `data` there."""
    return _window(model, data, stack) if viewer == "window" else _browser(model, data, stack)


def _window(model: mujoco.MjModel, data: mujoco.MjData, stack: ExitStack) -> Callable[[], None]:
    from mujoco import viewer

    return stack.enter_context(viewer.launch_passive(model, data)).sync


def _browser(model: mujoco.MjModel, data: mujoco.MjData, stack: ExitStack) -> Callable[[], None]:
    from mjviser import ViserMujocoScene

    from keystride.web_access import PrivateServer, start_server

    server, address = start_server(
        lambda: PrivateServer(host="127.0.0.1", label="simulated Go2", verbose=False), "127.0.0.1"
    )
    stack.callback(server.stop)
    server.initial_camera.position, server.initial_camera.look_at = (1.4, -1.4, 0.8), (0.0, 0.0, 0.2)
    scene = ViserMujocoScene(server, model, num_envs=1)
    scene.camera_tracking_enabled = False
    print(f"viewer: {address}", flush=True)
    return lambda: scene.update_from_mjdata(data)
