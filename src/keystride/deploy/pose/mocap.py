"""Motion-capture systems as pose sources: OptiTrack (natnet), Vicon and others (motioncapture), Qualisys (qtm-rt), ROS 2.

Each source needs a client library from the extra `mocap` (ROS 2: rclpy from a ROS installation), imported only when it
is used. A source is given as a URL: udp://HOST:PORT, optitrack://SERVER/BODY, vicon://HOST/BODY,
qualisys://HOST/BODY or ros2:///TOPIC; or as sim (the simulated robot on this machine) or odometry (the robot's legs).
"""

import asyncio
import importlib
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import numpy as np

from keystride.deploy.pose.estimator import OdometryPoses
from keystride.deploy.pose.source import DEFAULT_PORT, Mounting, Poses, PoseSource, UdpPoses
from keystride.robot.description import Floats


class OptiTrackPoses(Poses):
    """OptiTrack Motive over NatNet. The body is the name of a rigid body or its streaming id."""

    def __init__(self, mounting: Mounting, server: str, body: str, local: str) -> None:
        from natnet import NatNetClient

        super().__init__(mounting)
        self._body = body
        self._id = int(body) if body.isdigit() else None
        self._client = NatNetClient(server_ip_address=server, local_ip_address=local)
        self._client.on_data_description_received_event.handlers.append(self.described)
        self._client.on_data_frame_received_event.handlers.append(self.frame)
        self._client.connect()
        self._client.request_modeldef()
        self._client.run_async()

    def described(self, descriptions: Any) -> None:
        for body in descriptions.rigid_bodies:
            if body.name == self._body:
                self._id = body.id_num

    def frame(self, frame: Any) -> None:
        for position, orientation in natnet_bodies(frame, self._id):
            self.receive(position, orientation, sequence=frame.prefix.frame_number)

    def close(self) -> None:
        self._client.shutdown()


class MotionCapturePoses(Poses):
    """Any system that `motioncapture` supports: vicon, optitrack, qualisys, vrpn, nokov, mock."""

    def __init__(self, mounting: Mounting, system: str, host: str, body: str) -> None:
        import motioncapture

        super().__init__(mounting)
        self._body = body
        self._capture = motioncapture.connect(system, {"hostname": host})
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pose", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._capture.waitForNextFrame()
            body = self._capture.rigidBodies.get(self._body)
            if body is not None:
                turn = body.rotation
                self.receive(body.position, (turn.w, turn.x, turn.y, turn.z))

    def close(self) -> None:
        self._closed.set()


class QualisysPoses(Poses):
    """Qualisys Track Manager: 6-degree-of-freedom bodies in millimetres with rotation matrices."""

    def __init__(self, mounting: Mounting, host: str, body: str) -> None:
        super().__init__(mounting)
        self._host, self._body = host, body
        self._index = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="pose", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._connect())
        self._loop.run_forever()

    async def _connect(self) -> None:
        import qtm_rt

        connection = await qtm_rt.connect(self._host)
        if connection is None:
            raise ConnectionError(f"no Qualisys Track Manager at {self._host}")
        self._index = body_index(await connection.get_parameters(parameters=["6d"]), self._body)
        await connection.stream_frames(components=["6d"], on_packet=self.packet)

    def packet(self, packet: Any) -> None:
        _, bodies = packet.get_6d()
        if self._index < len(bodies):
            position, orientation = qualisys_body(*bodies[self._index])
            self.receive(position, orientation, packet.timestamp / 1e6, packet.framenumber)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


class RosPoses(Poses):
    """A ROS 2 topic: PoseStamped, PoseWithCovarianceStamped, Odometry or TransformStamped messages.

    Needs rclpy, which comes with a ROS 2 installation, not from a package index.
    """

    def __init__(self, mounting: Mounting, topic: str, kind: str) -> None:
        try:
            import rclpy
            from rclpy.executors import SingleThreadedExecutor
            from rclpy.qos import qos_profile_sensor_data
        except ImportError as error:
            raise ValueError("ros2:// needs rclpy: source the setup file of a ROS 2 installation first") from error

        super().__init__(mounting)
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node("keystride_pose", context=self._context)
        self._node.create_subscription(ros_message(kind), topic, self.message, qos_profile_sensor_data)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._executor.spin, name="pose", daemon=True)
        self._thread.start()

    def message(self, message: Any) -> None:
        self.receive(*ros_pose(message))

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()


ROS_MESSAGES = {
    "PoseStamped": "geometry_msgs.msg",
    "PoseWithCovarianceStamped": "geometry_msgs.msg",
    "TransformStamped": "geometry_msgs.msg",
    "Odometry": "nav_msgs.msg",
}


