import pytest

from keystride.keyframes.script import Keyframe, Script
from keystride.policy.outside import outside_training, planned, waypoint_lines
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


def messages(policy: str, *keyframes: Keyframe, inbetween: bool = True) -> list[str]:
    metadata = Policy.load(policy, robot=GO2).metadata
    return [
        f"{one.row}: {one.message}"
        for one in outside_training(Script(keyframes=keyframes), metadata, inbetween=inbetween, robot=GO2)
    ]


def test_a_long_gap_is_outside_training_only_without_in_betweens() -> None:
    far = Keyframe(time=10.0, position=(5.0, 0.0))
    assert messages("go2-pose", far) == []
    alone = messages("go2-pose", far, inbetween=False)
    assert any("10.00 s after the one before" in message for message in alone)
    assert any("5.00 m from the one before" in message for message in alone)


def test_walking_backwards_is_outside_training() -> None:
    found = messages(
        "go2-pose", Keyframe(time=1.0, position=(0.5, 0.0)), Keyframe(time=4.0, position=(-0.4, 0.0), yaw=0.0)
    )
    assert found
    assert all(message.startswith("1: the waypoint at") and "180 degrees off" in message for message in found)


def test_components_that_a_policy_does_not_know_are_named() -> None:
    (found,) = messages("go2-position", Keyframe(time=0.8, position=(0.5, 0.0), yaw=10.0, posture="sit"))
    assert found == "0: asks for yaw, posture; the policy knows position"


@pytest.mark.parametrize(("seconds", "count"), [(0.9, 0), (1.5, 1), (3.0, 3)])
def test_waypoints_can_be_listed(seconds: float, count: int) -> None:
    script = Script(keyframes=(Keyframe(time=seconds, position=(0.5, 0.0)),))
    lines = waypoint_lines(planned(script, Policy.load("go2-pose", robot=GO2).metadata, GO2))
    assert len(lines) == count
