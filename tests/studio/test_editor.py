"""Editing and playing at one editor, told by a clock of the test's own."""

from collections.abc import Callable

import numpy as np
import pytest

from keystride.keyframes.document import ScriptError
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document import posing
from keystride.studio.document.draft import Draft, from_script
from keystride.studio.document.history import Document
from keystride.studio.editor import RESIMULATE_DELAY, SPEEDS, Editor
from keystride.studio.playback.forecast import Chances

SCRIPT = Script(
    keyframes=(
        Keyframe(time=0.3, position=(0.0, 0.0)),
        Keyframe(time=0.6, position=(1.0, 0.0)),
        Keyframe(time=0.9, posture="stand"),
    )
)


@pytest.fixture
def editor() -> Editor:
    editor = Editor(Document(from_script(SCRIPT, GO2), "three.yaml"))
    settle(editor)
    return editor


def settle(editor: Editor, now: float = 100.0) -> None:
    """Long after any edit, with all the time it needs."""
    editor.tick(now)
    assert editor.player.catch_up(60.0)


def play(editor: Editor, now: float = 200.0, until: Callable[[], bool] = lambda: False) -> bool:
    """From here to the end, in frames of a fiftieth of a second."""
    editor.toggle(now)
    for _ in range(20 * 50):
        now += 0.02
        if editor.tick(now) or until():
            return True
    return False


def test_a_pass_ends_and_leaves_a_recording(editor: Editor):
    assert play(editor)
    assert not editor.playing
    assert editor.recording is not None
    assert editor.recording.title == "three"
    assert editor.recording.met.tolist() == [True, False, True]
    assert list(editor.states().values()) == ["met", "missed", "met"]


def test_states_follow_the_head(editor: Editor):
    assert list(editor.states().values()) == ["active", "coming", "coming"]
    editor.seek(0.5)
    settle(editor)
    assert list(editor.states().values()) == ["met", "active", "coming"]


def test_playing_again_starts_over(editor: Editor):
    play(editor)
    editor.toggle(300.0)
    assert editor.playing
    assert editor.head == 0.0


def test_a_loop_goes_on(editor: Editor):
    editor.loop = True
    assert play(editor)
    assert editor.playing
    assert editor.head == 0.0


def test_what_is_at_the_head_is_what_the_script_leads_to(editor: Editor):
    editor.seek(1.0)
    settle(editor)
    before = editor.player.goals
    editor.edit(lambda draft: posing.set_height(draft, 2, 0.3), now=150.0)
    editor.tick(150.0 + RESIMULATE_DELAY / 2)
    assert editor.player.goals is before  # while the user is still at it
    assert editor.simulating
    settle(editor, 150.0 + 2 * RESIMULATE_DELAY)
    assert not editor.simulating
    assert editor.player.goals.position[0, 1, 2] == 0.3


def test_an_edit_while_playing_changes_only_what_lies_ahead(editor: Editor):
    assert play(editor, until=lambda: editor.player.head >= 20)
    editor.add(0.8, now=220.0)
    assert editor.playing
    assert editor.player.recorded >= 20
    assert editor.player.goals.step.shape[1] == 4


def test_a_new_keyframe_is_selected_and_can_be_taken_back(editor: Editor):
    editor.add(0.5, now=1.0)
    assert editor.draft.keyframe(editor.selected or 0).time == 0.5
    editor.undo(2.0)
    assert editor.draft.script() == SCRIPT
    editor.redo(3.0)
    assert len(editor.draft.keys) == 4


def test_after_deleting_the_next_one_is_selected(editor: Editor):
    editor.select([2])
    editor.delete(1.0)
    assert editor.selected == 3
    editor.delete(2.0)
    assert editor.selected == 1
    editor.delete(3.0)
    assert editor.selected is None
    editor.delete(4.0)
    editor.duplicate(5.0)
    assert editor.draft.marks == ()


def test_a_script_without_keyframes_plays_too():
    editor = Editor(Document(Draft(GO2)))
    settle(editor)
    assert play(editor)
    assert editor.recording is None
    assert editor.states() == {}


def test_a_mark_that_is_dragged_is_one_step_to_undo(editor: Editor):
    for i, time in enumerate((0.7, 1.5, 2.5)):
        editor.retime(1, time, now=10.0 * i, held=True)
    editor.document.end_gesture()
    assert editor.draft.keys == (2, 3, 1)
    editor.undo(50.0)
    assert editor.draft.script() == SCRIPT


def test_nudging_moves_by_control_steps(editor: Editor):
    editor.select([1])
    editor.nudge(3, now=1.0)
    assert editor.draft.keyframe(1).time == pytest.approx(0.36)


def test_keyframes_are_selected_one_after_the_other(editor: Editor):
    editor.select([])
    for expected in (1, 2, 3, 3):
        editor.select_next(1)
        assert editor.selected == expected
    editor.select_next(-1)
    assert editor.selected == 2


