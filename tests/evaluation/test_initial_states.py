import numpy as np

from keystride import geometry
from keystride.evaluation.initial_states import StanceNoise, exact_stance, noisy_stance
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height


def test_without_noise_it_is_the_stance() -> None:
    still = StanceNoise(0.0, 0.0, 0.0, 0.0, 0.0)
    drawn, exact = noisy_stance(GO2, 3, np.random.default_rng(0), still), exact_stance(GO2, 3)
    for name in ("position", "orientation", "linear_velocity", "angular_velocity", "joint_angles", "joint_velocities"):
        assert np.allclose(getattr(drawn, name), getattr(exact, name))


def test_noise_fills_its_widths_and_stays_inside() -> None:
    noise = StanceNoise()
    start = noisy_stance(GO2, 4000, np.random.default_rng(1), noise)
    off = np.abs(start.joint_angles - GO2.stance)
    assert 0.99 * noise.joints < off.max() <= noise.joints
    assert 0.99 * noise.velocity < np.abs(start.linear_velocity).max() <= noise.velocity
    assert np.abs(start.joint_angles.mean(axis=0) - GO2.stance).max() < 0.1 * noise.joints


def test_goals_are_seen_from_an_exact_spot_and_heading_with_the_feet_on_the_ground() -> None:
    start = noisy_stance(GO2, 50, np.random.default_rng(2))
    assert not start.position[:, :2].any()
    assert np.allclose(geometry.yaw_of(start.orientation), 0.0)
    assert np.allclose(start.position[:, 2], standing_height(GO2, start.joint_angles))
