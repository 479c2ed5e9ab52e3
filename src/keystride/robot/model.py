"""The robot's MuJoCo model: the file, plus motors made from the description."""

import mujoco

from keystride.robot.description import Robot

MAX_LAG_STEPS = 6  # paper, domain randomisation table: actuator lag in physics steps


def load_spec(robot: Robot, *, visual: bool = True) -> mujoco.MjSpec:
    """The editable model. Without visuals it is the same robot, only lighter to step."""
    spec = mujoco.MjSpec.from_file(str(robot.model_path))
    spec.compiler.discardvisual = not visual
    for name, limit in zip(robot.joint_names, robot.torque_limit, strict=True):
        _add_motor(spec, robot, name, float(limit))
    return spec


def load_model(robot: Robot, *, visual: bool = True) -> mujoco.MjModel:
    return load_spec(robot, visual=visual).compile()


def _add_motor(spec: mujoco.MjSpec, robot: Robot, joint: str, limit: float) -> None:
    """A PD servo on joint targets whose torque saturates at the motor's limit."""
    motor = spec.add_actuator(name=joint.removesuffix("_joint"), target=joint)
    motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
    motor.gaintype = mujoco.mjtGain.mjGAIN_FIXED
    motor.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    motor.gainprm[0] = robot.stiffness
    motor.biasprm[1] = -robot.stiffness
    motor.biasprm[2] = -robot.damping
    motor.forcelimited = True
    motor.forcerange = (-limit, limit)
