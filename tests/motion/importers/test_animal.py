from pathlib import Path

import pytest

from keystride.motion.importers.animal import (
    Correction,
    Cut,
    Selection,
    corrections_in,
    kept_parts,
    load_selection,
    part_names,
)


def test_what_is_between_the_cuts_is_kept():
    cuts = (Cut(clip="a", frames=(100, 149), reason="x"), Cut(clip="b", reason="y"))
    selection = Selection(ends=5, cuts=cuts)
    assert kept_parts(selection, "a", frames=300, rate=1.0) == [(5, 100), (151, 295)]
    assert kept_parts(selection, "b", frames=300, rate=1.0) == []
    assert kept_parts(selection, "c", frames=300, rate=1.0) == [(5, 295)]


def test_frames_of_the_source_are_converted_to_frames_of_the_clip():
    selection = Selection(cuts=(Cut(clip="a", frames=(120, 179), reason="x"),))
    assert kept_parts(selection, "a", frames=200, rate=0.5) == [(0, 60), (91, 200)]


def test_parts_of_less_than_a_second_are_dropped():
    selection = Selection(cuts=(Cut(clip="a", frames=(30, 99), reason="x"),))
    assert kept_parts(selection, "a", frames=200, rate=1.0) == [(101, 200)]


def test_tags_by_hand_move_with_the_part():
    selection = Selection(tags=(Correction(clip="a", frames=(100, 119), tag="paw_up"),))
    assert corrections_in(selection, "a", first=40, rate=0.5) == [(10, 20, "paw_up")]
    assert corrections_in(selection, "b", first=40, rate=0.5) == []


def test_names_of_parts():
    assert part_names("a", 1) == ["a"]
    assert part_names("a", 2) == ["a-1", "a-2"]


def test_the_built_in_list_gives_a_reason_for_every_cut():
    selection = load_selection()
    assert len(selection.cuts) > 20
    assert all(cut.reason.strip() for cut in selection.cuts)
    assert all(cut.frames is None or cut.frames[0] < cut.frames[1] for cut in selection.cuts)


def test_a_list_with_a_mistake_is_refused(tmp_path: Path):
    path = tmp_path / "list.yaml"
    path.write_text("cuts: [{clip: a}]")
    with pytest.raises(ValueError, match="reason"):
        load_selection(path)
