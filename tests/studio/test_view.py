"""What stands on the timeline."""

import numpy as np

from keystride import colours
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document.draft import from_script
from keystride.studio.view import captions, marks

DRAFT = from_script(
    Script(keyframes=(Keyframe(time=1.0, yaw=0.0, label="turn"), Keyframe(time=2.0, posture="sit"))), GO2
)
STATES = {1: "met", 2: "active"}


def test_a_mark_tells_time_state_and_odds():
    first, second = marks(DRAFT, STATES, {2: 0.876}, {1: ["too fast"]})
    assert (first["number"], first["time"], first["label"], first["state"]) == (1, 1.0, "turn", "met")
    assert (first["odds"], second["odds"]) == (None, 88)
    assert (first["warnings"], second["warnings"]) == (["too fast"], [])
    assert first["parts"] == [False, False, False, True, False]
    assert first["colour"] == colours.as_hex(colours.MET)


def test_a_caption_tells_the_number_the_odds_and_doubts():
    told = captions(DRAFT, STATES, {1: 0.5}, {2: ["too low"]})
    assert [caption.text for caption in told.values()] == ["1  50%", "2  !"]
    told = captions(DRAFT, STATES, {1: 0.5}, {}, stale=True)
    assert [caption.text for caption in told.values()] == ["1  (50%)", "2"]


def test_a_keyframe_that_most_rollouts_miss_shows_what_is_closest_to_its_limit():
    errors = np.array([0.14, np.nan, np.nan, 3.0, np.nan, 0.01])  # position, roll, pitch, yaw, posture, height
    for odds, over in ((0.45, True), (0.55, False)):
        first, _ = marks(DRAFT, STATES, {1: odds}, {}, {1: errors})
        assert first["over"] == [over, False, False, False, False]
