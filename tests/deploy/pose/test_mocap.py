import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

from keystride import geometry
from keystride.deploy.pose.estimator import OdometryPoses
from keystride.deploy.pose.mocap import body_index, natnet_bodies, open_source, qualisys_body, ros_pose
from keystride.deploy.pose.source import DEFAULT_PORT, Mounting, UdpPoses

TURN = geometry.from_yaw(np.asarray(0.7))


def test_optitrack_bodies_are_found_by_number_and_only_when_tracked():
    natnet = pytest.importorskip("natnet", reason="natnet comes with the extra mocap")
    x, y, z = TURN[1:]

    def body(number: int, tracked: bool):
        return natnet.RigidBody(number, (1.0, 2.0, 3.0), (x, y, z, TURN[0]), None, tracked, 0.0)

    parts = natnet.data_frame
    suffix = parts.FrameSuffix(0, 0, 0.0, None, None, None, 0, False, False)
    bodies = (body(4, True), body(5, False), body(6, True))
    frame = natnet.DataFrame(parts.FramePrefix(1), (), (), bodies, (), (), (), (), (), suffix)
    ((position, orientation),) = natnet_bodies(frame, 4)
    assert position == (1.0, 2.0, 3.0)
    assert np.allclose(orientation, TURN)
    assert natnet_bodies(frame, 5) == []
    assert natnet_bodies(frame, None) == []


def test_qualisys_bodies_are_millimetres_and_columns():
    packet = pytest.importorskip("qtm_rt", reason="qtm_rt comes with the extra mocap").packet
    c, s = np.cos(0.7), np.sin(0.7)
    columns = (c, s, 0.0, -s, c, 0.0, 0.0, 0.0, 1.0)
    turn = packet.RT6DBodyRotation(columns)
    position, orientation = qualisys_body(packet.RT6DBodyPosition(1000.0, -500.0, 300.0), turn)
    assert np.allclose(position, [1.0, -0.5, 0.3])
    assert np.allclose(orientation, TURN)


def test_a_body_that_qualisys_does_not_see_is_no_pose():
    packet = pytest.importorskip("qtm_rt", reason="qtm_rt comes with the extra mocap").packet
    place, turn = packet.RT6DBodyPosition(*(np.nan,) * 3), packet.RT6DBodyRotation((np.nan,) * 9)
    position, orientation = qualisys_body(place, turn)
    assert np.isnan(position).all()
    assert np.isnan(orientation).all()


def test_qualisys_bodies_by_name():
    xml = "<QTM><The_6D><Body><Name>ball</Name></Body><Body><Name>go2</Name></Body></The_6D></QTM>"
    assert body_index(xml, "go2") == 1
    assert body_index(xml, "0") == 0
    with pytest.raises(ConnectionError, match="'cat' among"):
        body_index(xml, "cat")


def test_udp_sources_open_where_they_are_told():
    source = open_source("udp://127.0.0.1:0", Mounting())
    assert isinstance(source, UdpPoses)
    assert source.port not in (0, DEFAULT_PORT)  # port 0 is any free one
    source.close()


@pytest.mark.parametrize("text", ["", "gps://here", "optitrack://server", "vicon:///body", "qualisys://"])
def test_an_address_that_means_nothing_is_refused(text):
    with pytest.raises(ValueError, match=r"expected|needs"):
        open_source(text, Mounting())


def test_the_motioncapture_library_opens():
    pytest.importorskip("motioncapture", reason="motioncapture comes with the extra mocap")
    source = open_source("mock://localhost/go2", Mounting())
    assert not source.poses.wait(0.05)  # its mock has no such body
    source.close()


def test_odometry_needs_no_address():
    assert isinstance(open_source("odometry", Mounting()), OdometryPoses)


def ros(kind: str):
    """Messages as rclpy gives them; rclpy itself comes with ROS."""
    place = SimpleNamespace(x=1.0, y=2.0, z=3.0)
    turn = SimpleNamespace(w=TURN[0], x=TURN[1], y=TURN[2], z=TURN[3])
    header = SimpleNamespace(stamp=SimpleNamespace(sec=12, nanosec=500_000_000))
    pose = SimpleNamespace(position=place, orientation=turn)
    contents = {
        "PoseStamped": {"pose": pose},
        "Odometry": {"pose": SimpleNamespace(pose=pose, covariance=[0.0] * 36)},
        "TransformStamped": {"transform": SimpleNamespace(translation=place, rotation=turn)},
    }
    return SimpleNamespace(header=header, **contents[kind])


@pytest.mark.parametrize("kind", ["PoseStamped", "Odometry", "TransformStamped"])
def test_poses_in_ros_messages(kind):
    position, orientation, stamp = ros_pose(ros(kind))
    assert position == (1.0, 2.0, 3.0)
    assert np.allclose(orientation, TURN)
    assert stamp == 12.5


def test_ros_needs_a_topic_and_rclpy():
    with pytest.raises(ValueError, match="needs a topic"):
        open_source("ros2://", Mounting())
    if importlib.util.find_spec("rclpy") is None:
        with pytest.raises(ValueError, match="needs rclpy"):
            open_source("ros2:///go2/pose", Mounting())
