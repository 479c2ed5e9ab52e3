import os
import pty
import threading

import numpy as np
import pytest

from keystride.deploy.fault_checks import Limits
from keystride.deploy.players import TrotStub
from keystride.deploy.preflight import (
    CHECKLIST,
    FENCE_MARGIN,
    Refused,
    check_pose,
    confirm,
    fence_around,
    open_player,
    try_player,
)
from keystride.deploy.sim.rehearsal import rehearse
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

WALK = Script(keyframes=(Keyframe(time=1.2, position=(0.36, 0.0)), Keyframe(time=2.0, position=(0.6, 0.0))))


def test_simulated_poses_are_for_the_simulated_robot():
    check_pose("sim", "lo")
    check_pose("odometry", "eth0")
    for pose in ("sim", "mock://localhost/go2"):
        with pytest.raises(Refused, match=f"--pose {pose}"):
            check_pose(pose, "eth0")


def test_a_policy_with_the_wrong_shape_is_refused():
    with pytest.raises(Refused, match=r"STUB-SHAPE cannot be run: it returned shape \(11,\)"):
        try_player("STUB-SHAPE", open_player("STUB-SHAPE", GO2, "lo"), WALK, GO2)


def asked(answer: bytes) -> list[str]:
    outside, inside = pty.openpty()
    lines: list[str] = []
    threading.Timer(0.05, os.write, [outside, answer]).start()
    try:
        confirm(inside, lines.append)
    finally:
        os.close(inside)
        os.close(outside)
    return lines


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_the_checklist_is_shown_and_confirmed(answer):
    lines = asked(answer)
    assert len(lines) == len(CHECKLIST) + 1


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"yep\n"])
def test_anything_but_yes_is_no(answer):
    with pytest.raises(Refused, match="not confirmed"):
        asked(answer)


def test_without_a_terminal_nobody_can_confirm():
    with pytest.raises(Refused, match="no terminal"):
        confirm(None, print)


def test_the_fence_is_as_wide_as_the_script_needs():
    assert fence_around(WALK, GO2) == pytest.approx(0.6 + FENCE_MARGIN)


def test_outside_the_fence_the_robot_lies_down():
    rehearsal = rehearse(GO2, TrotStub(GO2), WALK, limits=Limits(fence=0.3))
    rehearsal.play(20.0)
    assert rehearsal.deployment.safety.reason == "outside the fence"
    assert np.hypot(*rehearsal.world.data.qpos[:2]) < 0.6
