"""The stage of a script in the scene: the floor's outline, obstacles as low walls, and where the audience is."""

import numpy as np
import viser
from numpy.typing import NDArray

from keystride.keyframes.script import Stage
from keystride.keyframes.stage import outline
from keystride.robot.description import Floats
from keystride.studio.page import palette
from keystride.studio.page.scene import ROOT

WALL = 0.25  # m
STAGE_LIFT = 0.006  # m, above the lines of the path


class StageShapes:
    def __init__(self, client: viser.ClientHandle) -> None:
        self._client = client
        self._shown: Stage | None = None
        self._handles: list[viser.SceneNodeHandle] = []

    def show(self, stage: Stage | None) -> None:
        if stage is self._shown:
            return
        for handle in self._handles:
            handle.remove()
        self._shown, self._handles = stage, []
        if stage is not None:
            with self._client.atomic():
                self._add(stage)

    def _add(self, stage: Stage) -> None:
        if stage.floor is not None:
            self._line("floor", outline(stage.floor), palette.OUTLINE, 0.02)
        for number, obstacle in enumerate(stage.obstacles, start=1):
            vertices, faces = wall(obstacle.outline)
            mesh = self._client.scene.add_mesh_simple(
                f"{ROOT}/obstacles/{number}",
                vertices,
                faces,
                color=palette.OBSTACLE,
                opacity=0.5,
                side="double",
                cast_shadow=False,
            )
            self._handles.append(mesh)
            self._line(f"obstacles/outline {number}", outline(obstacle.outline), palette.OBSTACLE, 0.012)
            self._label(f"obstacle {number}", obstacle.label or "", obstacle.outline.mean(axis=0))
        if stage.audience is not None:
            ends = np.array(stage.audience)
            self._line("audience", ends[None], palette.AUDIENCE, 0.05)
            self._label("audience", "audience", ends.mean(axis=0))

    def _line(self, name: str, segments: Floats, colour: palette.RGB, thickness: float) -> None:
        """(N, 2, 2) on the ground."""
        raised = np.concatenate([segments, np.full((*segments.shape[:2], 1), STAGE_LIFT)], axis=2)
        scene = self._client.scene
        self._handles.append(
            scene.add_line_segments(f"{ROOT}/shapes/{name}", raised, colors=colour, thickness=thickness)
        )

    def _label(self, name: str, text: str, place: Floats) -> None:
        if text:
            position = (float(place[0]), float(place[1]), WALL + 0.05)
            label = self._client.scene.add_label(f"{ROOT}/shapes/label {name}", text, position=position)
            self._handles.append(label)


def wall(corners: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices (2N, 3) and faces (2N, 3) of an upright wall along the outline (N, 2) of an obstacle."""
    count = len(corners)
    low, high = (np.column_stack([corners, np.full(count, height)]) for height in (0.0, WALL))
    here, after = np.arange(count), (np.arange(count) + 1) % count
    halves = [np.column_stack([here, after, after + count]), np.column_stack([here, after + count, here + count])]
    return np.concatenate([low, high]), np.concatenate(halves)
