"""What the animator does to a ghost is what the script then says."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest

from keystride.keyframes.document import ScriptError
from keystride.keyframes.goals import COMPONENTS
from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document import posing
from keystride.studio.document.draft import Draft, from_script
from keystride.studio.document.keyframe_poses import ghosts

POSTURES = named_postures(GO2)

SCRIPT = Script(
    keyframes=(
        Keyframe(time=1.0, position=(1.0, 0.0, 0.32), yaw=90.0),
        Keyframe(time=2.0, position=(0.5, 0.0), relative=True),
        Keyframe(time=3.0, posture="sit"),
    )
)
IN_RADIANS = Script(angles="radians", keyframes=(Keyframe(time=1.0, yaw=0.5),))


@pytest.fixture
def draft() -> Draft:
    return from_script(SCRIPT, GO2)


@pytest.mark.parametrize("key", [1, 2, 3])
def test_a_dragged_ghost_is_where_it_was_dragged(draft: Draft, key: int):
    moved = posing.drag(draft, key, np.array([-0.4, 0.7]), 0.25)
    ghost = ghosts(moved)[key]
    np.testing.assert_allclose(ghost.position[:2], [-0.4, 0.7], atol=1e-3)
    assert ghost.angles[2] == pytest.approx(0.25, abs=1e-3)


def test_a_relative_keyframe_stays_relative_when_it_is_dragged(draft: Draft):
    moved = posing.drag(draft, 2, np.array([1.0, 2.0]), float(ghosts(draft)[2].angles[2]))
    assert moved.keyframe(2).relative
    assert moved.keyframe(2).position == pytest.approx((2.0, 0.0))  # two metres ahead of (1, 0), facing left


def test_dragging_over_the_ground_asks_for_nothing_else(draft: Draft):
    ghost = ghosts(draft)[3]
    moved = posing.drag(draft, 3, ghost.position[:2] + 0.5, float(ghost.angles[2]))
    assert len(moved.keyframe(3).position or ()) == 2
    assert moved.keyframe(3).yaw is None
    assert posing.drag(draft, 3, ghost.position[:2], float(ghost.angles[2])) == draft


def test_a_height_is_asked_for_when_it_is_given(draft: Draft):
    assert posing.set_height(draft, 2, 0.28).keyframe(2).position == pytest.approx((0.5, 0.0, 0.28))


@pytest.mark.parametrize("key", [1, 2, 3])
@pytest.mark.parametrize("component", [*COMPONENTS, "height"])
def test_asking_for_what_is_shown_changes_nothing_that_is_shown(draft: Draft, key: int, component: str):
    before = ghosts(draft)[key]
    after = ghosts(posing.set_component(draft, key, component, True))[key]
    np.testing.assert_allclose(after.position, before.position, atol=2e-3)
    np.testing.assert_allclose(after.angles, before.angles, atol=1e-3)
    np.testing.assert_allclose(after.joints, before.joints, atol=1e-3)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_goes_on_and_off(draft: Draft, component: str):
    on = posing.set_component(draft, 1, component, True)
    assert getattr(on.keyframe(1), component) is not None
    off = posing.set_component(on, 1, component, False)
    assert getattr(off.keyframe(1), component) is None


def test_the_last_component_cannot_go(draft: Draft):
    with pytest.raises(ScriptError, match="asks for nothing"):
        posing.set_component(draft, 3, "posture", False)


def test_a_named_posture_brings_its_height_and_tilt_where_these_are_asked_for(draft: Draft):
    tilted = posing.set_component(draft, 1, "pitch", True)
    sitting = posing.set_posture(tilted, 1, "sit").keyframe(1)
    assert sitting.posture == "sit"
    assert sitting.position is not None
    assert sitting.position[2] == pytest.approx(POSTURES["sit"].height, abs=1e-3)
    assert sitting.pitch == pytest.approx(np.degrees(POSTURES["sit"].pitch), abs=0.1)
    assert sitting.roll is None


def test_a_slider_moves_one_joint(draft: Draft):
    bent = posing.set_joint(draft, 3, 4, 1.0)
    expected = POSTURES["sit"].joints.copy()
    expected[4] = 1.0
    np.testing.assert_allclose(ghosts(bent)[3].joints, expected, atol=1e-3)


def test_own_angles_keep_the_tilt_of_the_posture_they_come_from(draft: Draft):
    bent = ghosts(posing.set_joint(draft, 3, 0, 0.05))[3]
    assert bent.angles[1] == pytest.approx(POSTURES["sit"].pitch, abs=1e-3)


def test_a_joint_stops_at_its_limit(draft: Draft):
    for joint in range(12):
        assert ghosts(posing.set_joint(draft, 3, joint, 10.0))[3].joints[joint] == pytest.approx(
            GO2.upper[joint], abs=1e-3
        )
        assert ghosts(posing.set_joint(draft, 3, joint, -10.0))[3].joints[joint] == pytest.approx(
            GO2.lower[joint], abs=1e-3
        )


def test_legs_are_those_of_the_robot():
    legs = tuple(replace(leg, thigh_length=0.3, upper=(0.2, 1.0, -1.0)) for leg in GO2.legs)
    other = replace(GO2, name="other", legs=legs)
    draft = drafts.add(Draft(other), posing.new_keyframe(Draft(other), 1.0))
    assert ghosts(draft)[1].position[2] > POSTURES["stand"].height + 0.05
    assert ghosts(posing.set_joint(draft, 1, 0, 10.0))[1].joints[0] == pytest.approx(0.2, abs=1e-3)
    crouched = posing.with_planted_feet(draft, 1, lambda whole: posing.set_height(whole, 1, 0.3))
    before, after = (posing.ghost_feet(ghosts(each)[1]) for each in (draft, crouched))
    np.testing.assert_allclose(after, before, atol=4e-3)


def test_mirrored_twice_is_as_before(draft: Draft):
    bent = posing.set_joint(draft, 1, 0, 0.3)
    once = posing.mirror_posture(bent, 1)
    np.testing.assert_allclose(ghosts(once)[1].joints, GO2.mirror_joints(ghosts(bent)[1].joints), atol=1e-3)
    assert posing.mirror_posture(once, 1) == bent


def test_relative_and_back_is_the_same_place(draft: Draft):
    absolute = posing.set_relative(draft, 2, False)
    np.testing.assert_allclose(ghosts(absolute)[2].position, ghosts(draft)[2].position, atol=1e-3)
    assert posing.set_relative(absolute, 2, True) == draft


def test_feet_are_put_on_the_ground(draft: Draft):
    low = posing.set_posture(posing.set_height(draft, 1, 0.1), 1, "tall")
    high = posing.stand_on_ground(posing.set_height(low, 1, 0.1), 1)
    assert ghosts(high)[1].position[2] == pytest.approx(POSTURES["tall"].height, abs=1e-3)


def test_a_new_keyframe_is_on_the_path_or_ahead_of_it(draft: Draft):
    assert posing.new_keyframe(draft, 0.5).position == pytest.approx((0.5, 0.0, POSTURES["stand"].height), abs=1e-3)
    ahead = posing.new_keyframe(draft, 5.0).position
    end = ghosts(draft)[3].position
    assert ahead is not None
    assert np.hypot(ahead[0] - end[0], ahead[1] - end[1]) == pytest.approx(2 * posing.AMBLE, abs=2e-3)
    assert posing.new_keyframe(Draft(GO2), 2.0).position == pytest.approx((2 * posing.AMBLE, 0.0, 0.333), abs=1e-2)


def test_angles_are_written_in_the_unit_of_the_file():
    draft = posing.set_angle(from_script(IN_RADIANS, GO2), 1, "yaw", pi / 4)
    assert draft.keyframe(1).yaw == pytest.approx(pi / 4, abs=1e-3)
    in_degrees = posing.set_angle(from_script(SCRIPT, GO2), 1, "yaw", pi / 4)
    assert in_degrees.keyframe(1).yaw == pytest.approx(45.0)
