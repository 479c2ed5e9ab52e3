"""Every posture is one that the robot can take: on its feet, over its feet, through nothing."""

import mujoco
import numpy as np
import pytest

from keystride import geometry
from keystride.keyframes.postures import (
    FOOTINGS,
    Footing,
    Posture,
    named_postures,
    posture,
    reflect_posture,
    solve,
    stand,
)
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model

POSTURES = named_postures(GO2)

MODEL = load_model(GO2, visual=False)
GROUNDED = [name for name, found in POSTURES.items() if not found.airborne]


def pose(found: Posture) -> mujoco.MjData:
    data = mujoco.MjData(MODEL)
    data.qpos[:3] = 0.0, 0.0, found.height
    data.qpos[3:7] = geometry.from_roll_pitch_yaw(np.array([found.roll, found.pitch, 0.0]))
    data.qpos[7:] = found.joints
    mujoco.mj_forward(MODEL, data)
    return data


def feet_heights(data: mujoco.MjData) -> np.ndarray:
    """Gaps between the foot spheres and the ground."""
    return np.array([data.site(site).xpos[2] for site in GO2.foot_sites]) - GO2.foot_radius


@pytest.mark.parametrize("name", POSTURES)
def test_joints_are_within_their_limits(name: str):
    joints = posture(name, GO2).joints
    assert joints.shape == (12,)
    assert np.all(joints >= GO2.lower)
    assert np.all(joints <= GO2.upper)


@pytest.mark.parametrize("name", GROUNDED)
def test_feet_touch_the_ground_unless_a_paw_is_up(name: str):
    gaps = feet_heights(pose(posture(name, GO2)))
    lifted = gaps > 0.05
    assert lifted.sum() == (1 if "paw_up" in name else 0)
    np.testing.assert_allclose(gaps[~lifted], 0.0, atol=1e-9)


@pytest.mark.parametrize("name", POSTURES)
def test_nothing_reaches_into_the_ground(name: str):
    data = pose(posture(name, GO2))
    assert all(contact.dist > -1e-6 for contact in data.contact)


@pytest.mark.parametrize("name", GROUNDED)
def test_the_centre_of_mass_is_over_the_feet(name: str):
    data = pose(posture(name, GO2))
    feet = np.array([data.site(site).xpos for site in GO2.foot_sites])
    feet = feet[feet_heights(data) < 0.05, :2]
    around = feet[np.argsort(np.arctan2(*(feet - feet.mean(axis=0)).T[::-1]))]  # anticlockwise
    edge = np.roll(around, -1, axis=0) - around
    offset = data.subtree_com[0, :2] - around
    inside = (edge[:, 0] * offset[:, 1] - edge[:, 1] * offset[:, 0]) / np.linalg.norm(edge, axis=-1)  # m
    assert inside.min() > 0.04


@pytest.mark.parametrize("name", [name for name, found in POSTURES.items() if found.airborne])
def test_airborne_postures_are_off_the_ground(name: str):
    assert feet_heights(pose(posture(name, GO2))).min() > 0.1


def test_paw_up_raises_the_front_right_foot_and_its_mirror_image_the_front_left():
    assert feet_heights(pose(posture("paw_up", GO2))).argmax() == 1
    assert feet_heights(pose(posture("paw_up_left", GO2))).argmax() == 0


def test_mirroring_twice_changes_nothing():
    for found in POSTURES.values():
        again = reflect_posture(reflect_posture(found, GO2), GO2)
        np.testing.assert_array_equal(again.joints, found.joints)
        assert (again.roll, again.pitch, again.height) == (found.roll, found.pitch, found.height)


def test_stand_is_the_stance_at_its_height():
    np.testing.assert_array_equal(stand(GO2).joints, GO2.stance)
    assert stand(GO2).height == pytest.approx(0.213 * (np.cos(0.8) + np.cos(0.7)) + 0.022)


def test_sit_raises_the_head_and_bow_lowers_it():
    assert np.degrees(posture("sit", GO2).pitch) == pytest.approx(FOOTINGS["sit"].pitch)
    assert pose(posture("sit", GO2)).body("base").xmat[6] > 0.3  # world z of the base's x axis
    assert pose(posture("bow", GO2)).body("base").xmat[6] < -0.3


def test_a_footing_beyond_reach_names_the_legs():
    with pytest.raises(ValueError, match="RL by"):
        solve(Footing(height=0.3, rear_left=(-0.5, 0.0, 0.0)), GO2)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match="unknown posture 'sti'; choose from stand"):
        posture("sti", GO2)