def test_speed_stays_between_its_ends(editor: Editor):
    for _ in range(10):
        editor.faster(1)
    assert editor.clock.speed == SPEEDS[-1]
    for _ in range(10):
        editor.faster(-1)
    assert editor.clock.speed == SPEEDS[0]


@pytest.mark.parametrize(
    ("asked", "set_to"), [(0.3, 0.3), (1e308, 2.0), (-1.0, 0.05), (float("inf"), 0.8), (float("nan"), 0.8)]
)
def test_friction_stays_within_its_limits(editor: Editor, asked: float, set_to: float):
    editor.set_friction(asked)
    assert editor.player.friction == set_to
    assert play(editor)


def test_a_forecast_is_asked_for_once_and_answers_the_draft_it_was_asked_of(editor: Editor):
    question = editor.question(100.0)
    assert question is not None
    assert editor.question(100.0) is None
    editor.answer(question, Chances(np.array([4, 0, 2]), 1, 4, np.ones((3, 2))))
    assert editor.forecast.odds == {1: 1.0, 2: 0.0, 3: 0.5}
    assert len(editor.forecast.path) == 3
    editor.add(0.5, now=101.0)
    assert editor.forecast.stale
    assert editor.forecast.odds == {1: 1.0, 2: 0.0, 3: 0.5}  # the old figures, greyed
    editor.answer(question, Chances(np.array([1, 1, 1]), 1, 4, np.ones((3, 2))))
    assert editor.forecast.odds == {1: 1.0, 2: 0.0, 3: 0.5}
    assert editor.question(101.0) is None  # not settled yet
    assert editor.question(102.0) is not None


def test_a_shove_moves_the_robot(editor: Editor):
    editor.seek(0.4)
    settle(editor)
    editor.shove(np.array([0.0, 1.0, 0.0]))
    editor.seek(0.6)
    settle(editor)
    assert editor.player.pose().position[1] > 0.02


def test_another_script_starts_from_its_start(editor: Editor):
    editor.seek(0.5)
    editor.open(Draft(GO2), "new.yaml", now=10.0)
    settle(editor)
    assert (editor.head, editor.name, editor.draft.keys) == (0.0, "new.yaml", ())
    editor.undo(20.0)
    assert editor.draft.script() == SCRIPT


def test_what_is_refused_changes_nothing(editor: Editor):
    before = editor.document.now
    with pytest.raises(ScriptError):
        editor.edit(lambda draft: posing.set_angle(draft, 1, "yaw", 100.0), now=1.0)
    assert editor.document.now is before


def test_several_keyframes_are_copied_pasted_and_moved(editor: Editor):
    editor.select([1, 2])
    editor.copy()
    editor.seek(2.0)
    editor.paste(now=1.0)
    assert [mark.keyframe.time for mark in editor.draft.marks] == pytest.approx([0.3, 0.6, 0.9, 2.0, 2.3])
    assert editor.document.selection == (4, 5)
    editor.retime(4, 3.0, now=2.0)
    assert [mark.keyframe.time for mark in editor.draft.marks][3:] == pytest.approx([3.0, 3.3])
    editor.undo(3.0)
    editor.undo(4.0)
    assert editor.draft.script() == SCRIPT


def test_a_group_stops_at_the_start(editor: Editor):
    editor.select([1, 2])
    editor.retime(2, 0.0, now=1.0)
    assert [mark.keyframe.time for mark in editor.draft.marks] == pytest.approx([0.02, 0.32, 0.9])


def test_stretching_is_measured_from_where_it_began(editor: Editor):
    editor.select([1, 2, 3])
    start = {1: 0.3, 2: 0.6, 3: 0.9}
    for factor in (1.5, 2.0):
        editor.scale_times(0.3, factor, now=1.0, start=start)
    assert [mark.keyframe.time for mark in editor.draft.marks] == pytest.approx([0.3, 0.9, 1.5])
    editor.undo(2.0)
    assert editor.draft.script() == SCRIPT


def test_a_ripple_closes_the_gap(editor: Editor):
    editor.select([2])
    editor.delete(1.0, ripple=True)
    assert [mark.keyframe.time for mark in editor.draft.marks] == pytest.approx([0.3, 0.6])


def test_the_head_jumps_from_keyframe_to_keyframe(editor: Editor):
    heads = []
    for jump in (1, 1, 1, 1, -1, -1, -1, -1):
        editor.jump(jump)
        heads.append(editor.head)
    assert heads == pytest.approx([0.3, 0.6, 0.9, 0.9, 0.6, 0.3, 0.0, 0.0])


def test_a_loop_stays_in_its_range(editor: Editor):
    editor.loop, editor.range = True, (0.2, 0.5)
    heads: list[float] = []
    play(editor, until=lambda: bool(heads.append(editor.head)) or len(heads) > 60)
    assert max(heads) <= 0.52
    assert heads.count(0.2) >= 2
