"""Pictures of a clip: the robot, and ahead of it the animal that was captured."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

from keystride import geometry
from keystride.motion.clip import Clip
from keystride.motion.retargeting.retarget import Animal
from keystride.robot.description import Floats, Robot
from keystride.robot.model import RgbImage, load_spec, look

BONE_COLOUR = np.array([0.93, 0.62, 0.25, 1.0], dtype=np.float32)
BONE_RADIUS = 0.012  # m
ANIMAL_AHEAD = 0.85  # m
EYE_HEIGHT = 0.22  # m


@dataclass(frozen=True)
class ClipCamera:
    size: tuple[int, int] = (640, 480)
    azimuth: float = 90.0  # degrees: 90 sees the robot's right side
    elevation: float = -12.0
    distance: float = 1.6  # m


def film(
    clip: Clip, robot: Robot, frames: Iterable[int], view: ClipCamera, animal: Animal | None = None
) -> Iterator[RgbImage]:
    """Render one picture per frame number, from a camera that moves alongside the robot."""
    spec = load_spec(robot)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = view.size
    model = spec.compile()
    data = mujoco.MjData(model)
    with mujoco.Renderer(model, view.size[1], view.size[0]) as renderer:
        for frame in frames:
            data.qpos[:] = np.concatenate(
                [clip.base_position[frame], clip.base_orientation[frame], clip.joint_angles[frame]]
            )
            mujoco.mj_forward(model, data)
            heading = float(geometry.yaw_of(clip.base_orientation[frame]))
            ahead = np.array([np.cos(heading), np.sin(heading), 0.0]) * (ANIMAL_AHEAD if animal else 0.0)
            renderer.update_scene(data, _camera(clip.base_position[frame] + 0.5 * ahead, heading, view), look())
            if animal:
                _draw_bones(renderer.scene, animal.nodes[min(frame, len(animal.nodes) - 1)] + ahead, animal.parents)
            yield renderer.render().copy()


def _camera(at: Floats, heading: float, view: ClipCamera) -> mujoco.MjvCamera:
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = (
        view.azimuth + np.degrees(heading),
        view.elevation,
        view.distance,
    )
    camera.lookat[:] = [at[0], at[1], EYE_HEIGHT]
    return camera


def _draw_bones(scene: mujoco.MjvScene, nodes: Floats, parents: tuple[int, ...]) -> None:
    capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
    for node, parent in enumerate(parents):
        if parent < 0 or scene.ngeom >= scene.maxgeom:
            continue
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(geom, capsule, np.zeros(3), np.zeros(3), np.eye(3).reshape(-1), BONE_COLOUR)
        mujoco.mjv_connector(geom, capsule, BONE_RADIUS, nodes[parent], nodes[node])
        scene.ngeom += 1
