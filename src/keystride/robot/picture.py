"""Still pictures of the robot, and images as PNG files."""

from pathlib import Path

import mujoco
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from keystride.files import open_atomically
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.robot.model import load_model

RgbImage = NDArray[np.uint8]  # (height, width, 3)

SEEN_GROUPS = (0, 2)  # the floor and the visual shapes; not the collision shapes


def draw_robot(
    robot: Robot,
    joints: Floats,
    *,
    azimuth: float = 140.0,
    elevation: float = -18.0,
    distance: float = 1.1,
    size: tuple[int, int] = (960, 720),
) -> RgbImage:
    """Return a picture of the robot standing in a posture (12,). Angles in degrees: azimuth 90 is its right side, 180 its face."""
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
    """Return scene options that show the visual shapes only."""
    option = mujoco.MjvOption()
    option.geomgroup[:] = 0
    option.geomgroup[list(SEEN_GROUPS)] = 1
    option.sitegroup[:] = 0
    return option


def write_png(path: Path, image: RgbImage) -> None:
    """Write an image as a PNG file."""
    with open_atomically(path) as file:
        PIL.Image.fromarray(image).save(file, format="PNG")
