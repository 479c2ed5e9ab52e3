"""Keyframes as translucent robots in a MuJoCo scene."""

from typing import Any

import mujoco
import numpy as np

from keystride.evaluation.recording import Recording, ghost_poses
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.picture import look

MET_COLOUR, MISSED_COLOUR = (0.10, 0.66, 0.40), (0.86, 0.25, 0.21)
FAINT, BRIGHT = 0.10, 0.22  # opacity of each part long before a keyframe's time and at it; parts overlap
NEAR = 0.5  # s
SHOWN = (-0.6, 3.0)  # s until it is due: others are left out, since every ghost takes as long to draw as the robot


class Ghosts:
    """The keyframes of a recording, posed once; `add` puts them into a scene as they are at a moment."""

    def __init__(self, model: Any, recording: Recording) -> None:
        self._model, self._option = model, look()
        self._bodies = [_posed(model, pose) for pose in ghost_poses(recording)]
        self._times = recording.steps * CONTROL_DT
        self._colours = [MET_COLOUR if met else MISSED_COLOUR for met in recording.met]

    def add(self, scene: Any, time: float) -> None:
        wait = self._times - time
        for k in np.flatnonzero((wait > SHOWN[0]) & (wait < SHOWN[1])):
            first = scene.ngeom
            mujoco.mjv_addGeoms(
                self._model,
                self._bodies[k],
                self._option,
                mujoco.MjvPerturb(),
                mujoco.mjtCatBit.mjCAT_DYNAMIC.value,
                scene,
            )
            _tint(scene, first, (*self._colours[k], opacity(wait[k])))


def opacity(wait: float) -> float:
    """Of a keyframe that is due in so many seconds."""
    return (FAINT if wait >= 0 else FAINT / 2) + (BRIGHT - FAINT) * float(np.exp(-((wait / NEAR) ** 2)))


def _posed(model: Any, pose: np.ndarray) -> Any:
    data = mujoco.MjData(model)
    data.qpos[:] = pose
    mujoco.mj_forward(model, data)
    return data


def _tint(scene: Any, first: int, rgba: tuple[float, ...]) -> None:
    for i in range(first, scene.ngeom):
        geom = scene.geoms[i]
        geom.matid, geom.emission, geom.specular = -1, 0.3, 0.0
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR.value  # else it would throw a shadow
        geom.transparent = 1
        geom.rgba[:] = rgba
