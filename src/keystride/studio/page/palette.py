"""Colours, shared by scene, timeline and tables."""

RGB = tuple[int, int, int]

COMING: RGB = (86, 156, 255)
ACTIVE: RGB = (255, 196, 61)
MET: RGB = (63, 207, 142)
MISSED: RGB = (255, 92, 92)
STATES = {"coming": COMING, "active": ACTIVE, "met": MET, "missed": MISSED}

LIMIT: RGB = (255, 60, 60)
FOOT: RGB = (240, 240, 245)
TURN: RGB = (120, 120, 255)
LIFT: RGB = (90, 200, 255)

PATH: RGB = (150, 160, 176)
TRACE: RGB = (255, 140, 66)
EXPECTED: RGB = (156, 104, 74)
WAYPOINTS: RGB = (92, 98, 112)
OUTLINE: RGB = (206, 212, 224)
OBSTACLE: RGB = (196, 120, 96)
AUDIENCE: RGB = (190, 130, 255)
FLOOR: RGB = (34, 37, 43)
CELLS: RGB = (48, 52, 60)
METRES: RGB = (74, 80, 92)
NUMBERS: RGB = (128, 138, 154)
SKY: tuple[RGB, RGB] = ((20, 23, 30), (52, 60, 74))
BUTTON: RGB = (62, 69, 82)
BRAND: RGB = (64, 132, 255)


def css(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def likelihood(share: float) -> RGB:
    """From red over amber to green."""
    low, high, t = (MISSED, ACTIVE, 2 * share) if share < 0.5 else (ACTIVE, MET, 2 * share - 1)
    red, green, blue = (round(a + (b - a) * t) for a, b in zip(low, high, strict=True))
    return red, green, blue
