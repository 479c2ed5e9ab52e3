from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from keystride.deploy import launch
from keystride.deploy.launch import Plan, opened_source
from keystride.deploy.players import TrotStub
from keystride.deploy.pose.source import Mounting, UdpPoses
from keystride.deploy.preflight import Refused, check_interface, checked_script, open_player, outside
from keystride.keyframes.files import save_script
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2


def script(folder: Path, *keyframes: Keyframe) -> Path:
    path = folder / "script.yaml"
    save_script(Script(keyframes=keyframes), path)
    return path


EASY = Keyframe(time=1.0, position=(0.3, 0.0))
IMPOSSIBLE = Keyframe(time=0.2, position=(9.0, 0.0))


def test_stubs_stay_on_this_machine():
    assert isinstance(open_player("STUB-TROT", GO2, "lo"), TrotStub)
    with pytest.raises(Refused, match="STUB-TROT is a test stub"):
        open_player("STUB-TROT", GO2, "eth0")


def test_a_script_that_no_go2_can_play_is_refused_unless_one_insists(tmp_path):
    path = script(tmp_path, IMPOSSIBLE)
    with pytest.raises(Refused, match=r"keyframe 1: 45\.0 m/s"):
        checked_script(path, GO2, doubtful=False)
    assert len(checked_script(path, GO2, doubtful=True).keyframes) == 1


def test_a_script_that_a_policy_was_not_trained_for_is_refused_unless_one_insists(tmp_path):
    backwards = script(tmp_path, Keyframe(time=3.0, position=(-1.0, 0.0), yaw=0.0))
    player, asked = open_player("go2-pose", GO2, "lo"), checked_script(backwards, GO2, doubtful=False)
    with pytest.raises(Refused, match=r"180 degrees off .*--outside-training"):
        outside(backwards, player, asked, allowed=False)
    assert "180 degrees off" in outside(backwards, player, asked, allowed=True)[0]
    long = checked_script(script(tmp_path, Keyframe(time=8.0, position=(2.0, 0.0))), GO2, doubtful=False)
    assert outside(backwards, player, long, allowed=False) == []
    with pytest.raises(Refused, match=r"8\.00 s after the one before"):
        outside(backwards, open_player("go2-pose", GO2, "lo", inbetween=False), long, allowed=False)


def test_no_such_interface():
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    with pytest.raises(Refused, match="no network interface wire7; available: "):
        check_interface("wire7")


def plan(tmp_path, pose: str) -> Plan:
    path = script(tmp_path, EASY)
    return Plan(interface="127.0.0.1", policy="STUB-TROT", script=path, pose=pose, domain=231, connect=0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"settle": -1.0},
        {"settle": float("inf")},
        {"settle": 0.0},  # too short to send enough brake commands
        {"fence": float("nan")},
        {"start_after": -1.0},
        {"pose_latency": 5.0},
        {"mounting": Mounting(offset=(0.0, float("nan"), 0.0))},
    ],
)
def test_a_number_that_makes_no_sense_is_refused_before_anything_moves(tmp_path, wrong):
    with pytest.raises(Refused, match="outside the range"):
        launch.deploy(replace(plan(tmp_path, "odometry"), confirmed=True, **wrong), GO2)


def test_no_robot(tmp_path):
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    with pytest.raises(Refused, match=r"no robot on 127.0.0.1: no low state within 0.2 s"):
        launch.deploy(replace(plan(tmp_path, "odometry"), confirmed=True), GO2)


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path):
    first = UdpPoses(Mounting(), port=0)
    with ExitStack() as stack, pytest.raises(Refused, match=r"no poses from udp://127.0.0.1:\d+: .*in use"):
        opened_source(plan(tmp_path, f"udp://127.0.0.1:{first.port}"), stack)
    first.close()


def test_silence_is_told(tmp_path):
    with ExitStack() as stack, pytest.raises(Refused, match=r"no pose from udp://127.0.0.1:0 within 0.2 s"):
        opened_source(plan(tmp_path, "udp://127.0.0.1:0"), stack)
