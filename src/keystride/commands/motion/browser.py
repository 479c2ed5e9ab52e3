"""A clip played over and over in the browser, for `keystride motion view --browser`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco
    import viser

    from keystride.motion.clip import Clip
    from keystride.motion.retargeting.retarget import Animal
    from keystride.robot.description import Robot

ANIMAL_ASIDE = np.array([0.0, 0.8, 0.0])  # m


def play_in_browser(clip: Clip, robot: Robot, animal: Animal | None, port: int) -> None:
    """Serve the clip on this machine only, until Ctrl-C."""
    import mujoco
    from mjviser import Viewer

    from keystride.robot.model import load_model
    from keystride.web_access import PrivateServer, start_server

    model = load_model(robot)
    model.opt.timestep = 1.0 / clip.fps  # the viewer paces its steps by it
    server, address = start_server(
        lambda: PrivateServer(host="127.0.0.1", port=port, label=clip.name, verbose=False), "127.0.0.1"
    )
    print(f"{address} plays {clip.name}; Ctrl-C ends it", flush=True)
    playback = Playback(clip, animal, server)
    viewer = Viewer(model, mujoco.MjData(model), step_fn=playback, server=server)
    playback.parent = viewer.scene.fixed_bodies_frame.name  # it moves when the camera follows the robot
    viewer.run()


class Playback:
    """Shows the next frame of a clip at every step of the viewer, around the start of the clip."""

    def __init__(self, clip: Clip, animal: Animal | None, server: viser.ViserServer) -> None:
        self.clip, self.animal, self.server = clip, animal, server
        self.origin = clip.base_position[0] * [1.0, 1.0, 0.0]
        self.frame = 0
        self.parent = ""

    def __call__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        import mujoco

        position = self.clip.base_position[self.frame] - self.origin
        turn, joints = self.clip.base_orientation[self.frame], self.clip.joint_angles[self.frame]
        data.qpos[:] = np.concatenate([position, turn, joints])
        mujoco.mj_forward(model, data)
        if self.animal is not None:
            self._draw(self.animal)
        self.frame = (self.frame + 1) % len(self.clip)

    def _draw(self, animal: Animal) -> None:
        from keystride.motion.picture import BONE_COLOUR

        nodes = animal.nodes[min(self.frame, len(animal.nodes) - 1)] - self.origin + ANIMAL_ASIDE
        bones = [(nodes[parent], nodes[node]) for node, parent in enumerate(animal.parents) if parent >= 0]
        red, green, blue = (int(255 * part) for part in BONE_COLOUR[:3])
        self.server.scene.add_line_segments(
            f"{self.parent}/animal", points=np.array(bones, dtype=np.float32), colors=(red, green, blue), thickness=0.02
        )
