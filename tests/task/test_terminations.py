"""When episodes end early, by hand arithmetic."""

from dataclasses import replace

import numpy as np
import pytest

from keystride import geometry
from keystride.physics.simulator import CpuSimulator, State, standing_start
from keystride.robot.go2 import GO2
from keystride.task.terminations import HIT_SPEED, LIMIT_MARGIN, at_joint_limit, fallen


@pytest.fixture(scope="module")
def standing() -> State:
    robots = CpuSimulator(GO2, 1, threads=1)
    robots.reset(np.arange(1), standing_start(1, 0.33, GO2.stance))
    return robots.state()


def tilted(state: State, roll: float = 0.0, pitch: float = 0.0) -> State:
    return replace(state, orientation=geometry.from_roll_pitch_yaw(np.array([[roll, pitch, 0.0]])))


def test_a_level_trunk_touches_the_ground_at_half_its_height(standing: State) -> None:
    half = GO2.trunk_half_size[2]
    for height, expected in ((half + 0.001, False), (half - 0.001, True)):
        assert fallen(GO2, replace(standing, position=np.array([[0.0, 0.0, height]]))).tolist() == [expected]


def test_rearing_is_allowed_and_lying_on_the_side_is_not(standing: State) -> None:
    high = replace(standing, position=np.array([[0.0, 0.0, 1.0]]))
    assert not fallen(GO2, tilted(high, pitch=-np.radians(70.0)))[0]
    assert fallen(GO2, tilted(high, roll=np.radians(90.0)))[0]
    assert fallen(GO2, tilted(high, roll=np.radians(180.0)))[0]


def test_a_pitched_trunk_touches_with_its_corner(standing: State) -> None:
    """A corner lies sin(30) of half the length and cos(30) of half the height below the centre."""
    length, _, half = GO2.trunk_half_size
    lowest = 0.5 * length + np.cos(np.radians(30.0)) * half
    pitched = tilted(standing, pitch=np.radians(30.0))
    assert fallen(GO2, replace(pitched, position=np.array([[0.0, 0.0, lowest - 0.001]])))[0]
    assert not fallen(GO2, replace(pitched, position=np.array([[0.0, 0.0, lowest + 0.001]])))[0]


@pytest.mark.parametrize("joint", [0, 5, 11])
def test_one_joint_that_runs_into_its_limit_is_enough(standing: State, joint: int) -> None:
    assert not at_joint_limit(GO2, standing)[0]
    for limit, inwards in ((GO2.lower, 1.0), (GO2.upper, -1.0)):
        angles, speeds = standing.joint_angles.copy(), np.zeros((1, 12))
        angles[0, joint] = limit[joint] + inwards * 0.9 * LIMIT_MARGIN
        speeds[0, joint] = -inwards * 1.1 * HIT_SPEED
        assert at_joint_limit(GO2, replace(standing, joint_angles=angles, joint_velocities=speeds))[0]
        assert not at_joint_limit(GO2, replace(standing, joint_angles=angles, joint_velocities=-speeds))[0]
        assert not at_joint_limit(GO2, replace(standing, joint_angles=angles, joint_velocities=0.5 * speeds))[0]
        angles[0, joint] = limit[joint] + inwards * 1.1 * LIMIT_MARGIN
        assert not at_joint_limit(GO2, replace(standing, joint_angles=angles, joint_velocities=speeds))[0]
