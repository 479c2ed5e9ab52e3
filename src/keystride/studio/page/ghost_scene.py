"""The ghosts: a translucent robot for each keyframe, which can be clicked and dragged, and handles on the selected one."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import trimesh
import viser

from keystride import colours, geometry
from keystride.studio.document.keyframe_poses import Ghost
from keystride.studio.document.posing import ghost_feet, legs_at_limits
from keystride.studio.page import handles
from keystride.studio.page.figure import Figure
from keystride.studio.page.handles import Grab, Move, Ray
from keystride.studio.page.scene import ROOT, Scene

OPEN = 0.12  # opacity of the legs if the posture is open
SHADE = {False: 0.34, True: 0.62}  # opacity, by whether the ghost is selected
CLOSE = 0.25  # m; ghosts closer than this share a label
ABOVE = 0.24  # m from the base to the label
NEARBY = 14  # number of ghosts drawn, the nearest in time to the selected one
DOUBLE_CLICK = 3.0  # s; the browser knows what a double click is, but its messages may be late


@dataclass(frozen=True)
class Caption:
    """The label above a ghost, and the state that determines its colour."""

    text: str
    state: str


@dataclass(frozen=True)
class Actions:
    """Callbacks for what the user does to ghosts."""

    clicked: Callable[[int], None]
    moved: Callable[[Move | None], None]  # None at the end of a drag


class GhostScene:
    def __init__(self, client: viser.ClientHandle, figure: Figure, scene: Scene, actions: Actions) -> None:
        self._client, self._figure, self._scene, self._actions = client, figure, scene, actions
        self._bodies: list[viser.BatchedMeshHandle] = []
        self._labels: dict[int, viser.LabelHandle] = {}
        self._ghosts: dict[int, Ghost] = {}
        self._keys: tuple[int, ...] = ()
        self._selected: int | None = None
        self._grab: Grab | None = None
        self._shown = True
        self._last_click: tuple[int | None, float] = (None, 0.0)
        self._handles = self._add_handles()

    def show(self, ghosts: Mapping[int, Ghost], captions: Mapping[int, Caption], selected: int | None) -> None:
        """Draw the ghosts around the selected keyframe, with labels and handles."""
        near = nearby(tuple(ghosts), selected, captions)
        with self._client.atomic():
            self._ghosts, self._selected = {key: ghosts[key] for key in near}, selected
            if near != self._keys:
                self._rebuild(near)
            if self._ghosts:
                self._pose()
                self._colour(captions)
            self._caption(captions)
            self._place_handles()

    def set_visible(self, on: bool) -> None:
        self._shown = on
        for handle in (*self._bodies, *self._labels.values()):
            handle.visible = on
        self._place_handles()

    @property
    def clicked(self) -> int | None:
        """Return the keyframe whose ghost or handle was clicked just now."""
        key, when = self._last_click
        return key if time.monotonic() - when < DOUBLE_CLICK else None

    def _add_handles(self) -> dict[str, viser.MeshHandle]:
        ring = trimesh.creation.torus(handles.RING_RADIUS, handles.RING_TUBE, major_sections=48, minor_sections=10)
        shaft = trimesh.creation.cylinder(handles.ARROW_RADIUS / 2, handles.ARROW_TO - handles.ARROW_FROM, sections=12)
        shaft.apply_translation([0.0, 0.0, (handles.ARROW_FROM + handles.ARROW_TO) / 2])
        tip = trimesh.creation.cone(1.6 * handles.ARROW_RADIUS, 0.12, sections=16)
        tip.apply_translation([0.0, 0.0, handles.ARROW_TO])
        arrow = trimesh.util.concatenate([shaft, tip])
        foot = trimesh.creation.icosphere(2, handles.FOOT_RADIUS)
        meshes = {"yaw": (ring, colours.TURN_HANDLE), "height": (arrow, colours.LIFT)}
        meshes |= {name: (foot, colours.FOOT) for name in handles.FEET}
        added = {}
        for name, (mesh, rgb) in meshes.items():
            handle = self._client.scene.add_mesh_simple(
                f"{ROOT}/handles/{name}",
                np.asarray(mesh.vertices),
                np.asarray(mesh.faces),
                color=rgb,
                opacity=0.85,
                cast_shadow=False,
                receive_shadow=False,
                visible=False,
            )
            handle.on_click(self._on_handle_click)
            handle.on_drag(self._on_drag)
            added[name] = handle
        return added

    def _rebuild(self, keys: tuple[int, ...]) -> None:
        for handle in self._bodies:
            handle.remove()
        self._keys, count = keys, len(keys)
        self._bodies = [
            self._client.scene.add_batched_meshes_simple(
                f"{ROOT}/ghosts/{body.name}",
                body.outline.vertices,
                body.outline.faces,
                np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
                np.zeros((count, 3)),
                batched_colors=np.zeros((count, 3), dtype=np.uint8),
                batched_opacities=np.ones(count),
                opacity=0.999,  # below 1; otherwise viser ignores the opacities of the instances
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
                visible=self._shown,
            )
            for body in (self._figure.bodies if keys else ())
        ]
        for handle in self._bodies:
            handle.on_click(self._on_click)
            handle.on_drag(self._on_drag)

    def _pose(self) -> None:
        placed = [
            self._figure.place(ghost.position, ghost.orientation, ghost.joints) for ghost in self._ghosts.values()
        ]
        for body, handle in enumerate(self._bodies):
            handle.batched_positions = np.array([positions[body] for positions, _ in placed], dtype=np.float32)
            handle.batched_wxyzs = np.array([orientations[body] for _, orientations in placed], dtype=np.float32)

    def _colour(self, captions: Mapping[int, Caption]) -> None:
        """Colour the ghosts by state; legs of the selected one that are at a joint limit are red."""
        own_colours = np.array([colours.KEYFRAME_COLOURS[captions[key].state] for key in self._ghosts], dtype=np.uint8)
        shade = np.array([SHADE[key == self._selected] for key in self._ghosts], dtype=np.float32)
        posed = np.array([ghost.posed for ghost in self._ghosts.values()])
        chosen = next((row for row, key in enumerate(self._ghosts) if key == self._selected), None)
        ghost = self._ghosts.get(self._selected) if self._selected is not None else None
        limits = zip(ghost.robot.leg_names, legs_at_limits(ghost), strict=True) if ghost else ()
        stuck = {leg for leg, at_limit in limits if at_limit}
        for body, handle in zip(self._figure.bodies, self._bodies, strict=True):
            own = own_colours.copy()
            if chosen is not None and posed[chosen] and body.name.split("_")[0] in stuck:
                own[chosen] = colours.LIMIT
            handle.batched_colors = own
            handle.batched_opacities = np.where(posed | (not body.is_leg), shade, OPEN).astype(np.float32)

    def _caption(self, captions: Mapping[int, Caption]) -> None:
        """Label the ghosts. Those in the same place share a label, as two would overlap."""
        groups = together(self._ghosts)
        for key in [key for key in self._labels if key not in groups]:
            self._labels.pop(key).remove()
        for key, group in groups.items():
            label = self._labels.get(key)
            if label is None:
                label = self._labels[key] = self._client.scene.add_label(
                    f"{ROOT}/captions/{key}", "", anchor="bottom-center", font_screen_scale=0.85, visible=self._shown
                )
            label.text = "   ".join(captions[each].text for each in group)
            label.position = self._ghosts[key].position + np.array([0.0, 0.0, ABOVE])

    def _place_handles(self) -> None:
        ghost = self._ghosts.get(self._selected) if self._selected is not None else None
        for handle in self._handles.values():
            handle.visible = ghost is not None and self._shown
        if ghost is None:
            return
        self._handles["yaw"].position = self._handles["height"].position = ghost.position
        self._handles["yaw"].wxyz = geometry.from_yaw(ghost.angles[2])
        limits = legs_at_limits(ghost)
        for name, foot, at_limit in zip(handles.FEET, ghost_feet(ghost), limits, strict=True):
            self._handles[name].position = foot
            self._handles[name].color = colours.LIMIT if at_limit and ghost.posed else colours.FOOT

    # Coroutines keep the order of events; functions would run in a pool of threads.

    async def _on_click(self, event: viser.SceneNodePointerEvent) -> None:
        if event.instance_index is None or event.instance_index >= len(self._keys):
            return
        key = self._keys[event.instance_index]
        self._last_click = (key, time.monotonic())
        self._actions.clicked(key)

    async def _on_handle_click(self, event: viser.SceneNodePointerEvent) -> None:
        """Count it as a click on the selected ghost: the first click of two has brought the handles under the pointer."""
        self._last_click = (self._selected, time.monotonic())

    async def _on_drag(self, event: viser.SceneNodeDragEvent) -> None:
        if event.phase == "end":
            self._grab = None
            self._actions.moved(None)
            return
        point = self._scene.to_stage(np.array(event.end_position))
        ray = Ray.through(self._scene.to_stage(np.array(event.client.camera.position)), point)
        if event.phase == "start":
            self._grab = self._grabbed(event, ray)
        elif self._grab is not None:
            self._actions.moved(self._grab.move(ray, point))

    def _grabbed(self, event: viser.SceneNodeDragEvent, ray: Ray) -> Grab | None:
        """Return what was grabbed: the handle in front, or one of the selected ghost behind a ghost, or else a ghost."""
        point = self._scene.to_stage(np.array(event.start_position))
        start = Ray.through(ray.origin, point)
        chosen = self._ghosts.get(self._selected) if self._selected is not None else None
        name = event.target.name.rsplit("/", 1)[-1]
        handle = name if name in self._handles else None
        if handle is None and chosen is not None and self._shown:
            handle = handles.pick(chosen, start)
        if handle is not None and chosen is not None and self._selected is not None:
            return Grab(handle, self._selected, chosen, point, start)
        row = event.instance_index
        if row is None or row >= len(self._keys):
            return None
        key = self._keys[row]
        self._actions.clicked(key)
        return Grab("ground", key, self._ghosts[key], point, start)


def nearby(keys: tuple[int, ...], selected: int | None, captions: Mapping[int, Caption]) -> tuple[int, ...]:
    """Return the keys around the selected keyframe, or else around the next one to be met."""
    if len(keys) <= NEARBY:
        return keys
    active = next((row for row, key in enumerate(keys) if captions[key].state == "active"), 0)
    centre = keys.index(selected) if selected in keys else active
    first = min(max(centre - NEARBY // 2, 0), len(keys) - NEARBY)
    return keys[first : first + NEARBY]


def together(ghosts: Mapping[int, Ghost]) -> dict[int, list[int]]:
    """Group the keys of ghosts in the same place, by the first key of each group."""
    groups: dict[int, list[int]] = {}
    for key, ghost in ghosts.items():
        near = (first for first in groups if np.linalg.norm(ghost.position - ghosts[first].position) < CLOSE)
        groups.setdefault(next(near, key), []).append(key)
    return groups
