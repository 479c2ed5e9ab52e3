import json
import socket
import time

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.pose import Mounting, Pose, Poses, UdpPoses, pose_message

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])


def send(source: UdpPoses, *messages: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for message in messages:
            sender.sendto(message, ("127.0.0.1", source.port))


def wait_for(condition) -> bool:
    until = time.monotonic() + 5.0
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
    assert source.poses.wait(5.0)
    assert np.allclose(source.poses.value.position, pose.position)
    assert np.allclose(source.poses.value.orientation, pose.orientation)


def test_members_that_are_not_known_do_not_matter(source):
    send(source, json.dumps({"position": [1, 2, 3], "orientation": [1, 0, 0, 0], "name": "go2", "time": 5}).encode())
    assert source.poses.wait(5.0)


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
    b'{"position": "here", "orientation": [1, 0, 0, 0]}',
    b'{"position": [0, 0, {}], "orientation": [1, 0, 0, 0]}',
    b"[" * 4000,
]


def test_garbage_is_counted_and_the_stream_goes_on(source):
    send(source, *GARBAGE)
    assert wait_for(lambda: source.rejected == len(GARBAGE))
    assert source.poses.count == 0
    send(source, pose_message(Pose(np.zeros(3), LEVEL)))
    assert source.poses.wait(5.0)


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
