"""Laws of shifting, mirroring and joining scripts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystride import geometry
from keystride.keyframes.document import ScriptError
from keystride.keyframes.edit import complete, concatenate, in_unit, mirror, shift, with_stage
from keystride.keyframes.goals import Goals
from keystride.keyframes.postures import mirror_name, named_postures, posture
from keystride.keyframes.resolve import place_goals, resolve, spots
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

POSTURES = named_postures(GO2)

FOLDED = -3.0  # rad, which the calf of this robot reaches and the Go2's (-2.72) does not
FOLDING = replace(GO2, name="folding", legs=tuple(replace(leg, lower=(*leg.lower[:2], FOLDED)) for leg in GO2.legs))

seconds = st.integers(0, 500).map(lambda step: round(step * 0.02, 2))


def assert_same_goals(found: Goals, expected: Goals):
    np.testing.assert_array_equal(found.step, expected.step)
    np.testing.assert_array_equal(found.presence, expected.presence)
    np.testing.assert_array_equal(found.height, expected.height)
    np.testing.assert_allclose(found.position, expected.position, atol=1e-6)
    np.testing.assert_allclose(geometry.wrap(found.angles - expected.angles), 0.0, atol=1e-6)
    np.testing.assert_allclose(found.posture, expected.posture, atol=1e-6)


@given(script=..., later=seconds)
@settings(max_examples=20)
def test_shifting_there_and_back_changes_nothing(script: Script, later: float):
    assert shift(shift(script, later), -later) == script


@given(script=..., later=seconds)
@settings(max_examples=20)
def test_shifting_moves_every_step_by_the_same(script: Script, later: float):
    moved, before = resolve(shift(script, later), GO2), resolve(script, GO2)
    np.testing.assert_array_equal(moved.step - before.step, round(later / 0.02))


def test_no_keyframe_is_shifted_before_the_start():
    with pytest.raises(ScriptError, match="keyframe 1, time: -1 is out of range"):
        shift(Script(keyframes=(Keyframe(time=1, yaw=0),)), -2.0)


@given(script=...)
@settings(max_examples=20)
def test_mirroring_twice_changes_nothing(script: Script):
    assert mirror(mirror(script)) == script


@given(script=...)
@settings(max_examples=20)
def test_mirrored_goals_are_the_mirror_image_of_the_goals(script: Script):
    goals, image = resolve(script, GO2), resolve(mirror(script), GO2)
    np.testing.assert_allclose(image.position, goals.position * geometry.MIRROR_VECTOR, atol=1e-9)
    np.testing.assert_allclose(image.angles, goals.angles * geometry.MIRROR_ROTATION, atol=1e-12)
    np.testing.assert_allclose(image.posture, GO2.mirror_joints(goals.posture), atol=1e-12)


def test_every_posture_name_has_the_name_of_its_mirror_image():
    for name in POSTURES:
        expected = GO2.mirror_joints(posture(name, GO2).joints)
        np.testing.assert_allclose(posture(mirror_name(name), GO2).joints, expected, atol=1e-12)


@given(first=..., second=...)
@settings(max_examples=20)
def test_the_second_script_is_played_from_where_the_first_one_ends(first: Script, second: Script):
    joined, before, after = resolve(concatenate(first, second), GO2), resolve(first, GO2), resolve(second, GO2)
    end = spots(first)[-1]
    after.step[:] += before.step[0, -1]
    after = place_goals(after, np.array([[end.x, end.y]]), np.array([end.yaw]))
    count = before.step.shape[1]
    assert_same_goals(Goals(*(value[:, :count] for value in vars(joined).values())), before)
    assert_same_goals(Goals(*(value[:, count:] for value in vars(joined).values())), after)


@given(one=..., two=..., three=...)
@settings(max_examples=10)
def test_joining_is_associative(one: Script, two: Script, three: Script):
    left, right = concatenate(concatenate(one, two), three), concatenate(one, concatenate(two, three))
    assert_same_goals(resolve(left, GO2), resolve(right, GO2))


def test_a_turn_and_a_walk_joined_walk_along_the_new_heading():
    turn = Script(keyframes=(Keyframe(time=1, position=(1, 0), yaw=90),))
    walk = Script(angles="radians", keyframes=(Keyframe(time=2, position=(1, 0, 0.3), yaw=0.5),))
    last = concatenate(turn, walk, gap=0.5).keyframes[-1]
    assert (last.time, last.position) == (3.5, (1.0, 1.0, 0.3))
    assert last.yaw == pytest.approx(90 + np.degrees(0.5))


def test_a_script_that_starts_at_once_needs_a_gap():
    script = Script(keyframes=(Keyframe(time=0, yaw=0),))
    with pytest.raises(ScriptError, match="not later"):
        concatenate(script, script)
    assert len(concatenate(script, script, gap=0.02).keyframes) == 2


@given(script=...)
@settings(max_examples=20)
def test_units_change_the_figures_and_not_the_goals(script: Script):
    other = in_unit(script, "radians" if script.angles == "degrees" else "degrees")
    assert other.angles != script.angles
    assert_same_goals(resolve(other, GO2), resolve(script, GO2))


def test_edits_do_not_depend_on_the_joint_limits_of_the_go2():
    folded = Script(angles="radians", keyframes=(Keyframe(time=1.0, posture={"FL_calf_joint": FOLDED}),))
    first = shift(mirror(folded), 1.0)
    second = in_unit(complete(with_stage(folded, None), FOLDING), "degrees")
    both = concatenate(first, second)
    assert both.keyframes[0].posture == {"FR_calf_joint": FOLDED}
    assert both.keyframes[1].posture == {"FL_calf_joint": pytest.approx(FOLDED)}
    assert resolve(both, FOLDING).posture[0, 0, 5] == FOLDED
    with pytest.raises(
        ScriptError, match=r"keyframe 1, posture.FR_calf_joint: -3 is beyond its limit; allowed: -2\.72"
    ):
        resolve(both, GO2)


def test_completing_fills_what_a_named_posture_leaves_open():
    script = Script(
        keyframes=(Keyframe(time=1, position=(1, 2), roll=3, posture="sit"), Keyframe(time=2, position=(1, 2)))
    )
    sitting, other = complete(script, GO2).keyframes
    assert sitting.position == (1.0, 2.0, posture("sit", GO2).height)
    assert (sitting.roll, sitting.pitch, sitting.yaw) == (3.0, pytest.approx(-36.0), None)
    assert other == script.keyframes[1]
