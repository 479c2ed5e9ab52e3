"""The ground with a grid numbered in metres, the sky, and the stage of a script: floor, obstacles, audience."""

import numpy as np
import viser
from numpy.typing import NDArray

from keystride import colours
from keystride.keyframes.stage import Stage, outline
from keystride.robot.description import Floats

ROOT = "/stage"  # parent of all nodes; moving it follows the robot and leaves the camera to the user
NUMBERED = (1, 2, 3, 4, 5, 6, 8, 10, 12)  # m from the start along both axes, in both directions
LABEL_LIFT = 0.03  # m above the ground
WALL = 0.25  # m, height of obstacles
STAGE_LIFT = 0.006  # m, above the path


def add_floor(scene: viser.SceneApi, root: str, theme: colours.Theme) -> None:
    """Add or replace the ground."""
    scene.add_grid(
        f"{root}/floor",
        infinite_grid=True,
        cell_size=0.25,
        cell_color=theme.cells,
        section_size=1.0,
        section_color=theme.metres,
        fade_distance=40.0,
        plane_color=theme.floor,
        plane_opacity=1.0,
        shadow_opacity=0.35,
        position=(0.0, 0.0, -0.002),
    )


def add_numbers(scene: viser.SceneApi, root: str) -> None:
    """Write the metres along both axes. Labels face the camera and keep their size, so they can be read from everywhere."""
    for text, position in numbers().items():
        scene.add_label(
            f"{root}/metres/{text}",
            text,
            position=position,
            anchor="center-center",
            font_screen_scale=0.8,
            depth_test=True,
        )


def sky(theme: colours.Theme) -> NDArray[np.uint8]:
    """Return a background image (64, 2, 3) with a vertical gradient."""
    top, bottom = (np.array(colour) for colour in theme.sky)
    shade = np.linspace(top, bottom, 64).round().astype(np.uint8)  # (64, 3)
    return np.repeat(shade[:, None], 2, axis=1)


def numbers() -> dict[str, tuple[float, float, float]]:
    """Return the labels of the axes and their places."""
    along = sorted([*NUMBERED, *(-metre for metre in NUMBERED)])
    places = {f"x {metre} m": (float(metre), 0.0, LABEL_LIFT) for metre in along}
    return places | {f"y {metre} m": (0.0, float(metre), LABEL_LIFT) for metre in along}


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
            self._line("floor", outline(stage.floor), colours.OUTLINE, 0.02)
        for number, obstacle in enumerate(stage.obstacles, start=1):
            vertices, faces = wall(obstacle.outline)
            mesh = self._client.scene.add_mesh_simple(
                f"{ROOT}/obstacles/{number}",
                vertices,
                faces,
                color=colours.OBSTACLE,
                opacity=0.5,
                side="double",
                cast_shadow=False,
            )
            self._handles.append(mesh)
            self._line(f"obstacles/outline {number}", outline(obstacle.outline), colours.OBSTACLE, 0.012)
            self._label(f"obstacle {number}", obstacle.label or "", obstacle.outline.mean(axis=0))
        if stage.audience is not None:
            ends = np.array(stage.audience)
            self._line("audience", ends[None], colours.AUDIENCE, 0.05)
            self._label("audience", "audience", ends.mean(axis=0))

    def _line(self, name: str, segments: Floats, colour: colours.RGB, thickness: float) -> None:
        """Draw segments (N, 2, 2) on the ground."""
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
    """Return vertices (2N, 3) and faces (2N, 3) of an upright wall along the outline (N, 2) of an obstacle."""
    count = len(corners)
    low, high = (np.column_stack([corners, np.full(count, height)]) for height in (0.0, WALL))
    here, after = np.arange(count), (np.arange(count) + 1) % count
    halves = [np.column_stack([here, after, after + count]), np.column_stack([here, after + count, here + count])]
    return np.concatenate([low, high]), np.concatenate(halves)
