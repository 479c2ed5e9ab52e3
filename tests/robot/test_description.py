import numpy as np

from keystride.robot.go2 import GO2


def test_mirroring_twice_changes_nothing():
    joints = np.arange(24.0).reshape(2, 12)
    assert np.array_equal(GO2.mirror_joints(GO2.mirror_joints(joints)), joints)


def test_mirroring_swaps_legs_and_turns_the_abduction_round():
    left_out = np.zeros(12)
    left_out[:3] = [0.3, 0.8, -1.5]  # FL
    mirrored = GO2.mirror_joints(left_out)
    assert mirrored[3:6].tolist() == [-0.3, 0.8, -1.5]  # FR
    assert not mirrored[[0, 1, 2, 6, 7, 8, 9, 10, 11]].any()


def test_mirror_image_of_a_joint_is_the_same_joint_across():
    for name, across in zip(GO2.joint_names, GO2.mirror_order, strict=True):
        swapped = name[0] + {"L": "R", "R": "L"}[name[1]] + name[2:]
        assert GO2.joint_names[across] == swapped


def test_names_derive_from_the_legs():
    assert GO2.leg_names == ("FL", "FR", "RL", "RR")
    assert GO2.foot_sites == ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
