"""What stands on the timeline."""

from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document.draft import from_script
from keystride.studio.page import palette
from keystride.studio.page.timeline_data import captions, keyframe_states, marks

DRAFT = from_script(
    Script(keyframes=(Keyframe(time=1.0, yaw=0.0, label="turn"), Keyframe(time=2.0, posture="sit"))), GO2
)
STATES = {1: "met", 2: "active"}


def test_the_first_that_is_not_yet_due_is_active():
    assert keyframe_states([10, 20, 30], [True, None, None]) == ["met", "active", "coming"]
    assert keyframe_states([10, 20], [False, True]) == ["missed", "met"]
    assert keyframe_states([], []) == []


def test_a_mark_tells_time_state_and_odds():
    first, second = marks(DRAFT, STATES, {2: 0.876}, {1: ["too fast"]})
    assert (first["number"], first["time"], first["label"], first["state"]) == (1, 1.0, "turn", "met")
    assert (first["odds"], second["odds"]) == (None, 88)
    assert (first["warnings"], second["warnings"]) == (["too fast"], [])
    assert first["parts"] == [False, False, False, True, False]
    assert first["colour"] == palette.css(palette.MET)


def test_a_caption_tells_the_number_the_odds_and_doubts():
    told = captions(DRAFT, STATES, {1: 0.5}, {2: ["too low"]})
    assert [caption.text for caption in told.values()] == ["1  50%", "2  !"]


def test_likelihood_goes_from_red_to_green():
    assert palette.likelihood(0.0) == palette.MISSED
    assert palette.likelihood(0.5) == palette.ACTIVE
    assert palette.likelihood(1.0) == palette.MET
