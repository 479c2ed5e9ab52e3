"""A film of one episode, drawn off screen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.recording import Recording
from keystride.evaluation.rendering.ghosts import Ghosts
from keystride.files import part_file
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.model import load_spec
from keystride.robot.picture import look

FPS = 25  # every second control step
GLIDE = 0.25  # s, time constant of the camera that follows
FORMATS: dict[str, dict[str, Any]] = {  # by the file's ending
    ".mp4": {"codec": "libx264", "quality": 7, "macro_block_size": 2},
    ".gif": {  # for pages that show no films: half the frames, half the size, its own palette
        "codec": "gif",
        "ffmpeg_log_level": "error",
        "pix_fmt_out": "pal8",
        "macro_block_size": 1,
        "output_params": [
            "-vf",
            "fps=12.5,scale=iw/2:-1:flags=area,split[a][b];[a]palettegen=max_colors=96[p];[b][p]paletteuse=dither=none",
        ],
    },
}
GEOMS = 20_000  # a robot is some hundred, and every keyframe is one


def write_video(recording: Recording, path: Path, size: tuple[int, int] = (800, 450)) -> None:
    """An MP4 or GIF file, by its ending. ModuleNotFoundError without the video extra, RuntimeError where nothing can be drawn."""
    import imageio_ffmpeg

    frames = draw_frames(recording, size)
    first = next(frames)  # before the file is opened: without graphics none is left behind
    kind = path.suffix.lower()
    with part_file(path) as part:
        writer = imageio_ffmpeg.write_frames(str(part), size, fps=FPS, **FORMATS[kind])
        writer.send(None)
        writer.send(first.tobytes())
        for frame in frames:
            writer.send(frame.tobytes())
        writer.close()


def draw_frames(recording: Recording, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    """(height, width, 3) 25 a second; the camera follows the robot from its side."""
    width, height = size
    model = _model(recording, size)
    data, ghosts, camera = mujoco.MjData(model), Ghosts(recording), _camera(recording)
    every = round(1 / (FPS * CONTROL_DT))
    with _renderer(model, width, height) as renderer:
        for step in range(0, len(recording.poses), every):
            data.qpos[:] = recording.poses[step]
            mujoco.mj_forward(model, data)
            _follow(camera, recording.poses[step], every * CONTROL_DT)
            renderer.update_scene(data, camera, look())
            ghosts.add(renderer.scene, step * CONTROL_DT)
            yield renderer.render().copy()


def _renderer(model: Any, width: int, height: int) -> Any:
    try:
        return mujoco.Renderer(model, height, width, max_geom=GEOMS)
    except Exception as error:  # the platform's own: no display, no EGL, no OSMesa
        raise RuntimeError(
            "nothing to draw with: MuJoCo finds neither EGL nor OSMesa "
            "(Debian: apt install libegl1 libgl1-mesa-dri, or libosmesa6)"
        ) from error


def _model(recording: Recording, size: tuple[int, int]) -> Any:
    spec = load_spec(recording.robot)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = size
    # Without a graphics card these decide whether a film takes seconds or minutes.
    spec.visual.quality.offsamples = 2
    spec.visual.quality.numslices, spec.visual.quality.numstacks = 16, 8
    spec.visual.quality.shadowsize = 1024
    return spec.compile()


def _camera(recording: Recording) -> Any:
    """From the side on which the path goes on, at a distance that keeps near keyframes in view."""
    camera = mujoco.MjvCamera()
    camera.lookat[:] = [*recording.poses[0, :2], 0.2]
    camera.azimuth, camera.elevation, camera.distance = 130.0, -20.0, 1.8
    return camera


def _follow(camera: Any, pose: np.ndarray, seconds: float) -> None:
    share = 1.0 - np.exp(-seconds / GLIDE)
    camera.lookat[:2] += share * (pose[:2] - camera.lookat[:2])
