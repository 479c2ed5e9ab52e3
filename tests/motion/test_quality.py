import numpy as np
import pytest

from keystride.motion.clip import Clip, make_clip
from keystride.motion.quality import Targets, clip_figures, library_figures
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height

HEIGHT = float(standing_height(GO2, GO2.stance))


def standing(frames: int = 51, height: float = HEIGHT, speed: float = 0.0) -> Clip:
    """A rigid stance carried forwards at a height."""
    position = np.zeros((frames, 3))
    position[:, 0] = np.arange(frames) / 50 * speed
    position[:, 2] = height
    return make_clip("stand", GO2, position, np.tile([1.0, 0, 0, 0], (frames, 1)), np.tile(GO2.stance, (frames, 1)))


def test_standing_still_is_perfect():
    found = clip_figures(standing(), GO2)
    assert found.seconds == pytest.approx(51 / 50)
    assert found.slide == pytest.approx(0.0)
    assert found.penetration_max == pytest.approx(0.0, abs=1e-12)
    assert found.airborne_share == 0.0
    assert Targets().misses(found) == []


def test_a_stance_dragged_along_slides_at_its_speed():
    found = clip_figures(standing(speed=0.2), GO2)
    assert found.slide == pytest.approx(0.2)
    assert found.mean_speed == pytest.approx(0.2)
    assert [line.split()[0] for line in Targets().misses(found)] == ["slide"]


def test_a_low_base_pushes_the_feet_in_and_a_high_one_lifts_them():
    assert clip_figures(standing(height=HEIGHT - 0.01), GO2).penetration_max == pytest.approx(0.01)
    assert clip_figures(standing(height=HEIGHT + 0.1), GO2).airborne_share == 1.0


def test_limits_and_motor_speeds_are_counted():
    joints = np.tile(GO2.stance, (11, 1))
    joints[5, 2] = GO2.upper[2] + 0.1
    clip = make_clip("kick", GO2, standing(11).base_position, standing(11).base_orientation, joints)
    found = clip_figures(clip, GO2)
    step = (GO2.upper[2] + 0.1 - GO2.stance[2]) * 50
    assert found.limit_share == pytest.approx(1 / 11)
    assert found.beyond_limit == pytest.approx(0.1)
    assert found.joint_speed_grounded == pytest.approx(step)
    assert found.motor_share == pytest.approx(step / GO2.speed_limit[2])


def test_a_library_weighs_clips_by_their_frames():
    found = library_figures([standing(100), standing(300, speed=0.2)], GO2)
    assert found.mean_speed == pytest.approx(0.15)
    assert found.slide == pytest.approx(0.15)
