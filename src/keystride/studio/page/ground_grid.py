"""The ground, a grid of metres with numbers on it, drawn as strokes so that they lie flat; and the sky over it."""

import numpy as np
import viser
from numpy.typing import NDArray

from keystride.robot.description import Floats
from keystride.studio.page import palette

GRID_REACH = 12  # m, numbered each way
DIGIT = 0.11  # m, height of a digit

# The strokes of a digit, from corner to corner of a box that is 1 wide and 2 high.
STROKES = {
    "a": ((0, 2), (1, 2)),
    "b": ((1, 2), (1, 1)),
    "c": ((1, 1), (1, 0)),
    "d": ((0, 0), (1, 0)),
    "e": ((0, 1), (0, 0)),
    "f": ((0, 2), (0, 1)),
    "g": ((0, 1), (1, 1)),
    "h": ((0.5, 1.6), (1, 2)),  # of the one: without it, it is a mere stroke
}
DIGIT_SEGMENTS = {
    "0": "abcdef",
    "1": "hbc",
    "2": "abged",
    "3": "abgcd",
    "4": "fgbc",
    "5": "afgcd",
    "6": "afgedc",
    "7": "abc",
    "8": "abcdefg",
    "9": "abcdfg",
    "-": "g",
}


def add_floor(scene: viser.SceneApi, root: str, theme: palette.Theme) -> None:
    """Add the ground, or replace the one that is there."""
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
    scene.add_line_segments(f"{root}/metres", numbers(), colors=theme.numbers, thickness=0.008)


def sky(theme: palette.Theme) -> NDArray[np.uint8]:
    """(64, 2, 3) a picture to stand behind everything: a little lighter towards the ground."""
    top, bottom = (np.array(colour) for colour in theme.sky)
    shade = np.linspace(top, bottom, 64).round().astype(np.uint8)  # (64, 3)
    return np.repeat(shade[:, None], 2, axis=1)


def numbers() -> Floats:
    """(N, 2, 3) the strokes of the metres along both axes."""
    along = [metre for metre in range(-GRID_REACH, GRID_REACH + 1) if metre]
    places = [(metre, 0) for metre in along] + [(0, metre) for metre in along]
    return np.concatenate([written(str(x + y), x, y) for x, y in places])


def written(text: str, x: float, y: float) -> Floats:
    """(N, 2, 3) a number on the ground beside a crossing of lines, to be read when looking along x."""
    lines = [
        [(1.6 * column + right, up) for right, up in STROKES[stroke]]
        for column, digit in enumerate(text)
        for stroke in DIGIT_SEGMENTS[digit]
    ]
    right, up = np.moveaxis(np.array(lines) * DIGIT / 2, -1, 0)  # (N, 2) each
    return np.stack([x + 0.04 + up, y - 0.04 - right, np.full_like(up, 0.001)], axis=-1)
