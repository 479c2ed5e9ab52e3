"""What the robot does in simulation: statics, mirror symmetry, visuals that weigh nothing, and pictures of it."""

import mujoco
import numpy as np
import PIL.Image
import pytest

from keystride import geometry
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, standing_height
from keystride.robot.model import SEEN_GROUPS, draw_robot, load_model, load_spec, visual_shapes, write_png

GRAVITY = 9.81
CONTROL = 4  # physics steps
SECOND = 50 * CONTROL


def standing(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[2] = standing_height(GO2, GO2.stance)
    data.qpos[7:] = data.ctrl[:] = GO2.stance
    return data


def test_stands_ten_seconds_without_drifting():
    """Two seconds to settle (the knees give, which moves the trunk back); from then on it stays where it is."""
    model = load_model(GO2, visual=False)
    data = standing(model)
    mujoco.mj_step(model, data, 2 * SECOND)
    settled = data.qpos.copy()
    mujoco.mj_step(model, data, 8 * SECOND)
    assert np.linalg.norm(data.qpos[:2] - settled[:2]) < 0.01
    roll, pitch, yaw = np.degrees(geometry.roll_pitch_yaw(data.qpos[3:7]))
    assert abs(yaw) < 0.1
    assert abs(roll) < 0.1
    assert abs(pitch) < 2.0
    assert data.ncon == 4  # four feet and nothing else


def test_knees_give_as_much_as_statics_says():
    """A proportional servo carries a load only by giving: torque / kp. Lever times load is the torque of a knee."""
    model = load_model(GO2, visual=False)
    data = standing(model)
    mujoco.mj_step(model, data, 4 * SECOND)
    joints = data.qpos[7:].copy()
    feet = feet_from_joints(GO2, joints)  # (4, 3) base
    front, rear = feet[:2, 0].mean(), feet[2:, 0].mean()
    centre = geometry.rotate_inverse(data.qpos[3:7], data.subtree_com[1] - data.qpos[:3])[0]
    share = (centre - rear) / (front - rear)  # of the weight, on the front feet
    weight = model.body_mass.sum() * GRAVITY
    load = weight * np.array([share, share, 1 - share, 1 - share]) / 2  # (4,) N
    lever = -0.213 * np.sin(joints[1::3] + joints[2::3])  # (4,) m, foot before knee
    calf = 0.241352 * GRAVITY * 0.141417 / 0.213  # the calf's own weight, as if at the foot
    expected = (load - calf) * lever / GO2.stiffness  # (4,) rad
    assert GO2.stance[2::3] - joints[2::3] == pytest.approx(expected, rel=0.05)


def test_stands_at_the_height_of_forward_kinematics_once_targets_make_up_for_the_sag():
    model = load_model(GO2, visual=False)
    data = standing(model)
    for _ in range(6):
        mujoco.mj_step(model, data, SECOND)
        data.ctrl[:] += GO2.stance - data.qpos[7:]
    mujoco.mj_step(model, data, SECOND)
    assert data.qpos[2] == pytest.approx(standing_height(GO2, GO2.stance), abs=2e-3)


def test_torques_saturate_at_the_motors_limits():
    model = load_model(GO2, visual=False)
    data = standing(model)
    data.ctrl[:] = GO2.stance + 100.0
    mujoco.mj_forward(model, data)
    assert data.actuator_force == pytest.approx(GO2.torque_limit)


def test_visuals_change_nothing_in_the_physics():
    """Bit for bit, through falls and collisions."""
    assert np.array_equal(tumble(load_model(GO2, visual=True)), tumble(load_model(GO2, visual=False)))


def test_discarding_visuals_leaves_the_collision_set():
    shapes = {load_model(GO2, visual=False).geom(i).name for i in range(load_model(GO2, visual=False).ngeom)}
    touching = {f"{leg}_{part}" for leg in GO2.leg_names for part in ("knee", "foot")}
    assert shapes == {"floor", "trunk", "head", *touching}


def tumble(model: mujoco.MjModel) -> np.ndarray:
    random = np.random.default_rng(1)
    data = standing(model)
    states = []
    for step in range(300):
        if step % 100 == 0:
            data.qpos[2:7] = [0.5, *random.normal(size=4)]
            data.qvel[:] = random.normal(size=18)
        data.ctrl[:] = GO2.stance + 0.5 * random.normal(size=12)
        mujoco.mj_step(model, data, CONTROL)
        states.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(states)


def symmetric_model() -> mujoco.MjModel:
    """The robot without the trunk's x-y and y-z products of inertia, which the published figures have."""
    spec = load_spec(GO2, visual=False)
    trunk = spec.body(GO2.base_body)
    products = np.array(trunk.fullinertia)
    products[[3, 5]] = 0.0
    trunk.fullinertia = products
    return spec.compile()


@pytest.mark.parametrize("seed", range(5))
def test_mirrored_state_and_targets_give_the_mirrored_trajectory(seed: int):
    """Exact but for rounding when the trunk is symmetric."""
    assert mirror_gap(symmetric_model(), seed) < 1e-9


def test_the_published_trunk_is_symmetric_enough():
    """Its products of inertia are not, quite: mostly 0.2 mm after half a second, more where a foot just slips."""
    gaps = [mirror_gap(load_model(GO2, visual=False), seed) for seed in range(5)]
    assert np.median(gaps) < 2e-4


def mirror_gap(model: mujoco.MjModel, seed: int) -> float:
    """Largest distance, m, between a trunk's path of half a second and the mirror image of its mirrored twin's."""
    random = np.random.default_rng(seed)
    tilt = geometry.normalize(np.array([1.0, *(0.1 * random.normal(size=3))]))
    pose = np.concatenate([[0.0, 0.0, 0.36], tilt, GO2.stance + 0.1 * random.normal(size=12)])
    speed = 0.3 * random.normal(size=18)
    targets = GO2.stance + 0.3 * random.normal(size=(25, 12))
    path = follow(model, pose, speed, targets)
    mirrored = follow(model, mirror_pose(pose), mirror_speed(speed), GO2.mirror_joints(targets))
    return float(np.abs(path - mirrored * geometry.MIRROR_VECTOR).max())


def mirror_pose(pose: np.ndarray) -> np.ndarray:
    position, orientation, joints = np.split(pose, [3, 7])
    return np.concatenate(
        [position * geometry.MIRROR_VECTOR, orientation * geometry.MIRROR_QUATERNION, GO2.mirror_joints(joints)]
    )


def mirror_speed(speed: np.ndarray) -> np.ndarray:
    linear, angular, joints = np.split(speed, [3, 6])
    return np.concatenate(
        [linear * geometry.MIRROR_VECTOR, angular * geometry.MIRROR_ROTATION, GO2.mirror_joints(joints)]
    )


def follow(model: mujoco.MjModel, pose: np.ndarray, speed: np.ndarray, targets: np.ndarray) -> np.ndarray:
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = pose, speed
    path = []
    for target in targets:
        data.ctrl[:] = target
        mujoco.mj_step(model, data, CONTROL)
        path.append(data.qpos[:3].copy())
    return np.array(path)


@pytest.mark.parametrize("joint", range(3))
def test_motors_have_a_torque_speed_curve(joint):
    """Full torque up to 45% of the rated speed, none at the rated speed, and braking at full torque; each joint its own."""
    model = load_model(GO2, visual=False)
    data = mujoco.MjData(model)
    torque, speed = float(GO2.torque_limit[joint]), float(GO2.speed_limit[joint])
    for share, expected in ((0.0, 1.0), (0.44, 1.0), (0.725, 0.5), (1.0, 0.0), (-0.5, 1.0)):
        mujoco.mj_resetData(model, data)
        data.qpos[7:] = GO2.stance
        data.qvel[6 + joint] = share * speed
        data.ctrl[:] = GO2.stance
        data.ctrl[joint] += 100.0
        mujoco.mj_forward(model, data)
        assert data.actuator_force[joint] == pytest.approx(expected * torque, abs=1e-6 * torque)


def test_below_its_limits_a_motor_is_a_pd_servo():
    model = load_model(GO2, visual=False)
    data = mujoco.MjData(model)
    data.qpos[7:] = GO2.stance
    data.qvel[6:] = 0.5
    data.ctrl[:] = GO2.stance + 0.1
    mujoco.mj_forward(model, data)
    assert data.actuator_force == pytest.approx(GO2.stiffness * 0.1 - GO2.damping * 0.5)


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    try:
        return draw_robot(GO2, GO2.stance, azimuth=180.0, elevation=-5.0, size=(160, 120))
    except Exception as error:  # no EGL or OSMesa: MuJoCo raises what its backend raises
        pytest.skip(f"nothing to draw with: {error}")


def test_the_face_is_darker_than_the_shell_above_it(picture: np.ndarray):
    """Seen from the front, the middle column holds the light brow over the dark face."""
    column = picture[:, 75:85].mean(axis=(1, 2))
    assert column.min() < 60
    assert column[: int(column.argmin())].max() > 150


def test_the_robot_is_seen_symmetric_from_the_front(picture: np.ndarray):
    """The fill light comes from one side, so only dark against light counts."""
    dark = picture.mean(axis=-1) < 60
    assert dark.sum() > 200
    assert np.mean(dark == dark[:, ::-1]) > 0.95


def test_png_holds_the_picture(tmp_path, picture: np.ndarray):
    path = tmp_path / "robot.png"
    write_png(path, picture)
    assert np.array_equal(np.asarray(PIL.Image.open(path)), picture)
    assert [file.name for file in tmp_path.iterdir()] == ["robot.png"]


def test_visual_shapes_are_the_robot_alone():
    """Every visible primitive of the robot, none of the floor, and none that a model without visuals still has."""
    model = load_model(GO2)
    shapes = visual_shapes(model)
    seen = [geom for geom in range(model.ngeom) if model.geom_group[geom] in SEEN_GROUPS and model.geom_bodyid[geom]]
    assert len(shapes) == len(seen) > 50
    assert {shape.body for shape in shapes} == set(range(1, model.nbody))
    np.testing.assert_array_equal([shape.radius for shape in shapes], model.geom_rbound[seen])
    assert visual_shapes(load_model(GO2, visual=False)) == []
