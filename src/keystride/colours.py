"""The colours of all plots and reports, which are printed on white. The studio's 3D scene has its own (`studio.page.palette`)."""

INK, SOFT, GRID, FRAME, PANEL = "#1d2733", "#5b6876", "#e3e8ed", "#b9c2cc", "#f6f8fa"
BLUE, ORANGE, GREEN, PURPLE, RED, TEAL = SERIES = ("#2563c9", "#e08b1b", "#15935b", "#8b4fc6", "#d2453c", "#0b8a9e")


def tint(colour: str, share: float = 0.3) -> str:
    """Return a colour mixed with white, for backgrounds."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in parts)


def outcome_colour(met: bool) -> str:
    return GREEN if met else RED
