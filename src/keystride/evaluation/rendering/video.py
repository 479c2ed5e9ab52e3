"""Render one episode to a video or show it in a window, with keyframes as translucent robots."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.recording import Recording, ghost_poses
from keystride.files import part_file
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.description import Floats, Robot
from keystride.robot.model import SEEN_GROUPS, load_model, load_spec, look

VIDEO_FPS = 25  # every second control step
CAMERA_LAG = 0.25  # s, time constant of the camera that follows the robot
VIDEO_FORMATS: dict[str, dict[str, Any]] = {  # by file extension
    ".mp4": {"codec": "libx264", "quality": 7, "macro_block_size": 2},
    ".gif": {  # for pages that cannot show videos: half the frame rate, half the size, an optimized palette
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
MAX_GEOMS = 20_000  # a robot has several hundred, and every keyframe shown is a robot
MET_COLOUR, MISSED_COLOUR = (0.10, 0.66, 0.40), (0.86, 0.25, 0.21)
FAINT_OPACITY, BRIGHT_OPACITY = 0.06, 0.2  # of each part, long before a keyframe is due and when it is; parts overlap
NEAR = 0.4  # s before or after its time that a keyframe is bright
AHEAD, LINGER = 2, 0.3  # number of upcoming keyframes shown, and seconds that a past one stays
SMALL = 0.047  # m, bounding radius below which shapes other than feet are omitted


def write_video(recording: Recording, path: Path, size: tuple[int, int] = (800, 450)) -> None:
    """Write an MP4 or GIF file, by file extension.

    Raise ModuleNotFoundError without the `video` extra, RuntimeError if off-screen rendering is not available.
    """
    import imageio_ffmpeg

    frames = draw_frames(recording, size)
    first = next(frames)  # before the file is opened, so that none is left behind if rendering fails
    kind = path.suffix.lower()
    with part_file(path) as part:
        writer = imageio_ffmpeg.write_frames(str(part), size, fps=VIDEO_FPS, **VIDEO_FORMATS[kind])
        writer.send(None)
        writer.send(first.tobytes())
        for frame in frames:
            writer.send(frame.tobytes())
        writer.close()


def draw_frames(recording: Recording, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    """Yield images (height, width, 3), 25 per second; the camera follows the robot from the side."""
    width, height = size
    model = _model(recording, size)
    data, ghosts, camera = mujoco.MjData(model), Ghosts(recording), _camera(recording)
    every = round(1 / (VIDEO_FPS * CONTROL_DT))
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
        return mujoco.Renderer(model, height, width, max_geom=MAX_GEOMS)
    except Exception as error:  # platform-specific: no display, no EGL, no OSMesa
        raise RuntimeError(
            "cannot render off screen: install EGL or OSMesa (Debian: apt install libegl1 libgl1-mesa-dri, or libosmesa6), "
            "and set MUJOCO_GL to egl or osmesa if mujoco is imported before keystride"
        ) from error


def _model(recording: Recording, size: tuple[int, int]) -> Any:
    spec = load_spec(recording.robot)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = size
    # Without a graphics card, these decide whether a video takes seconds or minutes.
    spec.visual.quality.offsamples = 2
    spec.visual.quality.numslices, spec.visual.quality.numstacks = 16, 8
    spec.visual.quality.shadowsize = 1024
    return spec.compile()


def _camera(recording: Recording) -> Any:
    """Return a camera at a distance that keeps the next keyframes in view."""
    camera = mujoco.MjvCamera()
    camera.lookat[:] = [*recording.poses[0, :2], 0.2]
    camera.azimuth, camera.elevation, camera.distance = 130.0, -20.0, 1.8
    return camera


def _follow(camera: Any, pose: np.ndarray, seconds: float) -> None:
    share = 1.0 - np.exp(-seconds / CAMERA_LAG)
    camera.lookat[:2] += share * (pose[:2] - camera.lookat[:2])


class Ghosts:
    """The keyframes of a recording as translucent robots; `add` puts those visible at a given time into a scene."""

    def __init__(self, recording: Recording) -> None:
        self._model, self._option = _plain_model(recording.robot), look()
        self._bodies = [_posed(self._model, pose) for pose in ghost_poses(recording)]
        self._times = CONTROL_DT * recording.steps.astype(np.float64)
        self._colours = [MET_COLOUR if met else MISSED_COLOUR for met in recording.met]

    def add(self, scene: Any, time: float) -> None:
        wait = self._times - time
        for k in shown(wait):
            first, dynamic = scene.ngeom, mujoco.mjtCatBit.mjCAT_DYNAMIC.value
            mujoco.mjv_addGeoms(self._model, self._bodies[k], self._option, mujoco.MjvPerturb(), dynamic, scene)
            _tint(scene, first, (*self._colours[k], opacity(wait[k])))


def shown(wait: Floats) -> list[int]:
    """Return the indices of the keyframes to draw, given the seconds until each is due: the next few and any that just passed."""
    coming = [int(k) for k in np.argsort(wait) if wait[k] >= 0][:AHEAD]
    return [*np.flatnonzero((wait < 0) & (wait > -LINGER)).tolist(), *coming]


def opacity(wait: float) -> float:
    """Return the opacity of a keyframe that is due in `wait` seconds."""
    return (FAINT_OPACITY if wait >= 0 else 0.0) + (BRIGHT_OPACITY - FAINT_OPACITY) * float(
        np.exp(-((wait / NEAR) ** 2))
    )


def _plain_model(robot: Robot) -> Any:
    """Return the robot without its small parts, because overlapping translucent shapes look opaque."""
    full, spec = load_model(robot), load_spec(robot)
    seen = [g for g in range(full.ngeom) if full.geom_group[g] in SEEN_GROUPS and full.geom_bodyid[g] > 0]
    small = [g for g in seen if full.geom_rbound[g] < SMALL and full.geom_type[g] != mujoco.mjtGeom.mjGEOM_SPHERE]
    for geom in [spec.geoms[g] for g in small]:
        spec.delete(geom)
    return spec.compile()


def _posed(model: Any, pose: Floats) -> Any:
    data = mujoco.MjData(model)
    data.qpos[:] = pose
    mujoco.mj_forward(model, data)
    return data


def _tint(scene: Any, first: int, rgba: tuple[float, ...]) -> None:
    for i in range(first, scene.ngeom):
        geom = scene.geoms[i]
        geom.matid, geom.emission, geom.specular = -1, 0.15, 0.0
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR.value  # casts no shadow
        geom.transparent = 1
        geom.rgba[:] = rgba


def show_window(recording: Recording) -> None:
    """Play the episode in a loop, in real time, until the window is closed. Needs a display."""
    from mujoco import viewer

    model = load_model(recording.robot)
    data, ghosts = mujoco.MjData(model), Ghosts(recording)
    with viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False) as window:
        window.opt.geomgroup[:] = 0
        window.opt.geomgroup[list(SEEN_GROUPS)] = 1
        step = 0
        while window.is_running():
            began = time.monotonic()
            with window.lock():
                data.qpos[:] = recording.poses[step]
                mujoco.mj_forward(model, data)
                window.cam.lookat[:2] = recording.poses[step, :2]
                window.user_scn.ngeom = 0
                ghosts.add(window.user_scn, step * CONTROL_DT)
            window.sync()
            step = (step + 1) % len(recording.poses)
            time.sleep(max(CONTROL_DT - (time.monotonic() - began), 0.0))
