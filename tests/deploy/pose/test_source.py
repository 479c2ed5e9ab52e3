import json
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.pose.source import Mounting, Pose, Poses, UdpPoses, pose_message

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def send(source: UdpPoses, *messages: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for message in messages:
            sender.sendto(message, ("127.0.0.1", source.port))


def wait_for(condition) -> bool:
    until = time.monotonic() + 120.0
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return condition()


@pytest.fixture
def source():
    source = UdpPoses(Mounting(), port=0)
    yield source
    source.close()


def test_a_pose_over_udp(source):
    pose = Pose(np.array([1.0, -2.0, 0.3]), geometry.from_yaw(np.asarray(0.5)))
    send(source, pose_message(pose))
    assert source.poses.wait(120.0)
    assert np.allclose(source.poses.value.position, pose.position)
    assert np.allclose(source.poses.value.orientation, pose.orientation)


def test_members_that_are_not_known_do_not_matter(source):
    send(source, json.dumps({"position": [1, 2, 3], "orientation": [1, 0, 0, 0], "name": "go2", "time": 5}).encode())
    assert source.poses.wait(120.0)


GARBAGE = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"{}",
    b'{"position": [0, 0, 0]}',
    b'{"position": [0, 0], "orientation": [1, 0, 0, 0]}',
    b'{"position": [0, 0, NaN], "orientation": [1, 0, 0, 0]}',
    b'{"position": [0, 0, Infinity], "orientation": [1, 0, 0, 0]}',
    b'{"position": [0, 0, 0], "orientation": [0, 0, 0, 0]}',
    b'{"position": [0, 0, 0], "orientation": [2, 0, 0, 0]}',
    b'{"position": [1e308, 1e308, 1e308], "orientation": [1, 0, 0, 0]}',
    b'{"position": "here", "orientation": [1, 0, 0, 0]}',
    b'{"position": [0, 0, {}], "orientation": [1, 0, 0, 0]}',
    b"[" * 4000,
]


def test_garbage_is_counted_and_the_stream_goes_on(source):
    send(source, *GARBAGE)
    assert wait_for(lambda: source.rejected == len(GARBAGE))
    assert source.poses.count == 0
    send(source, pose_message(Pose(np.zeros(3), LEVEL)))
    assert source.poses.wait(120.0)


def base(mounting: Mounting, position, orientation) -> Pose:
    poses = Poses(mounting)
    poses.receive(position, orientation)
    assert poses.poses.value is not None
    return poses.poses.value


def test_without_a_mounting_nothing_changes():
    pose = base(Mounting(), [1.0, 2.0, 3.0], LEVEL)
    assert (pose.position == [1.0, 2.0, 3.0]).all()
    assert (pose.orientation == LEVEL).all()


def test_y_up_axes_by_hand():
    """Forward is the capture's z, left its x, up its y."""
    pose = base(Mounting(axes="y-up"), [0.2, 0.3, 1.5], LEVEL)
    assert np.allclose(pose.position, [1.5, 0.2, 0.3])
    assert np.allclose(pose.orientation, LEVEL)


def test_a_turn_about_the_captures_vertical_is_a_turn_about_ours():
    quarter = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0])  # about y, which is up there
    pose = base(Mounting(axes="y-up"), [0.0, 0.3, 0.0], quarter)
    assert np.allclose(geometry.roll_pitch_yaw(pose.orientation), [0.0, 0.0, np.pi / 2])


def test_the_offset_turns_with_the_base():
    quarter = geometry.from_yaw(np.asarray(np.pi / 2))
    pose = base(Mounting(offset=(0.1, 0.0, -0.05)), [1.0, 1.0, 0.4], quarter)
    assert np.allclose(pose.position, [1.0, 1.1, 0.35])


def test_a_body_that_was_defined_turned():
    """The tracked body points to the base's right: seen from it, the base is turned to the left by 90 degrees."""
    body = geometry.from_yaw(np.asarray(-np.pi / 2))
    pose = base(Mounting(yaw=90.0), [0.0, 0.0, 0.3], body)
    assert np.allclose(pose.orientation, LEVEL)


def stream(*poses) -> Poses:
    """Poses as (x, time, sequence, arrival)."""
    source = Poses(Mounting())
    for x, stamp, sequence, now in poses:
        source.receive([x, 0.0, 0.3], LEVEL, stamp, sequence, now)
    return source


def test_a_repeated_pose_is_not_a_new_one():
    source = stream((0.0, None, None, 0.0), (0.0, None, None, 0.01), (0.0, None, None, 0.02), (0.1, None, None, 0.03))
    assert (source.poses.count, source.repeated, source.rejected) == (2, 2, 2)


def test_poses_out_of_order_are_dropped():
    source = stream((0.0, None, 7, 0.0), (0.1, None, 9, 0.01), (0.2, None, 8, 0.02), (0.3, None, 10, 0.03))
    assert (source.poses.count, source.disordered) == (3, 1)
    source = stream((0.0, 5.00, None, 0.0), (0.1, 5.01, None, 0.01), (0.2, 5.01, None, 0.02))
    assert (source.poses.count, source.disordered) == (2, 1)


def test_a_source_may_begin_again_after_a_pause():
    source = stream((0.0, 900.0, 5000, 0.0), (0.1, 900.01, 5001, 0.01), (0.2, 0.0, 0, 3.0), (0.3, 0.01, 1, 3.01))
    assert (source.poses.count, source.rejected) == (4, 0)


def test_late_poses_are_dropped_and_their_delay_is_known():
    source = stream((0.0, 100.00, 1, 0.00), (0.1, 100.01, 2, 0.03), (0.2, 100.02, 3, 0.20), (0.3, 100.21, 4, 0.21))
    assert (source.poses.count, source.late) == (3, 1)
    delayed = stream((0.0, 100.00, 1, 0.00), (0.1, 100.01, 2, 0.03))
    assert delayed.poses.value is not None
    assert delayed.poses.value.delay == pytest.approx(0.02, abs=1e-4)


@pytest.mark.parametrize(("stamp", "sequence"), [("now", 1), (float("nan"), 1), (0.0, "x"), (0.0, [1]), ({}, None)])
def test_a_time_that_is_none_is_not_a_pose(stamp, sequence):
    assert stream((0.0, stamp, sequence, 0.0)).invalid == 1


def test_time_and_number_go_over_udp(source):
    send(source, pose_message(Pose(np.zeros(3), LEVEL, time=12.5, sequence=42)))
    assert source.poses.wait(120.0)
    assert (source.poses.value.time, source.poses.value.sequence) == (12.5, 42)


def test_the_bridge_in_the_documentation_works(source):
    text = (Path(__file__).parents[3] / "docs" / "deploy.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(code, names)
    places = iter([(0.1, 0.2, 0.3), (0.2, 0.2, 0.3)])
    names["bridge"](lambda: (next(places), (1.0, 0.0, 0.0, 0.0)), ("127.0.0.1", source.port), count=2)
    assert wait_for(lambda: source.poses.count == 2)
    assert source.poses.value.sequence == 1