def ros_message(kind: str) -> Any:
    """Return a message class by its name; raise ValueError for one that holds no pose."""
    if kind not in ROS_MESSAGES:
        raise ValueError(f"unknown ROS 2 message {kind!r}: expected one of {', '.join(ROS_MESSAGES)}")
    return getattr(importlib.import_module(ROS_MESSAGES[kind]), kind)


def ros_pose(message: Any) -> tuple[Any, Any, float]:
    """Return position, w x y z and time stamp of a ROS message that holds a pose."""
    stamp = message.header.stamp.sec + message.header.stamp.nanosec / 1e9
    if hasattr(message, "transform"):
        place, turn = message.transform.translation, message.transform.rotation
    else:
        pose = message.pose.pose if hasattr(message.pose, "pose") else message.pose  # with covariance
        place, turn = pose.position, pose.orientation
    return (place.x, place.y, place.z), (turn.w, turn.x, turn.y, turn.z), stamp


def natnet_bodies(frame: Any, number: int | None) -> list[tuple[Any, Any]]:
    """Return position and quaternion (w x y z) of the rigid body if it was tracked in this frame, as a list of one or none."""
    seen = [body for body in frame.rigid_bodies if body.id_num == number and body.tracking_valid is not False]
    return [(body.pos, (body.rot[3], *body.rot[:3])) for body in seen]


def qualisys_body(place: Any, turn: Any) -> tuple[Floats, Floats]:
    """Return metres and w x y z, from millimetres and a column-major rotation matrix."""
    matrix = np.reshape(turn.matrix, (3, 3)).T
    return np.array([place.x, place.y, place.z]) / 1000.0, quaternion(matrix)


def body_index(parameters: bytes | str, name: str) -> int:
    """Return the index of the named body in QTM's XML description; a number is its own index."""
    from xml.etree import ElementTree

    if name.isdigit():
        return int(name)
    names = [element.text for element in ElementTree.fromstring(parameters).findall(".//Body/Name")]
    if name not in names:
        raise ConnectionError(f"no body {name!r} among {names}")
    return names.index(name)


def quaternion(matrix: Floats) -> Floats:
    """Return w x y z of a rotation matrix; NaN, which is rejected as invalid, for a matrix with NaN."""
    import mujoco

    result = np.full(4, np.nan)
    if np.isfinite(matrix).all():
        mujoco.mju_mat2Quat(result, matrix.reshape(9).astype(np.float64))
    return result


def _udp(url: SplitResult, mounting: Mounting) -> PoseSource:
    return UdpPoses(mounting, url.hostname or "127.0.0.1", DEFAULT_PORT if url.port is None else url.port)


def _optitrack(url: SplitResult, mounting: Mounting) -> PoseSource:
    local = parse_qs(url.query).get("local", ["0.0.0.0"])[0]
    return OptiTrackPoses(mounting, _host(url), _body(url), local)


def _qualisys(url: SplitResult, mounting: Mounting) -> PoseSource:
    return QualisysPoses(mounting, _host(url), _body(url))


def _motioncapture(url: SplitResult, mounting: Mounting) -> PoseSource:
    return MotionCapturePoses(mounting, url.scheme, _host(url), _body(url))


def _ros(url: SplitResult, mounting: Mounting) -> PoseSource:
    topic = f"/{url.netloc}{url.path}" if url.netloc else url.path
    if not topic.strip("/"):
        raise ValueError("ros2:// needs a topic: ros2:///go2/pose?type=PoseStamped")
    return RosPoses(mounting, topic, parse_qs(url.query).get("type", ["PoseStamped"])[0])


SOURCES: dict[str, Callable[[SplitResult, Mounting], PoseSource]] = {
    "udp": _udp,
    "ros2": _ros,
    "optitrack": _optitrack,
    "qualisys": _qualisys,
    "vicon": _motioncapture,
    "vrpn": _motioncapture,
    "nokov": _motioncapture,
    "mock": _motioncapture,
}


def open_source(text: str, mounting: Mounting) -> PoseSource:
    """Open a source. Raise ValueError for an invalid address, ImportError if the client library is missing."""
    if text == "odometry":
        return OdometryPoses()
    url = urlsplit("udp://127.0.0.1" if text == "sim" else text)
    if url.scheme not in SOURCES:
        raise ValueError(
            f"unknown pose source {text!r}: expected sim, odometry or one of {', '.join(f'{s}://' for s in SOURCES)}"
        )
    return SOURCES[url.scheme](url, mounting)


def _host(url: SplitResult) -> str:
    if not url.hostname:
        raise ValueError(f"{url.scheme}:// needs a host: {url.scheme}://HOST/BODY")
    return url.hostname


def _body(url: SplitResult) -> str:
    body = url.path.strip("/")
    if not body:
        raise ValueError(f"{url.scheme}:// needs the tracked body's name: {url.scheme}://HOST/BODY")
    return body
