"""All colours: of plots and reports, which are printed on white, and of the studio's scene and page, dark or light."""

from collections.abc import Mapping
from dataclasses import dataclass

INK, SOFT, GRID, FRAME, PANEL = "#1d2733", "#5b6876", "#e3e8ed", "#b9c2cc", "#f6f8fa"
BLUE, ORANGE, GREEN, PURPLE, RED, TEAL = SERIES = ("#2563c9", "#e08b1b", "#15935b", "#8b4fc6", "#d2453c", "#0b8a9e")


def tint(colour: str, share: float = 0.3) -> str:
    """Return a colour mixed with white, for backgrounds."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in parts)


def css_variables() -> str:
    """Return the colours as custom properties for a page's style sheet: `--ink`, `--soft` and so on."""
    named = {
        "ink": INK,
        "soft": SOFT,
        "grid": GRID,
        "frame": FRAME,
        "panel": PANEL,
        "blue": BLUE,
        "green": GREEN,
        "red": RED,
    }
    named["highlight"] = tint(BLUE, 0.1)
    return f":root {{ {' '.join(f'--{name}: {colour};' for name, colour in named.items())} }}\n"


def outcome_colour(met: bool) -> str:
    return GREEN if met else RED


# The studio's scene.

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
STOP: RGB = (208, 32, 32)


def as_hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def likelihood(share: float) -> RGB:
    """Return red for 0, amber for one half, green for 1, and mixtures between them."""
    low, high, t = (MISSED, ACTIVE, 2 * share) if share < 0.5 else (ACTIVE, MET, 2 * share - 1)
    red, green, blue = (round(a + (b - a) * t) for a, b in zip(low, high, strict=True))
    return red, green, blue


@dataclass(frozen=True)
class Theme:
    """What differs between a dark and a light scene."""

    sky: tuple[RGB, RGB]  # above, at the horizon
    floor: RGB
    cells: RGB
    metres: RGB
    path: RGB
    expected: RGB
    waypoints: RGB


DARK = Theme(
    sky=((20, 23, 30), (52, 60, 74)),
    floor=(34, 37, 43),
    cells=(48, 52, 60),
    metres=(74, 80, 92),
    path=(150, 160, 176),
    expected=(156, 104, 74),
    waypoints=(92, 98, 112),
)
LIGHT = Theme(
    sky=((196, 210, 230), (240, 243, 248)),
    floor=(226, 229, 235),
    cells=(208, 212, 221),
    metres=(176, 183, 196),
    path=(112, 122, 140),
    expected=(150, 88, 52),
    waypoints=(160, 166, 178),
)

# The studio's page: custom properties of its CSS, which charts and tables use too.

_ALWAYS = {
    "coming": as_hex(COMING),
    "active": as_hex(ACTIVE),
    "stop": as_hex(STOP),
    "stop-hover": "#f03030",
    "alert": "#9c2b2b",
    "on-colour": "#ffffff",  # text on a strong colour
    "ink": "#10131a",  # text on a bright colour
    "shadow": "#000000",
}
_DARK_PAGE = _ALWAYS | {
    "bg": "#1c1f25",
    "panel": "#23272f",
    "line": "#343a45",
    "text": "#d6dbe4",
    "dim": "#9aa3b3",
    "button": "#2c313b",
    "edge": "#3b424e",
    "hover": "#383f4b",
    "on": "#2b4674",
    "ruler": "#262b34",
    "tick": "#4a5260",
    "major": "#687284",
    "strong": "#ffffff",
    "accent": "#3472e0",
    "accent-hover": "#5994ff",
    "link": "#86b4ff",
    "head": as_hex(TRACE),
    "bad": "#ff6b6b",
    "good": as_hex(MET),
    "warn": as_hex(ACTIVE),
    "wave": "#5b7fb8",
    "blue": "#6ea8fe",
    "orange": "#f5a462",
}
_LIGHT_PAGE = _ALWAYS | {
    "bg": "#eef0f4",
    "panel": "#ffffff",
    "line": "#c9cfd9",
    "text": INK,
    "dim": "#545d6b",
    "button": "#ffffff",
    "edge": FRAME,
    "hover": "#e3e7ee",
    "on": "#cfe0ff",
    "ruler": "#f4f5f8",
    "tick": "#b3bac6",
    "major": "#8a93a3",
    "strong": "#000000",
    "accent": BLUE,
    "accent-hover": "#4c82dc",
    "link": BLUE,
    "head": "#b84d05",
    "bad": "#c02626",
    "good": "#117a4b",
    "warn": "#8a5a00",
    "wave": "#9db8e3",
    "blue": BLUE,
    "orange": ORANGE,
}

CSS_COLOURS = {  # the colours of plots, as properties of the page that shows them
    "#ffffff": "var(--ks-panel)",
    INK: "var(--ks-text)",
    SOFT: "var(--ks-dim)",
    GRID: "var(--ks-line)",
    FRAME: "var(--ks-edge)",
    BLUE: "var(--ks-blue)",
    ORANGE: "var(--ks-orange)",
    GREEN: "var(--ks-good)",
    RED: "var(--ks-bad)",
}


def page_css() -> str:
    """Return the rules that define the colours of the studio's page; viser names the chosen scheme at the root."""
    return f':root{_block(_DARK_PAGE)}\n:root[data-mantine-color-scheme="light"]{_block(_LIGHT_PAGE)}\n'


def report_css() -> str:
    """Return the rule that defines the same colours for a page printed on white."""
    return f":root{_block(_LIGHT_PAGE)}\n"


def _block(values: Mapping[str, str]) -> str:
    return " { " + " ".join(f"--ks-{name}: {colour};" for name, colour in values.items()) + " }"
