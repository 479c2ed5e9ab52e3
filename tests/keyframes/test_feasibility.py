"""Speeds by hand arithmetic, and a warning for each thing that a Go2 does not do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from keystride.keyframes.feasibility import body_radius, demands, lowest_foot, script_warnings
from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

POSTURES = named_postures(GO2)


def script(*keyframes: Keyframe) -> Script:
    return Script(keyframes=keyframes)


def test_speed_is_distance_over_the_time_since_the_last_position():
    walk = script(
        Keyframe(time=1, position=(0.3, 0.4)), Keyframe(time=2, yaw=45), Keyframe(time=3, position=(3.3, 4.4))
    )
    assert [demand.speed for demand in demands(walk, GO2)] == [pytest.approx(0.5), None, pytest.approx(2.5)]
    assert [demand.standing_start for demand in demands(walk, GO2)] == [True, False, False]


def test_turn_rate_takes_the_shorter_way():
    turn = script(Keyframe(time=1, yaw=170), Keyframe(time=2, position=(0, 0)), Keyframe(time=3, yaw=-170))
    rates = [demand.turn_rate for demand in demands(turn, GO2)]
    assert rates == [pytest.approx(np.radians(170.0)), None, pytest.approx(np.radians(10.0))]
    assert script_warnings(turn, GO2) == []


def test_joint_speed_counts_from_the_stance():
    demand = demands(script(Keyframe(time=0.5, posture={"FL_hip_joint": 30.0})), GO2)[0]
    assert demand.joint_speed is not None
    assert demand.joint_speed[0] == pytest.approx(np.radians(60.0))
    np.testing.assert_array_equal(demand.joint_speed[1:], 0.0)


@pytest.mark.parametrize(
    ("keyframes", "words"),
    [
        ([Keyframe(time=1, position=(1.6, 0))], "1.6 m/s from a standstill"),
        (
            [Keyframe(time=1, position=(1, 0)), Keyframe(time=2, position=(4.1, 0))],
            "3.1 m/s exceeds the robot's limit of 3 m/s",
        ),
        ([Keyframe(time=0.5, yaw=91)], "182 degrees/s"),
        ([Keyframe(time=5, yaw=200)], "a turn by 200 degrees is made the shorter way"),
        ([Keyframe(time=0, position=(1, 0))], "no time"),
        ([Keyframe(time=1, position=(0, 0, 0.5))], "base height 0.5 m"),
        ([Keyframe(time=1, position=(0, 0, 0.05))], "base height 0.05 m"),
        ([Keyframe(time=1, roll=31)], "roll 31 degrees"),
        ([Keyframe(time=1, pitch=-46)], "pitch -46 degrees"),
        ([Keyframe(time=1, position=(0, 0, 0.2), posture="stand")], "into the ground"),
        ([Keyframe(time=0.04, posture="lie")], "rad/s, but its motor is limited to"),
    ],
)
def test_each_excess_has_its_warning(keyframes: list[Keyframe], words: str):
    (warning,) = script_warnings(script(*keyframes), GO2)
    assert words in warning.message
    assert warning.row == len(keyframes) - 1


def test_what_a_go2_does_has_no_warning():
    walk = [Keyframe(time=1, position=(1.4, 0, 0.32), yaw=170), Keyframe(time=2, position=(4.2, 0, 0.44), yaw=-20)]
    assert script_warnings(script(*walk), GO2) == []


@pytest.mark.parametrize("name", [name for name, found in POSTURES.items() if not found.airborne])
def test_named_postures_stand_on_the_ground_at_their_height(name: str):
    gap = lowest_foot(Keyframe(time=1, posture=name), POSTURES[name].height, "degrees", GO2)
    assert gap == pytest.approx(0.0, abs=1e-9)


def test_heights_are_those_of_the_robot():
    taller = replace(GO2, legs=tuple(replace(leg, calf_length=0.4) for leg in GO2.legs))
    high, low = (script(Keyframe(time=1, position=(0, 0, height))) for height in (0.6, 0.11))
    assert [one.message for one in script_warnings(high, GO2)] == [
        "base height 0.6 m is outside what the robot reaches (0.10 to 0.45 m)"
    ]
    assert script_warnings(high, taller) == []
    assert script_warnings(low, GO2) == []
    assert [one.message for one in script_warnings(low, taller)] == [
        "base height 0.11 m is outside what the robot reaches (0.14 to 0.64 m)"
    ]


def test_speeds_scale_with_the_size_of_the_robot():
    """Four times as tall: twice the speed, half the turn rate, four times the radius."""
    larger = replace(
        GO2,
        legs=tuple(
            replace(
                leg,
                hip_in_base=tuple(4 * x for x in leg.hip_in_base),
                thigh_in_hip=tuple(4 * x for x in leg.thigh_in_hip),
                thigh_length=4 * leg.thigh_length,
                calf_length=4 * leg.calf_length,
            )
            for leg in GO2.legs
        ),
        foot_radius=4 * GO2.foot_radius,
    )
    assert body_radius(GO2) == pytest.approx(0.38, abs=1e-4)
    assert body_radius(larger) == pytest.approx(1.52, abs=4e-4)
    fast, faster = (script(Keyframe(time=1, position=(speed, 0))) for speed in (2.9, 3.1))
    assert [one.message for one in script_warnings(fast, GO2)] == [
        "2.9 m/s from a standstill exceeds the robot's limit of 1.5 m/s"
    ]
    assert script_warnings(fast, larger) == []
    assert len(script_warnings(faster, larger)) == 1
    turn = script(Keyframe(time=1, yaw=91))
    assert script_warnings(turn, GO2) == []
    assert [one.message for one in script_warnings(turn, larger)] == [
        "a turn at 91 degrees/s exceeds the robot's limit of 90 degrees/s"
    ]


def test_every_named_posture_is_within_reach_at_its_own_height():
    for name, found in POSTURES.items():
        assert script_warnings(script(Keyframe(time=1, position=(0, 0, found.height), posture=name)), GO2) == []


@given(asked=...)
@settings(max_examples=25)
def test_every_script_can_be_judged(asked: Script):
    assert len(demands(asked, GO2)) == len(asked.keyframes)
    assert all(0 <= warning.row < len(asked.keyframes) for warning in script_warnings(asked, GO2))
