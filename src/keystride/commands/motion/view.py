"""`keystride motion view`: a clip as a film."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from keystride.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keystride.motion.clip import Clip
    from keystride.motion.retargeting.retarget import Animal
    from keystride.robot.model import RgbImage


@dataclass(frozen=True)
class ViewMotion:
    """Render a clip to an MP4 file, or play it in the browser.

    With --source, the animal's skeleton is shown next to the robot.
    """

    clip: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CLIP")]
    """A clip of a library, .npz."""

    out: Path | None = None
    """File to write, .mp4. Default: named after the clip, in the working directory."""

    browser: bool = False
    """Play it in the browser instead (needs the extra studio); the server is local."""

    port: int = 8082
    """Port for --browser; if it is taken, the next free one is used."""

    source: Path | None = None
    """Folder with the BVH files that the clip was imported from, to show the animal."""

    skeleton: Path | None = None
    """YAML file of that skeleton, unless it is the MANN dog's."""

    size: tuple[int, int] = (640, 368)
    """Width and height in pixels; multiples of 16."""

    azimuth: float = 90.0
    """Camera azimuth in degrees: 90 shows the robot's right side, 180 its face."""

    every: int = 2
    """Show every n-th frame; 2 gives 25 frames per second."""

    robot: str = "go2"
    """Name of a robot that ships, or a YAML file that describes one (docs/robots.md)."""
    slower: float = 1.0
    """Slow-motion factor: 2 plays at half speed."""

    def run(self) -> int:
        clip = self._load()
        if not self.browser:
            return self._film(clip)
        from keystride.commands.motion.browser import play_in_browser
        from keystride.robot.catalogue import load_robot

        play_in_browser(clip, load_robot(self.robot), self._animal(clip), self.port)
        return 0

    def _film(self, clip: Clip) -> int:
        from imageio_ffmpeg import write_frames

        from keystride.files import part_file

        out = self.out or Path(f"{clip.name}.mp4")
        rate: Any = clip.fps / self.every / self.slower  # the library's hint says int; it takes any number
        with part_file(out) as part:
            writer = write_frames(str(part), self.size, fps=rate, quality=7)
            writer.send(None)
            for image in self._images(clip):
                writer.send(image)
            writer.close()
        print(f"{clip.seconds:.1f} s in {out}")
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
