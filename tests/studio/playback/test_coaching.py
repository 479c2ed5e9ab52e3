"""What is suggested for a missed keyframe works when it is done."""

from keystride.evaluation.episodes import World
from keystride.keyframes.script import Keyframe, Script
from keystride.policy.guide import guided
from keystride.robot.go2 import GO2
from keystride.studio.playback.coaching import coach, missed_rows
from keystride.studio.playback.controllers import STAND_STILL, StandStill, load_controller
from keystride.studio.playback.forecast import Question, roll_out, slight_differences


def test_what_fewer_than_half_of_the_rollouts_meet_is_missed():
    assert missed_rows([1.0, 0.5]) == []
    assert missed_rows([0.45, 1.0, 0.0]) == [0, 2]


def test_who_cannot_walk_is_told_to_stay_or_to_ask_for_less():
    script = Script(keyframes=(Keyframe(time=0.3, position=(0.5, 0.0), yaw=0.0),))
    tips = {tip.kind: tip for tip in coach(script, GO2, StandStill(GO2), World(), 0)}
    assert set(tips) == {"shorten", "loosen"}
    assert tips["shorten"].text == "furthest 0.1 m"
    assert tips["loosen"].component == "position"


def test_a_walk_that_is_too_fast_is_reachable_later_or_nearer():
    policy, world = load_controller("go2-position", GO2), World(slight_differences(0.8))

    def shares(time: float, x: float) -> list[float]:
        script = Script(keyframes=(Keyframe(time=time, position=(x, 0.0)), Keyframe(time=4.0, position=(x, 0.0))))
        return roll_out(Question(GO2, script, "go2-position", 0.8), policy, 16, seed=1).shares

    script = Script(keyframes=(Keyframe(time=0.8, position=(1.6, 0.0)), Keyframe(time=4.0, position=(1.6, 0.0))))
    assert shares(0.8, 1.6)[0] == 0.0
    guide = guided(policy, GO2, inbetween=True)
    tips = {tip.kind: tip for tip in coach(script, GO2, guide, world, 0)}
    later, nearer = tips["retime"], tips["shorten"]
    assert later.time is not None
    assert nearer.position is not None
    assert shares(later.time, 1.6)[0] >= 0.5
    assert shares(0.8, nearer.position[0])[0] >= 0.5


def test_a_question_that_is_withdrawn_has_no_answer():
    script = Script(keyframes=(Keyframe(time=0.3, position=(0.5, 0.0)),))
    assert coach(script, GO2, load_controller(STAND_STILL, GO2), World(), 0, asked=lambda: False) == ()
