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
    for leg, site in zip(robot.leg_names, robot.foot_sites, strict=True):
        _add_touch(spec, f"{leg}_touch", spec.site(site), 2 * robot.foot_radius)
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


def _add_touch(spec: mujoco.MjSpec, name: str, site: mujoco.MjsSite, radius: float) -> None:
    """A sensor of the force that presses on what lies within the site."""
    site.size[0] = radius
    site.group = 5  # not to be seen
    site.rgba = (0.0, 0.0, 0.0, 0.0)
    spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name)
