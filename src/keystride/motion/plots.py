"""Small plots as SVG text: lines, bars over time, and a band of tags."""

from collections.abc import Sequence
from html import escape

import numpy as np

from keystride.colours import BLUE, FRAME, GREEN, INK, ORANGE, PANEL, PURPLE, RED, SOFT, TEAL, tint
from keystride.motion.signals import Flags, stretches
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats

PLOT_WIDTH = 860  # px, of the plotted time
LABEL_WIDTH = 56  # px, for the labels
MOST_POINTS = 430  # a line: more would not show

LEG_COLOURS = (BLUE, RED, GREEN, ORANGE)  # front left, front right, rear left, rear right
TAG_COLOURS = {
    "stand": tint(SOFT),
    "walk": tint(BLUE, 0.3),
    "trot": tint(BLUE, 0.65),
    "canter": BLUE,
    "turn": tint(PURPLE, 0.5),
    "jump": RED,
    "sit": tint(ORANGE, 0.45),
    "lie": tint(GREEN, 0.45),
    "rear": tint(RED, 0.45),
    "paw_up": tint(TEAL, 0.5),
}
OTHER_TAGS = tint(SOFT, 0.15)  # a library may have tags of its own
DARK_TAGS = ("trot", "canter", "jump")


def paper_of(tag: str) -> str:
    return TAG_COLOURS.get(tag, OTHER_TAGS)


def ink_on(tag: str) -> str:
    return "#ffffff" if tag in DARK_TAGS else INK


def svg(rows: Sequence[tuple[str, int]]) -> str:
    """One drawing from (content, height) rows, put under each other."""
    parts, top = [], 0
    for content, height in rows:
        parts.append(f'<g transform="translate({LABEL_WIDTH},{top})">{content}</g>')
        top += height
    size = f'width="{LABEL_WIDTH + PLOT_WIDTH + 8}" height="{top}" viewBox="0 0 {LABEL_WIDTH + PLOT_WIDTH + 8} {top}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'


def lines(values: Floats, colours: Sequence[str], label: str, height: int, highest: float) -> tuple[str, int]:
    """Curves (T, N) between zero and the highest value, which the axis names."""
    inner = height - 14
    step = max(1, int(np.ceil(len(values) / MOST_POINTS)))
    kept = np.clip(values[::step] / highest, 0.0, 1.0)
    x = np.linspace(0, PLOT_WIDTH, len(kept))
    curves = [
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" points="{_points(x, inner * (1 - column))}"/>'
        for column, colour in zip(kept.T, colours, strict=True)
    ]
    return _frame(inner) + _label(label, inner / 2) + _tick(f"{highest:.3g}", 9) + "".join(curves), height


def contact_rows(planted: Flags, names: Sequence[str]) -> tuple[str, int]:
    """Draw a bar for every stretch in which a foot (T, 4) is planted."""
    high, scale = 11, PLOT_WIDTH / len(planted)
    parts = []
    for leg, name in enumerate(names):
        parts.append(_tick(name, leg * high + 9))
        parts.extend(
            f'<rect x="{first * scale:.1f}" y="{leg * high + 1}" width="{(last - first) * scale:.1f}" '
            f'height="{high - 2}" fill="{LEG_COLOURS[leg]}"/>'
            for first, last in stretches(planted[:, leg])
        )
    return "".join(parts), high * len(names) + 8


def tag_band(segments: Sequence[Segment], frames: int) -> tuple[str, int]:
    scale = PLOT_WIDTH / frames
    parts = [_tick("tags", 12)]
    for first, last, tag in segments:
        width = (last - first) * scale
        parts.append(f'<rect x="{first * scale:.1f}" width="{width:.1f}" height="16" fill="{paper_of(tag)}"/>')
        if width > 7 * len(tag):
            ink = f'font-size="10" fill="{ink_on(tag)}"'
            parts.append(f'<text x="{first * scale + 3:.1f}" y="12" {ink}>{escape(tag)}</text>')
    return "".join(parts), 22


def time_axis(seconds: float) -> tuple[str, int]:
    step = next(one for one in (0.2, 0.5, 1, 2, 5, 10, 20, 60) if seconds / one <= 14)
    ticks = np.arange(0, seconds + 1e-9, step)
    parts = [
        f'<text x="{t / seconds * PLOT_WIDTH:.1f}" y="10" font-size="10" fill="{SOFT}" text-anchor="middle">{t:g} s</text>'
        for t in ticks
    ]
    return "".join(parts), 16


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _frame(height: float) -> str:
    return f'<rect width="{PLOT_WIDTH}" height="{height}" fill="{PANEL}" stroke="{FRAME}" stroke-width="0.5"/>'


def _label(text: str, y: float) -> str:
    return f'<text x="-6" y="{y + 8:.0f}" font-size="10" fill="{SOFT}" text-anchor="end">{escape(text)}</text>'


def _tick(text: str, y: float) -> str:
    return f'<text x="-6" y="{y:.0f}" font-size="10" fill="{SOFT}" text-anchor="end">{escape(text)}</text>'
