"""Undo takes back exactly what was done, gesture by gesture."""

from keystride.keyframes.script import Keyframe
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import PAUSE, Document


def yawed(angle: float, draft: Draft | None = None) -> Draft:
    """One keyframe that asks for a yaw."""
    if draft is None or not draft.marks:
        return drafts.add(draft or Draft(GO2), Keyframe(time=1.0, yaw=angle))
    return drafts.change(draft, draft.keys[0], yaw=angle)


def test_two_hundred_steps_go_back_and_forth():
    document = Document(yawed(0.0))
    seen = [document.draft]
    for angle in range(1, 201):
        document.edit(yawed(angle / 2, document.draft))
        seen.append(document.draft)
    for expected in reversed(seen[:-1]):
        assert document.undo()
        assert document.draft == expected
    assert not document.undo()
    for expected in seen[1:]:
        assert document.redo()
        assert document.draft == expected
    assert not document.redo()


def test_an_edit_ends_the_future():
    document = Document(yawed(0.0))
    document.edit(yawed(1.0, document.draft))
    document.undo()
    document.edit(yawed(2.0, document.draft))
    assert not document.can_redo
    document.undo()
    assert document.draft == yawed(0.0)


def test_a_held_gesture_is_one_step_however_long_it_takes():
    document = Document(yawed(0.0))
    for angle in (1.0, 2.0, 3.0):
        document.edit(yawed(angle, document.draft), gesture="drag")
    document.undo()
    assert document.draft == yawed(0.0)


def test_letting_go_ends_a_gesture():
    document = Document(yawed(0.0))
    document.edit(yawed(1.0, document.draft), gesture="drag")
    document.end_gesture()
    document.edit(yawed(2.0, document.draft), gesture="drag")
    document.undo()
    assert document.draft == yawed(1.0)


def test_a_pause_ends_a_gesture_that_nobody_holds():
    document = Document(yawed(0.0))
    document.edit(yawed(1.0, document.draft), gesture="slider", time=10.0)
    document.edit(yawed(2.0, document.draft), gesture="slider", time=10.0 + PAUSE / 2)
    document.edit(yawed(3.0, document.draft), gesture="slider", time=10.0 + 2 * PAUSE)
    document.undo()
    assert document.draft == yawed(2.0)
    document.undo()
    assert document.draft == yawed(0.0)


def test_what_changes_nothing_is_no_step():
    document = Document(yawed(0.0))
    document.edit(yawed(0.0))
    assert not document.can_undo


def test_undo_brings_back_the_selection():
    document = Document(yawed(0.0))
    key = document.draft.keys[0]
    document.select([key])
    document.edit(drafts.remove(document.draft, [key]))
    assert document.selected is None
    document.undo()
    assert document.selected == key


def test_nobody_selects_a_keyframe_that_is_not_there():
    document = Document(yawed(0.0))
    document.select([99])
    assert document.selected is None


def test_saved_means_as_it_was_when_it_was_saved():
    document = Document(yawed(0.0))
    assert not document.unsaved
    document.edit(yawed(1.0, document.draft))
    assert document.unsaved
    document.mark_saved("a.yaml", "digest")
    assert not document.unsaved
    document.undo()
    assert document.unsaved


def test_the_name_is_part_of_the_history():
    document = Document(yawed(0.0), "course.yaml", "c")
    document.open(yawed(5.0), "walk.yaml", "w")
    assert (document.name, document.unsaved) == ("walk.yaml", False)
    document.edit(yawed(6.0, document.draft))
    assert document.unsaved
    for name in ("walk.yaml", "course.yaml"):
        document.undo()
        assert (document.name, document.unsaved) == (name, False)
    assert document.draft == yawed(0.0)
    document.redo()
    assert document.name == "walk.yaml"


def test_a_script_that_is_the_same_under_another_name_is_another_file():
    document = Document(yawed(0.0), "a.yaml")
    document.open(yawed(0.0), "b.yaml")
    document.undo()
    assert document.name == "a.yaml"


def test_several_keyframes_are_selected_and_the_last_is_active():
    document = Document(drafts.add(yawed(0.0), Keyframe(time=2.0, yaw=1.0)))
    document.select([2, 1, 2, 7])
    assert (document.selection, document.selected) == ((2, 1), 1)


def test_an_upload_is_unsaved_until_it_is_in_the_folder():
    document = Document(Draft(GO2))
    document.open(drafts.add(Draft(GO2), Keyframe(time=1.0, yaw=0.0)), "up.yaml", uploaded=True)
    assert document.unsaved
    document.mark_saved("up.yaml", "digest")
    assert not document.unsaved
