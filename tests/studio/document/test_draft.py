"""Every edit gives a script that is valid, and keys stay with their keyframes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystride.keyframes.document import ScriptError
from keystride.keyframes.files import validate_script
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import spots
from keystride.keyframes.script import Keyframe, Script
from keystride.keyframes.stage import Stage
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import Draft, from_script

SCRIPT = Script(
    keyframes=(
        Keyframe(time=1.0, position=(1.0, 0.0), yaw=90.0),
        Keyframe(time=2.0, position=(1.0, 0.0), relative=True),
        Keyframe(time=3.0, posture="sit"),
    )
)


def test_a_script_comes_back_as_it_was():
    assert from_script(SCRIPT, GO2).script() == SCRIPT


def test_a_draft_without_keyframes_is_no_script():
    draft = from_script(SCRIPT, GO2)
    for key in draft.keys:
        draft = drafts.remove(draft, [key])
    assert draft.script() is None
    assert draft.end == 0.0


def test_a_new_keyframe_takes_its_place_in_time_and_a_key_of_its_own():
    draft = from_script(SCRIPT, GO2)
    longer = drafts.add(draft, Keyframe(time=1.5, yaw=10.0))
    assert [mark.keyframe.time for mark in longer.marks] == [1.0, 1.5, 2.0, 3.0]
    assert longer.keys == (1, draft.next_key, 2, 3)
    assert drafts.remove(longer, [draft.next_key]).marks == draft.marks


def test_edits_keep_to_the_limits_of_the_robot():
    folding = replace(GO2, name="folding", legs=tuple(replace(leg, lower=(*leg.lower[:2], -3.0)) for leg in GO2.legs))
    tight = {"FL_calf_joint": -170.0}  # degrees; the Go2's calf ends at -156
    draft = drafts.change(from_script(SCRIPT, folding), 3, posture=tight)
    script = drafts.retime(draft, 3, 4.0).script()
    assert script is not None
    assert script.keyframes[-1].posture == tight
    with pytest.raises(ScriptError, match="-170 is beyond its limit; allowed: -156"):
        drafts.change(from_script(SCRIPT, GO2), 3, posture=tight)


def test_a_step_that_is_taken_is_passed_over():
    draft = drafts.add(from_script(SCRIPT, GO2), Keyframe(time=2.0, yaw=10.0))
    assert draft.marks[2].keyframe.time == 2.02


def test_deleting_leaves_relative_keyframes_where_they_are():
    draft = from_script(SCRIPT, GO2)
    shorter = drafts.remove(draft, [1])
    before, after = (dict(zip(each.keys, spots(each.script() or SCRIPT), strict=True)) for each in (draft, shorter))
    for key in shorter.keys:
        assert (after[key].x, after[key].y) == pytest.approx((before[key].x, before[key].y), abs=1e-3)
    assert shorter.keyframe(2).relative


def test_a_ripple_moves_what_follows_up_to_the_gap():
    draft = drafts.insert(from_script(SCRIPT, GO2), [Keyframe(time=5.0, yaw=1.0), Keyframe(time=6.5, yaw=2.0)])
    rippled = drafts.ripple_remove(draft, [2, 4])
    assert [mark.keyframe.time for mark in rippled.marks] == pytest.approx([1.0, 2.0, 4.0])
    assert rippled.keys == (1, 3, 5)


def test_times_are_scaled_about_a_pivot():
    draft = drafts.scale_times(from_script(SCRIPT, GO2), [1, 3], pivot=1.0, factor=2.0)
    assert [mark.keyframe.time for mark in draft.marks] == pytest.approx([1.0, 2.0, 5.0])


def test_unchanged_keyframes_are_shared_between_drafts():
    draft = from_script(SCRIPT, GO2)
    changed = drafts.change(draft, 2, label="new")
    assert changed.marks[0] is draft.marks[0]
    assert changed.marks[1] is not draft.marks[1]


@given(time=st.floats(-5.0, 5000.0), key=st.sampled_from([1, 2, 3]))
def test_wherever_a_mark_is_dragged_the_script_stays_valid(time: float, key: int):
    draft = drafts.retime(from_script(SCRIPT, GO2), key, time)
    script = draft.script()
    assert script is not None
    assert validate_script(script.model_dump()) == script
    assert sorted(draft.keys) == [1, 2, 3]
    if CONTROL_DT <= time <= 3600:
        assert draft.keyframe(key).time == pytest.approx(time, abs=2 * CONTROL_DT)


def test_marks_may_pass_each_other():
    draft = drafts.retime(from_script(SCRIPT, GO2), 1, 2.5)
    assert draft.keys == (2, 1, 3)


def test_what_is_not_allowed_is_said_and_changes_nothing():
    with pytest.raises(ScriptError, match="beyond its limit"):
        drafts.change(from_script(SCRIPT, GO2), 1, yaw=1000.0)
    with pytest.raises(ScriptError, match="asks for nothing"):
        drafts.change(from_script(SCRIPT, GO2), 3, posture=None)


def test_relative_positions_are_seen_from_the_keyframe_before():
    before = drafts.previous_spot(from_script(SCRIPT, GO2), 2)
    assert before.ahead(1.0, 0.0) == pytest.approx((1.0, 1.0))  # ahead of (1, 0) when facing left
    assert drafts.previous_spot(from_script(SCRIPT, GO2), 1).x == 0.0


def test_the_unit_of_the_file_is_kept():
    script = Script(angles="radians", keyframes=(Keyframe(time=1.0, yaw=0.5),))
    draft = drafts.add(from_script(script, GO2), Keyframe(time=2.0, yaw=1.0))
    assert draft.angles == "radians"
    assert Draft(GO2).angles == "degrees"


def test_every_edit_leaves_the_stage_and_the_version_as_they_were():
    stage = Stage(audience=((2.0, -1.0), (2.0, 1.0)))
    script = Script(stage=stage, keyframes=(Keyframe(time=1.0, yaw=0.0), Keyframe(time=2.0, position=(1.0, 0.0))))
    draft = from_script(script, GO2)
    edited = [
        drafts.add(draft, Keyframe(time=3.0, yaw=5.0)),
        drafts.remove(draft, [1]),
        drafts.remove(draft, [1, 2]),
        drafts.change(draft, 1, yaw=9.0),
        drafts.retime(draft, 2, 0.5),
    ]
    assert [(each.version, each.stage) for each in edited] == [(2, stage)] * 5
    assert draft.script() == script
