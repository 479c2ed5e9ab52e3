"""Knees and trunk against the model, and a trunk by its ends against the pose of the base."""

import mujoco
import numpy as np
import pytest

from keystride import geometry
from keystride.motion.retargeting.trunk import (
    Trunk,
    base_pose,
    half_length,
    heading_of,
    knee_clearance,
    knees_from_joints,
    pitch_of,
    roll_of,
    trunk_clearance,
    trunk_length,
)
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height
from keystride.robot.model import load_model

HIPS = np.array([leg.hip_in_base for leg in GO2.legs])  # (4, 3)


def test_knees_are_where_the_model_has_them() -> None:
    model = load_model(GO2, visual=False)
    data = mujoco.MjData(model)
    joints = np.random.default_rng(0).uniform(GO2.lower, GO2.upper)
    data.qpos[:7], data.qpos[7:] = [0, 0, 0, 1, 0, 0, 0], joints
    mujoco.mj_kinematics(model, data)
    calves = np.array([data.body(f"{leg.name}_calf").xpos for leg in GO2.legs])
    np.testing.assert_allclose(knees_from_joints(GO2, joints), calves, atol=1e-9)


def test_a_standing_robot_clears_the_ground() -> None:
    height = float(standing_height(GO2, GO2.stance))
    position, orientation = np.array([[0.0, 0.0, height]]), np.array([[1.0, 0.0, 0.0, 0.0]])
    trunk = trunk_clearance(GO2, position, orientation)
    knees = knee_clearance(GO2, position, orientation, GO2.stance[None])
    assert trunk.min() > 0.2
    assert (knees > 0.1).all()
    np.testing.assert_allclose(trunk_clearance(GO2, position - [0, 0, 0.1], orientation), trunk - 0.1)


@pytest.mark.parametrize("angles", [(0.0, 0.0, 0.0), (0.2, 0.0, 1.0), (0.0, -0.3, -2.0)])
def test_heading_pitch_and_roll_of_turned_hips(angles: tuple[float, float, float]) -> None:
    roll, pitch, yaw = angles
    hips = geometry.rotate(geometry.from_roll_pitch_yaw(np.array(angles)), HIPS)[None]  # (1, 4, 3)
    assert heading_of(hips)[0] == pytest.approx(yaw)
    assert pitch_of(hips)[0] == pytest.approx(-pitch)  # up is a negative pitch
    assert roll_of(hips)[0] == pytest.approx(roll)


def test_the_base_has_the_ends_of_the_trunk() -> None:
    front, rear = np.array([0.4]), np.array([0.3])
    zero = np.zeros(1)
    trunk = Trunk(np.array([[1.0, 2.0]]), front, rear, zero + 0.5, zero, zero, half_length(front, rear, GO2))
    position, orientation = base_pose(trunk, GO2)
    ends = position[:, None] + geometry.rotate(orientation[:, None], HIPS)
    assert ends[0, :2, 2] == pytest.approx(0.4)
    assert ends[0, 2:, 2] == pytest.approx(0.3)
    assert geometry.yaw_of(orientation)[0] == pytest.approx(0.5)
    assert trunk_length(GO2) == pytest.approx(2 * 0.1934)
