"""The description and the model file against the published figures of the Go2."""

import mujoco
import numpy as np
import pytest

from keystride.robot.go2 import GO2
from keystride.robot.model import load_model

LEGS = ("FL", "FR", "RL", "RR")
PARTS = ("hip", "thigh", "calf")
MODEL = load_model(GO2)


def test_joints_come_leg_by_leg_in_the_order_of_the_model():
    expected = [f"{leg}_{part}_joint" for leg in LEGS for part in PARTS]
    in_model = [MODEL.joint(i).name for i in range(1, MODEL.njnt)]
    assert list(GO2.joint_names) == expected == in_model


def test_every_motor_drives_the_joint_of_its_place():
    assert [MODEL.joint(int(MODEL.actuator_trnid[i, 0])).name for i in range(MODEL.nu)] == list(GO2.joint_names)


def test_total_mass():
    parts = 6.921 + 4 * (0.678 + 1.152 + 0.241352)
    assert MODEL.body_mass.sum() == pytest.approx(parts) == pytest.approx(15.206, abs=1e-3)


@pytest.mark.parametrize("leg", LEGS)
def test_link_lengths(leg: str):
    x, y = (1 if leg[0] == "F" else -1), (1 if leg[1] == "L" else -1)
    assert MODEL.body(f"{leg}_hip").pos == pytest.approx([x * 0.1934, y * 0.0465, 0])
    assert MODEL.body(f"{leg}_thigh").pos == pytest.approx([0, y * 0.0955, 0])
    assert MODEL.body(f"{leg}_calf").pos == pytest.approx([0, 0, -0.213])
    assert MODEL.site(f"{leg}_foot").pos == pytest.approx([0, 0, -0.213])


@pytest.mark.parametrize("leg", LEGS)
def test_foot_is_a_sphere_around_its_site(leg: str):
    foot = MODEL.geom(f"{leg}_foot")
    assert foot.size[0] == GO2.foot_radius == 0.022
    assert foot.pos == pytest.approx(MODEL.site(f"{leg}_foot").pos)


@pytest.mark.parametrize(
    ("joint", "lower", "upper", "torque", "speed"),
    [
        ("hip", -1.0472, 1.0472, 23.7, 30.1),
        ("front thigh", -1.5708, 3.4907, 23.7, 30.1),
        ("rear thigh", -0.5236, 4.5379, 23.7, 30.1),
        ("calf", -2.7227, -0.83776, 45.43, 15.70),
    ],
)
def test_limits_and_torques(joint: str, lower: float, upper: float, torque: float, speed: float):
    end, part = joint.split() if " " in joint else ("", joint)
    rows = [i for i, name in enumerate(GO2.joint_names) if part in name and name[0] in (end[:1].upper() or "FR")]
    assert len(rows) == (2 if end else 4)
    for row in rows:
        assert MODEL.jnt_range[row + 1] == pytest.approx([lower, upper])
        assert MODEL.actuator_forcerange[row] == pytest.approx([-torque, torque])
        assert (GO2.lower[row], GO2.upper[row]) == pytest.approx((lower, upper))
        assert (GO2.torque_limit[row], GO2.speed_limit[row]) == pytest.approx((torque, speed))


def test_axes_are_x_for_the_hip_and_y_for_thigh_and_calf():
    assert MODEL.jnt_axis[1:] == pytest.approx(np.tile([[1, 0, 0], [0, 1, 0], [0, 1, 0]], (4, 1)))


def test_stance_lies_within_the_limits():
    assert (GO2.lower < GO2.stance).all()
    assert (GO2.stance < GO2.upper).all()


def test_the_description_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        GO2.stance[0] = 1.0


def test_shapes_are_primitives():
    assert MODEL.nmesh == 0


def test_the_legs_inertias_mirror_exactly():
    """Only the trunk, whose published inertia has small x-y and y-z terms, is not its own mirror image."""
    for end in "FR":
        for part in PARTS:
            left, right = MODEL.body(f"{end}L_{part}"), MODEL.body(f"{end}R_{part}")
            assert left.mass == right.mass
            assert left.ipos == pytest.approx(right.ipos * [1, -1, 1])
            flip = np.diag([1.0, -1.0, 1.0])
            assert inertia(left) == pytest.approx(flip @ inertia(right) @ flip, abs=1e-12)


def inertia(body: mujoco.MjModel) -> np.ndarray:
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    axes = axes.reshape(3, 3)
    return axes @ np.diag(body.inertia) @ axes.T
