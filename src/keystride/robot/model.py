"""The robot's MuJoCo model: the file plus motors made from the description; and still pictures of it."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from keystride.errors import FileError
from keystride.files import open_atomically
from keystride.reading import one_line
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.robot.model_file import check_model_file

PHYSICS_DT = 0.005  # s
BUILT_IN_MODELS = Path(__file__).parent  # these need no check
FREE_JOINT = 7  # coordinates: position and quaternion
NOT_READABLE = (ValueError, RuntimeError)  # what MuJoCo raises for models
SUPPLY_VOLTAGE = 28.0  # V; torque and speed do not depend on it, only the split into current and voltage does
STIFFNESS_COLUMN, DAMPING_COLUMN, VOLTAGE_COLUMN = 4, 6, 7  # of `actuator_gainprm` in MuJoCo's DC motor
MAX_LAG_STEPS = 6  # paper, domain randomization table: actuator lag in physics steps


def load_spec(robot: Robot, *, visual: bool = True) -> mujoco.MjSpec:
    """Return the editable model. Without visuals it is the same robot, but faster to step."""
    if robot.model_path.parent != BUILT_IN_MODELS:
        check_model_file(robot.model_path)
    try:
        spec = mujoco.MjSpec.from_file(str(robot.model_path))
    except NOT_READABLE as error:
        raise FileError(f"{robot.model_path}: not a model that MuJoCo can read: {one_line(error)}") from error
    for kind, needed, parts in (("joint", robot.joint_names, spec.joints), ("site", robot.foot_sites, spec.sites)):
        there = [part.name for part in parts if part.name]
        for name in needed:
            if name not in there:
                message = (
                    f"no {kind} {one_line(repr(name), 60)}, which the description of {one_line(robot.name, 60)} names"
                )
                raise FileError(f"{robot.model_path}: {message}; it has {one_line(', '.join(there), 300)}")
    if robot.base_body not in [body.name for body in spec.bodies[1:2]]:
        shown = one_line(repr(robot.base_body), 60)
        raise FileError(
            f"{robot.model_path}: the first body is not {shown}, the base_body of {one_line(robot.name, 60)}"
        )
    spec.compiler.discardvisual = not visual
    for name, torque, speed in zip(robot.joint_names, robot.torque_limit, robot.speed_limit, strict=True):
        _add_motor(spec, robot, name, float(torque), float(speed))
    for leg, site in zip(robot.leg_names, robot.foot_sites, strict=True):
        _add_touch(spec, f"{leg}_touch", spec.site(site), 2 * robot.foot_radius)
    if robot.model_path.parent != BUILT_IN_MODELS:
        _check_compiled(spec, robot)
    return spec


def _check_compiled(spec: mujoco.MjSpec, robot: Robot) -> None:
    """Raise FileError if the model cannot be compiled, or is not one that keystride can simulate."""
    try:
        model = spec.compile()
    except NOT_READABLE as error:
        raise FileError(f"{robot.model_path}: MuJoCo cannot compile it: {one_line(error)}") from error
    joints = [model.joint(row).name for row in range(model.njnt)]
    if model.nq != FREE_JOINT + len(robot.joint_names) or joints[1:] != list(robot.joint_names):
        there = one_line(", ".join(map(repr, joints)), 300)
        allowed = f"a free joint, then the hinges {', '.join(robot.joint_names)}"
        raise FileError(f"{robot.model_path}: the joints are {there}; allowed: {one_line(allowed, 300)}")
    if model.opt.timestep != PHYSICS_DT:
        raise FileError(f"{robot.model_path}: the timestep is {model.opt.timestep:g} s; allowed: {PHYSICS_DT:g} s")
    if model.nbody != 2 + len(robot.joint_names):  # with the world
        allowed = f"{1 + len(robot.joint_names)}, the base and one at each joint; fusestatic='true' joins fixed ones"
        raise FileError(f"{robot.model_path}: {model.nbody - 1} bodies; allowed: {allowed}")


def load_model(robot: Robot, *, visual: bool = True) -> mujoco.MjModel:
    """Return the compiled model."""
    return load_spec(robot, visual=visual).compile()


def _add_motor(spec: mujoco.MjSpec, robot: Robot, joint: str, torque: float, speed: float) -> None:
    """Add a PD servo on joint targets that has a DC motor's torque-speed curve.

    The torque is limited to the motor's peak, and beyond `full_torque_speed` by the supply voltage less the back-EMF, down to
    zero at the rated speed. MuJoCo's own motor model keeps this inside the batched step, and implicit integration stable.
    """
    motor = spec.add_actuator(name=joint.removesuffix("_joint"), target=joint)
    motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
    constant = SUPPLY_VOLTAGE / speed  # N m / A and V s / rad: the back-EMF reaches the supply at the rated speed
    stall = torque / (1.0 - robot.full_torque_speed)  # N m that the voltage alone would allow at rest
    motor.set_to_dcmotor(
        motorconst=(constant, constant),
        resistance=constant * SUPPLY_VOLTAGE / stall,
        controller=(robot.stiffness, 0.0, robot.damping, 0.0, 0.0, SUPPLY_VOLTAGE),
        ctrlspec=1,  # the input is a position
    )
    motor.forcelimited = True
    motor.forcerange = (-torque, torque)


def _add_touch(spec: mujoco.MjSpec, name: str, site: mujoco.MjsSite, radius: float) -> None:
    """Add a sensor of the normal force on what lies within the site."""
    site.size[0] = radius
    site.group = 5  # hidden
    site.rgba = (0.0, 0.0, 0.0, 0.0)
    spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name)


RgbImage = NDArray[np.uint8]  # (height, width, 3)

SEEN_GROUPS = (0, 2)  # the floor and the visual shapes; not the collision shapes


GEOM_KINDS = {
    mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellipsoid",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    mujoco.mjtGeom.mjGEOM_BOX: "box",
}
WORLD = 0  # MuJoCo's first body


@dataclass(frozen=True)
class VisualShape:
    """A visible primitive of the robot, in the frame of its body."""

    body: int  # in MuJoCo's order; the base comes first, after the world
    kind: str  # a value of GEOM_KINDS
    size: Floats  # (3,) m, MuJoCo's half sizes
    position: Floats  # (3,) m
    rotation: Floats  # (4,) w x y z
    colour: Floats  # (4,) red, green, blue, alpha, from 0 to 1
    glow: float  # emission of the material
    radius: float  # m, of a sphere around it


def visual_shapes(model: mujoco.MjModel) -> list[VisualShape]:
    """Return the visible primitives of the robot, without the floor, the collision shapes and meshes."""
    geoms = np.flatnonzero(
        (model.geom_bodyid != WORLD)
        & np.isin(model.geom_group, SEEN_GROUPS)
        & np.isin(model.geom_type, list(GEOM_KINDS))
    )
    return [_visual_shape(model, int(geom)) for geom in geoms]


def _visual_shape(model: mujoco.MjModel, geom: int) -> VisualShape:
    material = int(model.geom_matid[geom])
    return VisualShape(
        body=int(model.geom_bodyid[geom]),
        kind=GEOM_KINDS[mujoco.mjtGeom(int(model.geom_type[geom]))],
        size=model.geom_size[geom].copy(),
        position=model.geom_pos[geom].copy(),
        rotation=model.geom_quat[geom].copy(),
        colour=(model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]).copy(),
        glow=float(model.mat_emission[material]) if material >= 0 else 0.0,
        radius=float(model.geom_rbound[geom]),
    )


def draw_robot(
    robot: Robot,
    joints: Floats,
    *,
    azimuth: float = 140.0,
    elevation: float = -18.0,
    distance: float = 1.1,
    size: tuple[int, int] = (960, 720),
) -> RgbImage:
    """Return a picture of the robot standing in a posture (12,). Angles in degrees: azimuth 90 is its right side, 180 its face."""
    model = load_model(robot)
    data = mujoco.MjData(model)
    data.qpos[2] = standing_height(robot, joints)
    data.qpos[7:] = joints
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = azimuth, elevation, distance
    camera.lookat[:] = [0.03, 0.0, 0.65 * data.qpos[2]]
    with mujoco.Renderer(model, size[1], size[0]) as renderer:
        renderer.update_scene(data, camera, look())
        return renderer.render().copy()


def look() -> mujoco.MjvOption:
    """Return scene options that show the visual shapes only."""
    option = mujoco.MjvOption()
    option.geomgroup[:] = 0
    option.geomgroup[list(SEEN_GROUPS)] = 1
    option.sitegroup[:] = 0
    return option


def write_png(path: Path, image: RgbImage) -> None:
    """Write an image as a PNG file."""
    with open_atomically(path) as file:
        PIL.Image.fromarray(image).save(file, format="PNG")
