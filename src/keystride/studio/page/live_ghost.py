"""The robot of a deployment in the scene: its real pose over the plan, and the way of the recorded take."""

import numpy as np
import viser

from keystride.robot.description import Floats
from keystride.studio.page import palette
from keystride.studio.page.meshes import Figure
from keystride.studio.page.scene import ROOT

GHOST_LIFT = 0.008  # m
OPACITY = 0.55


class LiveGhost:
    def __init__(self, client: viser.ClientHandle, figure: Figure) -> None:
        self._client, self._figure = client, figure
        self._bodies: list[viser.MeshHandle] = []
        self._take: viser.LineSegmentsHandle | None = None

    def show_pose(self, position: Floats, orientation: Floats, joints: Floats) -> None:
        """In the frame of the script."""
        with self._client.atomic():
            if not self._bodies:
                self._bodies = [self._body(row) for row in range(len(self._figure.bodies))]
            placed = zip(self._bodies, *self._figure.place(position, orientation, joints), strict=True)
            for handle, where, turned in placed:
                handle.position, handle.wxyz = where, turned

    def hide_pose(self) -> None:
        for handle in self._bodies:
            handle.remove()
        self._bodies = []

    def show_take(self, path: Floats | None) -> None:
        """(n, 2) m; None for no take."""
        if self._take is not None:
            self._take.remove()
            self._take = None
        if path is not None and len(path) > 1:
            points = np.column_stack([path, np.full(len(path), GHOST_LIFT)])
            segments = np.stack([points[:-1], points[1:]], axis=1)
            self._take = self._client.scene.add_line_segments(
                f"{ROOT}/take", segments, colors=palette.TAKE, thickness=0.02
            )

    def _body(self, row: int) -> viser.MeshHandle:
        body = self._figure.bodies[row]
        return self._client.scene.add_mesh_simple(
            f"{ROOT}/live/{body.name}",
            body.outline.vertices,
            body.outline.faces,
            color=palette.TAKE,
            opacity=OPACITY,
            cast_shadow=False,
            receive_shadow=False,
        )
