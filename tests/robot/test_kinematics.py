import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystride.robot.go2 import GO2
from keystride.robot.kinematics import calf_rates, feet_from_joints, joints_from_feet, standing_height
from keystride.robot.model import load_model

MODEL = load_model(GO2, visual=False)

within_limits = st.lists(st.floats(0, 1), min_size=12, max_size=12).map(
    lambda shares: GO2.lower + np.array(shares) * (GO2.upper - GO2.lower)
)


def simulated_feet(joints: np.ndarray) -> np.ndarray:
    """Foot sites of the model with its base at the origin; (4, 3)."""
    data = mujoco.MjData(MODEL)
    data.qpos[:3] = 0.0
    data.qpos[7:] = joints
    mujoco.mj_kinematics(MODEL, data)
    return np.array([data.site(name).xpos for name in GO2.foot_sites])


@given(within_limits)
def test_forward_kinematics_is_the_models(joints: np.ndarray):
    assert feet_from_joints(GO2, joints) == pytest.approx(simulated_feet(joints), abs=1e-12)


@given(within_limits)
def test_inverse_kinematics_reaches_every_foot_that_is_below_its_hip(joints: np.ndarray):
    feet = feet_from_joints(GO2, joints)
    found, miss = joints_from_feet(GO2, feet)
    depth = -np.cos(joints[1::3]) * 0.213 - np.cos(joints[1::3] + joints[2::3]) * 0.213  # in the leg's plane
    below = depth < -1e-3  # over the hip another abduction angle reaches the same foot
    assert miss[below] == pytest.approx(0.0, abs=1e-6)
    angles = np.repeat(below, 3)
    assert found[angles] == pytest.approx(joints[angles], abs=1e-5)


def test_batches_agree_with_single_postures():
    joints = np.random.default_rng(0).uniform(GO2.lower, GO2.upper, (5, 7, 12))
    feet = feet_from_joints(GO2, joints)
    assert feet.shape == (5, 7, 4, 3)
    assert np.array_equal(feet[3, 2], feet_from_joints(GO2, joints[3, 2]))


@pytest.mark.parametrize(("calf", "reach"), [(-2.7227, 0.0886), (-0.83776, 0.3892)])
def test_reach_at_the_knees_limits(calf: float, reach: float):
    joints = np.tile([0.0, 0.5, calf], 4)
    thigh = np.array([np.add(leg.hip_in_base, leg.thigh_in_hip) for leg in GO2.legs])
    distance = np.linalg.norm(feet_from_joints(GO2, joints) - thigh, axis=-1)
    assert distance == pytest.approx([reach] * 4, abs=1e-4)


@pytest.mark.parametrize(("thigh", "calf", "height"), [(0.9, -1.8, 0.287), (0.8, -1.5, 0.333), (1.0, -1.5, 0.324)])
def test_standing_heights_of_public_stances(thigh: float, calf: float, height: float):
    assert standing_height(GO2, np.tile([0.0, thigh, calf], 4)) == pytest.approx(height, abs=5e-4)


def test_a_foot_out_of_reach_is_missed_by_what_is_left_over():
    feet = feet_from_joints(GO2, GO2.stance)
    feet[0, 2] = -0.6
    joints, miss = joints_from_feet(GO2, feet)
    assert miss[0] == pytest.approx(0.6 - 0.3892, abs=2e-3)  # the leg points almost straight down
    assert miss[1:] == pytest.approx(0.0, abs=1e-9)
    assert (joints >= GO2.lower).all()
    assert (joints <= GO2.upper).all()


def test_calves_turn_as_in_the_model():
    data, random = mujoco.MjData(MODEL), np.random.default_rng(0)
    joints, speeds = random.uniform(GO2.lower, GO2.upper), random.normal(size=12)
    data.qpos[:7] = 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0
    data.qpos[7:], data.qvel[6:] = joints, speeds
    mujoco.mj_forward(MODEL, data)
    turning = np.zeros((4, 6))
    for row, name in zip(turning, ("FL", "FR", "RL", "RR"), strict=True):
        mujoco.mj_objectVelocity(MODEL, data, mujoco.mjtObj.mjOBJ_XBODY, MODEL.body(f"{name}_calf").id, row, 0)
    assert calf_rates(joints, speeds) == pytest.approx(turning[:, :3], abs=1e-9)
