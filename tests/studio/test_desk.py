"""Editing and playing at one desk, told by a clock of the test's own."""

from collections.abc import Callable

import numpy as np
import pytest

from keystride.keyframes.problems import ScriptError
from keystride.keyframes.script import Keyframe, Script
from keystride.studio import posing
from keystride.studio.desk import SETTLE, SPEEDS, Desk
from keystride.studio.draft import Draft, from_script
from keystride.studio.forecast import Chances

SCRIPT = Script(
    keyframes=(
        Keyframe(time=0.3, position=(0.0, 0.0)),
        Keyframe(time=0.6, position=(1.0, 0.0)),
        Keyframe(time=0.9, posture="stand"),
    )
)


@pytest.fixture
def desk() -> Desk:
    desk = Desk(from_script(SCRIPT), "three.yaml")
    settle(desk)
    return desk


def settle(desk: Desk, now: float = 100.0) -> None:
    """Long after any edit, with all the time it needs."""
    desk.tick(now)
    assert desk.player.catch_up(60.0)


def play(desk: Desk, now: float = 200.0, until: Callable[[], bool] = lambda: False) -> bool:
    """From here to the end, in frames of a fiftieth of a second."""
    desk.toggle(now)
    for _ in range(20 * 50):
        now += 0.02
        if desk.tick(now) or until():
            return True
    return False


def test_a_pass_ends_and_leaves_a_recording(desk: Desk):
    assert play(desk)
    assert not desk.playing
    assert desk.recording is not None
    assert desk.recording.title == "three"
    assert desk.recording.met.tolist() == [True, False, True]
    assert list(desk.states().values()) == ["met", "missed", "met"]


def test_states_follow_the_head(desk: Desk):
    assert list(desk.states().values()) == ["active", "coming", "coming"]
    desk.seek(0.5)
    settle(desk)
    assert list(desk.states().values()) == ["met", "active", "coming"]


def test_playing_again_starts_anew(desk: Desk):
    play(desk)
    desk.toggle(300.0)
    assert desk.playing
    assert desk.head == 0.0


def test_a_loop_goes_on(desk: Desk):
    desk.loop = True
    assert play(desk)
    assert desk.playing
    assert desk.head == 0.0


def test_what_is_at_the_head_is_what_the_script_leads_to(desk: Desk):
    desk.seek(1.0)
    settle(desk)
    before = desk.player.tape
    desk.edit(lambda draft: posing.set_height(draft, 2, 0.3), now=150.0)
    desk.tick(150.0 + SETTLE / 2)
    assert desk.player.tape is before  # while the animator is still at it
    settle(desk, 150.0 + 2 * SETTLE)
    assert desk.player.tape is not before
    assert desk.player.goals.position[0, 1, 2] == 0.3


def test_an_edit_while_playing_changes_only_what_lies_ahead(desk: Desk):
    assert play(desk, until=lambda: desk.player.head >= 20)
    desk.add(0.8, now=220.0)
    assert desk.playing
    assert desk.player.recorded >= 20
    assert desk.player.goals.step.shape[1] == 4


def test_a_new_keyframe_is_selected_and_can_be_taken_back(desk: Desk):
    desk.add(0.5, now=1.0)
    assert desk.draft.keyframe(desk.selected or 0).time == 0.5
    desk.undo(2.0)
    assert desk.draft.script() == SCRIPT
    desk.redo(3.0)
    assert len(desk.draft.keys) == 4


def test_after_deleting_the_next_one_is_selected(desk: Desk):
    desk.document.select(2)
    desk.delete(1.0)
    assert desk.selected == 3
    desk.delete(2.0)
    assert desk.selected == 1
    desk.delete(3.0)
    assert desk.selected is None
    desk.delete(4.0)
    desk.duplicate(5.0)
    assert desk.draft.marks == ()


def test_a_desk_without_keyframes_plays_too():
    desk = Desk()
    settle(desk)
    assert play(desk)
    assert desk.recording is None
    assert desk.states() == {}


def test_a_mark_that_is_dragged_is_one_step_to_undo(desk: Desk):
    for i, time in enumerate((0.7, 1.5, 2.5)):
        desk.retime(1, time, now=10.0 * i, held=True)
    desk.document.end_gesture()
    assert desk.draft.keys == (2, 3, 1)
    desk.undo(50.0)
    assert desk.draft.script() == SCRIPT


def test_nudging_moves_by_control_steps(desk: Desk):
    desk.document.select(1)
    desk.nudge(3, now=1.0)
    assert desk.draft.keyframe(1).time == pytest.approx(0.36)


def test_keyframes_are_selected_one_after_the_other(desk: Desk):
    desk.document.select(None)
    for expected in (1, 2, 3, 3):
        desk.select_next(1)
        assert desk.selected == expected
    desk.select_next(-1)
    assert desk.selected == 2


def test_speed_stays_between_its_ends(desk: Desk):
    for _ in range(10):
        desk.faster(1)
    assert desk.pace.speed == SPEEDS[-1]
    for _ in range(10):
        desk.faster(-1)
    assert desk.pace.speed == SPEEDS[0]


def test_a_forecast_is_asked_for_once_and_answers_the_draft_it_was_asked_of(desk: Desk):
    question = desk.question(100.0)
    assert question is not None
    assert desk.question(100.0) is None
    desk.answer(question, Chances(np.array([4, 0, 2]), 1, 4, np.ones((3, 2))))
    assert desk.odds == {1: 1.0, 2: 0.0, 3: 0.5}
    assert len(desk.expected) == 3
    desk.add(0.5, now=101.0)
    assert desk.odds == {}
    assert len(desk.expected) == 0
    desk.answer(question, Chances(np.array([4, 0, 2]), 1, 4, np.ones((3, 2))))
    assert desk.odds == {}
    assert desk.question(101.0) is None  # not settled yet
    assert desk.question(102.0) is not None


def test_a_shove_moves_the_robot(desk: Desk):
    desk.seek(0.4)
    settle(desk)
    desk.shove(np.array([0.0, 1.0, 0.0]))
    desk.seek(0.6)
    settle(desk)
    assert desk.player.pose().position[1] > 0.02


def test_another_script_starts_from_its_start(desk: Desk):
    desk.seek(0.5)
    desk.open(Draft(), "new.yaml", now=10.0)
    settle(desk)
    assert (desk.head, desk.name, desk.draft.keys) == (0.0, "new.yaml", ())
    desk.undo(20.0)
    assert desk.draft.script() == SCRIPT


def test_what_is_refused_changes_nothing(desk: Desk):
    before = desk.document.now
    with pytest.raises(ScriptError):
        desk.edit(lambda draft: posing.set_angle(draft, 1, "yaw", 100.0), now=1.0)
    assert desk.document.now is before
