"""`keystride motion view`: render a clip to a video, or play it in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from keystride.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mujoco
    import viser

    from keystride.motion.clip import Clip
    from keystride.motion.retargeting.retarget import Animal
    from keystride.robot.description import Robot
    from keystride.robot.model import RgbImage


@dataclass(frozen=True)
class ViewMotion:
    """Render a clip to an MP4 file, or play it in the browser.

    With --source, the animal's skeleton is shown next to the robot.
    """

    clip: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CLIP")]
    """Clip of a library, an .npz file."""

    out: Path | None = None
    """File to write, .mp4. Default: named after the clip, in the working directory."""

    browser: bool = False
    """Play it in the browser instead, from a server on this machine. Needs the `studio` extra."""

    port: int = 8082
    """Port for --browser; if it is taken, the next free one is used."""

    source: Path | None = None
    """Folder of the BVH files that the clip was imported from, to show the animal as well."""

    skeleton: Path | None = None
    """YAML file that maps BVH nodes to hips and toes. Default: that of the MANN dog."""

    size: tuple[int, int] = (640, 368)
    """Width and height in pixels; multiples of 16."""

    azimuth: float = 90.0
    """Camera azimuth in degrees: 90 shows the robot's right side, 180 its face."""

    every: int = 2
    """Show every n-th frame; 2 gives 25 frames per second."""

    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""

    slower: float = 1.0
    """Slow-motion factor: 2 plays at half speed."""

    def run(self) -> int:
        clip = self._load()
        if not self.browser:
            return self._film(clip)
        from keystride.robot.catalogue import load_robot

        play_in_browser(clip, load_robot(self.robot), self._animal(clip), self.port)
        return 0

    def _film(self, clip: Clip) -> int:
        from imageio_ffmpeg import write_frames

        from keystride.files import part_file

        out = self.out or Path(f"{clip.name}.mp4")
        rate: Any = clip.fps / self.every / self.slower  # annotated as int, but any number works
        with part_file(out) as part:
            writer = write_frames(str(part), self.size, fps=rate, quality=7)
            writer.send(None)
            for image in self._images(clip):
                writer.send(image)
            writer.close()
        print(f"wrote {out} ({clip.seconds:.1f} s)")
        return 0

    def _load(self) -> Clip:
        from keystride.motion.clip import load_clip

        return load_clip(self.clip)

    def _images(self, clip: Clip) -> Iterator[RgbImage]:
        from rich.progress import track

        from keystride.motion.picture import ClipCamera, film
        from keystride.robot.catalogue import load_robot

        animal = self._animal(clip)
        view = ClipCamera(self.size, azimuth=self.azimuth, distance=2.0 if animal else 1.6)
        return film(
            clip,
            load_robot(self.robot),
            track(range(0, len(clip), self.every), "rendering", transient=True),
            view,
            animal,
        )

    def _animal(self, clip: Clip) -> Animal | None:
        from keystride.motion.importers.animal import animal_of, load_skeleton
        from keystride.motion.importers.poses import ImportProblem

        if self.source is None:
            return None
        try:
            animal = animal_of(clip, self.source, load_skeleton(self.skeleton))
        except ImportProblem as problem:
            raise UserError(str(problem)) from problem
        if animal is None:
            raise UserError(f"{self.source} does not contain {clip.metadata.get('source') or 'the source of the clip'}")
        return animal


ANIMAL_ASIDE = np.array([0.0, 0.8, 0.0])  # m


def play_in_browser(clip: Clip, robot: Robot, animal: Animal | None, port: int) -> None:
    """Serve the clip on the loopback interface until Ctrl-C."""
    import mujoco
    from mjviser import Viewer

    from keystride.robot.model import load_model
    from keystride.web_access import PrivateServer, start_server

    model = load_model(robot)
    model.opt.timestep = 1.0 / clip.fps  # sets the pace of the viewer
    server, address = start_server(
        lambda: PrivateServer(host="127.0.0.1", port=port, label=clip.name, verbose=False), "127.0.0.1"
    )
    print(f"playing {clip.name} at {address} (Ctrl-C to quit)", flush=True)
    playback = Playback(clip, animal, server)
    viewer = Viewer(model, mujoco.MjData(model), step_fn=playback, server=server)
    playback.parent = viewer.scene.fixed_bodies_frame.name  # it moves when the camera follows the robot
    viewer.run()


class Playback:
    """Show the next frame of a clip at every step of the viewer, relative to where the clip starts."""

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
