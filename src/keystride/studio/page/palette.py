"""Colours, shared by scene, timeline and tables."""

from dataclasses import dataclass

RGB = tuple[int, int, int]

COMING: RGB = (86, 156, 255)
ACTIVE: RGB = (255, 196, 61)
MET: RGB = (63, 207, 142)
MISSED: RGB = (255, 92, 92)
KEYFRAME_COLOURS = {"coming": COMING, "active": ACTIVE, "met": MET, "missed": MISSED}

LIMIT: RGB = (255, 60, 60)
FOOT: RGB = (240, 240, 245)
TURN_HANDLE: RGB = (120, 120, 255)
LIFT: RGB = (90, 200, 255)

TRACE: RGB = (255, 140, 66)
OUTLINE: RGB = (118, 142, 184)
OBSTACLE: RGB = (196, 120, 96)
AUDIENCE: RGB = (190, 130, 255)
TAKE: RGB = (40, 200, 190)
BUTTON: RGB = (62, 69, 82)
BRAND: RGB = (64, 132, 255)


@dataclass(frozen=True)
class Theme:
    """What differs between a dark and a light scene."""

    sky: tuple[RGB, RGB]  # above, at the horizon
    floor: RGB
    cells: RGB
    metres: RGB
    numbers: RGB
    path: RGB
    expected: RGB
    waypoints: RGB


DARK = Theme(
    sky=((20, 23, 30), (52, 60, 74)),
    floor=(34, 37, 43),
    cells=(48, 52, 60),
    metres=(74, 80, 92),
    numbers=(128, 138, 154),
    path=(150, 160, 176),
    expected=(156, 104, 74),
    waypoints=(92, 98, 112),
)
LIGHT = Theme(
    sky=((196, 210, 230), (240, 243, 248)),
    floor=(226, 229, 235),
    cells=(208, 212, 221),
    metres=(176, 183, 196),
    numbers=(104, 112, 128),
    path=(112, 122, 140),
    expected=(150, 88, 52),
    waypoints=(160, 166, 178),
)


def css(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def likelihood(share: float) -> RGB:
    """From red over amber to green."""
    low, high, t = (MISSED, ACTIVE, 2 * share) if share < 0.5 else (ACTIVE, MET, 2 * share - 1)
    red, green, blue = (round(a + (b - a) * t) for a, b in zip(low, high, strict=True))
    return red, green, blue
