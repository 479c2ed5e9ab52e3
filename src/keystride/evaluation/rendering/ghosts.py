"""Keyframes as translucent robots in a MuJoCo scene."""

from typing import Any

import mujoco
import numpy as np

from keystride.evaluation.recording import Recording, ghost_poses
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.description import Floats, Robot
from keystride.robot.model import load_model, load_spec
from keystride.robot.picture import SEEN_GROUPS, look

MET_COLOUR, MISSED_COLOUR = (0.10, 0.66, 0.40), (0.86, 0.25, 0.21)
FAINT, BRIGHT = 0.06, 0.2  # opacity of each part long before a keyframe's time and at it; parts overlap
NEAR = 0.4  # s
AHEAD, LINGER = 2, 0.3  # keyframes to come that are shown, and seconds for which a past one is
SMALL = 0.047  # m: shapes that fit into a ball of this radius are left out, but for the feet


class Ghosts:
    """The keyframes of a recording, posed once; `add` puts those of a moment into a scene."""

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
    """Of keyframes that are due in so many seconds, those that are drawn: all at once would be a crowd."""
    coming = [int(k) for k in np.argsort(wait) if wait[k] >= 0][:AHEAD]
    return [*np.flatnonzero((wait < 0) & (wait > -LINGER)).tolist(), *coming]


def opacity(wait: float) -> float:
    return (FAINT if wait >= 0 else 0.0) + (BRIGHT - FAINT) * float(np.exp(-((wait / NEAR) ** 2)))


def _plain_model(robot: Robot) -> Any:
    """The robot without its small parts: where translucent shapes overlap, they turn opaque."""
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
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR.value  # else it would throw a shadow
        geom.transparent = 1
        geom.rgba[:] = rgba
