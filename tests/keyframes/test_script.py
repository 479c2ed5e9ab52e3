"""Building scripts in Python, and the angles that they mean."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from keystride.keyframes.document import ScriptError
from keystride.keyframes.postures import posture
from keystride.keyframes.script import Keyframe, Script, check_joint_limits, posture_angles
from keystride.robot.go2 import GO2


def test_a_script_is_built_from_plain_values_and_arrays():
    script = Script(keyframes=(Keyframe(time=1, position=np.array([1.0, 2.0])), Keyframe(time=np.float64(2), yaw=30)))  # pyright: ignore[reportArgumentType]
    assert script.keyframes[0].position == (1.0, 2.0)
    assert script.keyframes[1].time == 2.0
    assert script.angles == "degrees"


@pytest.mark.parametrize(("seconds", "step"), [(0.0, 0), (0.02, 1), (0.029, 1), (0.03, 2), (1.0, 50), (1.009, 50)])
def test_times_round_to_control_steps_of_20_ms(seconds: float, step: int):
    assert Keyframe(time=seconds, yaw=0).step == step


def test_keyframes_cannot_be_changed_behind_the_script():
    with pytest.raises(ValidationError, match="frozen"):
        Keyframe(time=1, yaw=0).time = 2.0  # pyright: ignore[reportAttributeAccessIssue]


def test_a_mapping_leaves_the_other_joints_in_the_stance():
    angles = posture_angles({"FR_hip_joint": 30.0}, "degrees", GO2)
    assert angles[3] == pytest.approx(np.pi / 6)
    np.testing.assert_array_equal(np.delete(angles, 3), np.delete(GO2.stance, 3))


def test_twelve_angles_are_in_the_unit_of_the_header():
    np.testing.assert_allclose(posture_angles(tuple(np.degrees(GO2.stance)), "degrees", GO2), GO2.stance)
    np.testing.assert_allclose(posture_angles(tuple(GO2.stance), "radians", GO2), GO2.stance)


def test_a_name_means_the_named_posture():
    np.testing.assert_array_equal(posture_angles("sit", "degrees", GO2), posture("sit", GO2).joints)


def test_a_limit_rounded_to_whole_degrees_is_taken_as_the_limit():
    script = Script(keyframes=(Keyframe(time=1, posture={"FL_calf_joint": -156.0}),))
    assert posture_angles(script.keyframes[0].posture, "degrees", GO2)[2] == GO2.lower[2]


def test_the_python_constructor_checks_order_and_tilts():
    with pytest.raises(ValidationError, match="not later than the keyframe before"):
        Script(keyframes=(Keyframe(time=2, yaw=0), Keyframe(time=1, yaw=0)))
    with pytest.raises(ValidationError, match=r"pitch\n.*91 is beyond its limit"):
        Script(keyframes=(Keyframe(time=1, pitch=91),))


def test_joint_limits_are_those_of_the_given_robot():
    knees = tuple(replace(leg, lower=(*leg.lower[:2], -3.0)) for leg in GO2.legs)
    script = Script(keyframes=(Keyframe(time=1, yaw=0), Keyframe(time=2, posture={"FL_calf_joint": -170.0})))
    check_joint_limits(script, replace(GO2, name="folding", legs=knees))
    with pytest.raises(ScriptError) as caught:
        check_joint_limits(script, GO2)
    assert [str(one) for one in caught.value.problems] == [
        "keyframe 2, posture.FL_calf_joint: -170 is beyond its limit; allowed: -156.0 to -48.0 degrees"
    ]
