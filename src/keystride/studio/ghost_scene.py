"""The keyframes on the stage: translucent robots that can be clicked, and a gizmo on the selected one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import viser

from keystride import geometry
from keystride.robot.description import Floats
from keystride.studio import palette
from keystride.studio.ghosts import Ghost
from keystride.studio.scene import ROOT
from keystride.studio.shapes import Figure

OPEN = 0.12  # opacity of legs whose posture is left open
SHADE = {False: 0.34, True: 0.62}  # opacity, by whether it is selected
CLOSE = 0.25  # m
ABOVE = 0.24  # m, of the label over the base
LINE = 0.09  # m, between captions of ghosts that stand in the same place
GIZMO = 0.58  # m: its arrows reach out of the robot, whose own shape would catch the mouse


@dataclass(frozen=True)
class Caption:
    """What is told about a ghost: its state gives the colour."""

    text: str
    state: str


@dataclass(frozen=True)
class Pull:
    """What a gizmo says: a place on the ground and a heading, or a height."""

    ground: Floats | None = None  # (2,) m
    yaw: float | None = None  # rad
    height: float | None = None  # m


Dragged = Callable[[Pull, str], None]  # where the gizmo is now, and the phase of the gesture


class GhostScene:
    def __init__(
        self, client: viser.ClientHandle, figure: Figure, clicked: Callable[[int], None], dragged: Dragged
    ) -> None:
        self._client, self._figure = client, figure
        self._clicked, self._dragged = clicked, dragged
        self._handles: list[viser.BatchedMeshHandle] = []
        self._labels: dict[int, viser.LabelHandle] = {}
        self._keys: tuple[int, ...] = ()
        self._held: viser.TransformControlsHandle | None = None
        self._shown = True
        # With x and y alone a gizmo keeps its two arrows, the square between them, and the ring about z.
        self._ground = client.scene.add_transform_controls(
            f"{ROOT}/ground", scale=GIZMO, active_axes=(True, True, False), depth_test=False, visible=False
        )
        self._height = client.scene.add_transform_controls(
            f"{ROOT}/height", scale=GIZMO, active_axes=(False, False, True), depth_test=False, visible=False
        )
        self._ground.on_update(self._on_ground)
        self._height.on_update(self._on_height)

    def show(self, ghosts: Mapping[int, Ghost], captions: Mapping[int, Caption], selected: int | None) -> None:
        """All of them; colours and gizmo included."""
        with self._client.atomic():
            if tuple(ghosts) != self._keys:
                self._rebuild(tuple(ghosts))
            if ghosts:
                self._pose(ghosts)
                self._colour(ghosts, captions, selected)
            self._caption(ghosts, captions)
            self._place_gizmo(ghosts.get(selected) if selected is not None else None)

    def set_visible(self, on: bool) -> None:
        self._shown = on
        for handle in (*self._handles, *self._labels.values()):
            handle.visible = on
        if not on:
            self._ground.visible = self._height.visible = False

    def _rebuild(self, keys: tuple[int, ...]) -> None:
        for handle in self._handles:
            handle.remove()
        self._keys, count = keys, len(keys)
        self._handles = [
            self._client.scene.add_batched_meshes_simple(
                f"{ROOT}/ghosts/{body.name}",
                body.outline.vertices,
                body.outline.faces,
                np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
                np.zeros((count, 3)),
                batched_colors=np.zeros((count, 3), dtype=np.uint8),
                batched_opacities=np.ones(count),
                opacity=0.999,  # below one, or the instances' own opacities are not drawn
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
            )
            for body in (self._figure.bodies if keys else ())
        ]
        for handle in self._handles:
            handle.on_click(self._on_click)

    def _pose(self, ghosts: Mapping[int, Ghost]) -> None:
        placed = [self._figure.place(ghost.position, ghost.orientation, ghost.joints) for ghost in ghosts.values()]
        for body, handle in enumerate(self._handles):
            handle.batched_positions = np.array([positions[body] for positions, _ in placed], dtype=np.float32)
            handle.batched_wxyzs = np.array([orientations[body] for _, orientations in placed], dtype=np.float32)

    def _colour(self, ghosts: Mapping[int, Ghost], captions: Mapping[int, Caption], selected: int | None) -> None:
        colours = np.array([palette.STATES[captions[key].state] for key in ghosts], dtype=np.uint8)
        shade = np.array([SHADE[key == selected] for key in ghosts], dtype=np.float32)
        posed = np.array([ghost.posed for ghost in ghosts.values()])
        for body, handle in zip(self._figure.bodies, self._handles, strict=True):
            handle.batched_colors = colours
            handle.batched_opacities = np.where(posed | (not body.is_leg), shade, OPEN).astype(np.float32)

    def _caption(self, ghosts: Mapping[int, Ghost], captions: Mapping[int, Caption]) -> None:
        for key in [key for key in self._labels if key not in ghosts]:
            self._labels.pop(key).remove()
        for key, ghost in ghosts.items():
            label = self._labels.get(key)
            if label is None:
                label = self._labels[key] = self._client.scene.add_label(
                    f"{ROOT}/captions/{key}", "", anchor="bottom-center", font_screen_scale=0.85
                )
            label.text = captions[key].text
            label.position = ghost.position + np.array([0.0, 0.0, ABOVE + LINE * _under(ghosts, key)])

    def _place_gizmo(self, ghost: Ghost | None) -> None:
        self._ground.visible = self._height.visible = ghost is not None and self._shown
        if ghost is None:
            return
        if self._held is not self._ground:  # whoever holds it knows better where it is
            self._ground.position = ghost.position
            self._ground.wxyz = geometry.from_yaw(ghost.angles[2])
        if self._held is not self._height:
            self._height.position = ghost.position

    # Coroutines keep the order of events; functions would run in a pool of threads.
    async def _on_click(self, event: viser.SceneNodePointerEvent) -> None:
        if event.instance_index is not None and event.instance_index < len(self._keys):
            self._clicked(self._keys[event.instance_index])

    async def _on_ground(self, event: viser.TransformControlsEvent) -> None:
        self._held = self._ground if event.phase != "end" else None
        yaw = float(geometry.yaw_of(np.array(self._ground.wxyz)))
        self._dragged(Pull(ground=np.array(self._ground.position[:2]), yaw=yaw), event.phase)

    async def _on_height(self, event: viser.TransformControlsEvent) -> None:
        self._held = self._height if event.phase != "end" else None
        self._dragged(Pull(height=float(self._height.position[2])), event.phase)


def _under(ghosts: Mapping[int, Ghost], key: int) -> int:
    """How many earlier ghosts stand where this one does."""
    earlier = [ghosts[other] for other in ghosts if other < key]
    return sum(bool(np.linalg.norm(ghosts[key].position[:2] - ghost.position[:2]) < CLOSE) for ghost in earlier)
