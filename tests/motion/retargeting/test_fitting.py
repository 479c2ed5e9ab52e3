"""Joint angles for a trunk and four feet: planted feet stay, limits and ground hold."""

import numpy as np

from keystride.motion.retargeting.fitting import FitSettings, fit, within_motor_speed
from keystride.motion.retargeting.trunk import Trunk, half_length, trunk_clearance
from keystride.motion.signals import Flags, clip_feet
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints


def test_motors_are_never_outrun():
    joints = np.tile(GO2.stance, (60, 1))
    joints[30, 2] -= 1.0  # 50 rad/s there and back
    calm = within_motor_speed(joints, GO2)
    assert (np.abs(np.diff(calm, axis=0)) * 50 <= GO2.speed_limit).all()
    np.testing.assert_array_equal(calm[:, 3:], joints[:, 3:])  # other legs are left alone
    np.testing.assert_array_equal(calm[:10], joints[:10])


def standing(height: float, frames: int = 40) -> tuple[Trunk, Floats, Flags]:
    """A level trunk at a height over four soles on the ground."""
    level, zero = np.full(frames, height), np.zeros(frames)
    half = half_length(level, level, GO2)
    trunk = Trunk(np.zeros((frames, 2)), level, level, zero, zero, zero, half)
    soles = np.tile(feet_from_joints(GO2, GO2.stance) * [1.0, 1.0, 0.0], (frames, 1, 1))
    return trunk, soles, np.ones((frames, 4), dtype=bool)


def test_what_a_robot_can_do_is_done_exactly():
    take = fit(*standing(0.30), name="stand", robot=GO2, settings=FitSettings())
    np.testing.assert_allclose(take.clip.base_position, np.tile([0.0, 0.0, 0.30], (40, 1)), atol=1e-9)
    assert take.residual.max() < 1e-6
    assert not take.clamped.any()


def test_a_trunk_that_is_too_high_comes_down_and_the_planted_feet_stay():
    trunk, soles, planted = standing(0.50)
    take = fit(trunk, soles, planted, name="tall", robot=GO2, settings=FitSettings())
    assert take.clamped.all()
    assert (take.clip.base_position[:, 2] < 0.45).all()
    assert take.residual.max() < 1e-3
    np.testing.assert_allclose(clip_feet(take.clip, GO2)[..., 2], GO2.foot_radius, atol=1e-3)


def test_a_trunk_in_the_ground_is_lifted_out_of_it():
    take = fit(*standing(0.02), name="low", robot=GO2, settings=FitSettings())
    assert take.clamped.all()
    position, orientation = take.clip.base_position, take.clip.base_orientation
    assert trunk_clearance(GO2, position, orientation).min() > -2e-3
    assert clip_feet(take.clip, GO2)[..., 2].min() >= GO2.foot_radius - 1e-9


def test_joints_keep_their_margin_to_the_limits():
    take = fit(*standing(0.12), name="crouch", robot=GO2, settings=FitSettings(margin=0.1))
    assert (take.clip.joint_angles >= GO2.lower + 0.1 - 1e-9).all()
    assert (take.clip.joint_angles <= GO2.upper - 0.1 + 1e-9).all()
