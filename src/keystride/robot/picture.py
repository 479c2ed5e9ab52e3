"""A still picture of the robot, and PNG files without another library."""

import struct
import zlib
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.robot.model import load_model

Image = NDArray[np.uint8]  # (height, width, 3)

SEEN_GROUPS = (0, 2)  # the floor and the visual primitives; not the collision set


def draw(
    robot: Robot,
    joints: Floats,
    *,
    azimuth: float = 140.0,
    elevation: float = -18.0,
    distance: float = 1.1,
    size: tuple[int, int] = (960, 720),
) -> Image:
    """The robot standing in a posture (12,). Angles in degrees: azimuth 90 is its right side, 180 its face."""
    model = load_model(robot)
    data = mujoco.MjData(model)
    data.qpos[2] = standing_height(robot, joints)
    data.qpos[7:] = joints
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = azimuth, elevation, distance
    camera.lookat[:] = [0.03, 0.0, 0.65 * data.qpos[2]]
    with mujoco.Renderer(model, size[1], size[0]) as renderer:
        renderer.update_scene(data, camera, look())
        return renderer.render().copy()


def look() -> mujoco.MjvOption:
    """Scene options that show the robot as people should see it."""
    option = mujoco.MjvOption()
    option.geomgroup[:] = 0
    option.geomgroup[list(SEEN_GROUPS)] = 1
    option.sitegroup[:] = 0
    return option


def write_png(path: Path, image: Image) -> None:
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)  # filter 0 a row
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)), _chunk(b"IEND", b""))
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    part.replace(path)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
