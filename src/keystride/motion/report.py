"""Report on a library as one HTML file: its quality figures, its tags, and plots of every clip."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from keystride.colours import BLUE, FRAME, GREEN, GRID, INK, ORANGE, PANEL, PURPLE, RED, SOFT, TEAL, tint
from keystride.files import write_atomically
from keystride.motion.clip import Clip
from keystride.motion.quality import Figures, FrameMeasures, Targets, figures, measure_clip, pool
from keystride.motion.signals import Flags, clip_feet, foot_clearance, planted_feet, stretches
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats, Robot

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
OTHER_TAGS = tint(SOFT, 0.15)  # libraries may define their own tags
DARK_TAGS = ("trot", "canter", "jump")


def tag_background(tag: str) -> str:
    return TAG_COLOURS.get(tag, OTHER_TAGS)


def tag_text_colour(tag: str) -> str:
    return "#ffffff" if tag in DARK_TAGS else INK


def svg(rows: Sequence[tuple[str, int]]) -> str:
    """Return one drawing of (content, height) rows, stacked vertically."""
    parts, top = [], 0
    for content, height in rows:
        parts.append(f'<g transform="translate({LABEL_WIDTH},{top})">{content}</g>')
        top += height
    size = f'width="{LABEL_WIDTH + PLOT_WIDTH + 8}" height="{top}" viewBox="0 0 {LABEL_WIDTH + PLOT_WIDTH + 8} {top}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'


def lines(values: Floats, colours: Sequence[str], label: str, height: int, highest: float) -> tuple[str, int]:
    """Draw curves (T, N) between zero and the largest value, which labels the axis."""
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
        parts.append(f'<rect x="{first * scale:.1f}" width="{width:.1f}" height="16" fill="{tag_background(tag)}"/>')
        if width > 7 * len(tag):
            ink = f'font-size="10" fill="{tag_text_colour(tag)}"'
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


CLIP_HEADINGS = ("seconds", "m/s", "sunk mm", "slide m/s", "at limit %", "joint rad/s", "motor %", "airborne %")

PAGE_TEMPLATE = Template("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>$title</title>
<style>
body{font:14px/1.5 system-ui,sans-serif;color:$ink;margin:2rem auto;max-width:60rem;padding:0 1rem}
h1{font-size:1.5rem} h2{font-size:1rem;margin:2rem 0 .2rem} .quiet{color:$soft}
table{border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:right;padding:2px 8px;border-bottom:1px solid $grid} th:first-child,td:first-child{text-align:left}
tr.all td{font-weight:600} .key span{display:inline-block;padding:0 .5em;margin:0 .3em .3em 0;border-radius:3px}
svg{max-width:100%;height:auto} .good{color:$good}.bad{color:$bad} a{color:inherit}
</style>
<h1>$title</h1>
<p>$summary</p>
<p class="$state">$verdict</p>
<p class="key">$tags</p>
<table><tr><th>clip</th>$headings</tr>$rows</table>
$clips
</html>
""")


def write_library_report(clips: Sequence[Clip], robot: Robot, title: str, path: Path) -> None:
    write_atomically(path, library_page(clips, robot, title))


def library_page(clips: Sequence[Clip], robot: Robot, title: str) -> str:
    measured = [measure_clip(clip, robot) for clip in clips]
    whole = figures(pool(measured))
    misses = Targets().misses(whole)
    rows = [_row(clip.name, figures(frames), clip.name) for clip, frames in zip(clips, measured, strict=True)]
    return PAGE_TEMPLATE.substitute(
        ink=INK,
        soft=SOFT,
        grid=GRID,
        good=GREEN,
        bad=RED,
        title=escape(title),
        summary=f"{len(clips)} clips, {whole.seconds / 60:.1f} minutes, {escape(robot.name)}",
        state="bad" if misses else "good",
        verdict=escape("; ".join(misses)) if misses else "Every target of the quality table is reached.",
        tags="".join(_tag_key(clips)),
        headings="".join(f"<th>{heading}</th>" for heading in CLIP_HEADINGS),
        rows="".join(rows) + _row("all", whole),
        clips="".join(_section(clip, frames, robot) for clip, frames in zip(clips, measured, strict=True)),
    )


def _row(name: str, row: Figures, anchor: str | None = None) -> str:
    cells = (
        f"{row.seconds:.1f}",
        f"{row.mean_speed:.2f}",
        f"{1000 * row.penetration_max:.1f}",
        f"{row.slide:.3f}",
        f"{100 * row.limit_share:.1f}",
        f"{row.joint_speed:.1f}",
        f"{100 * row.motor_share:.0f}",
        f"{100 * row.airborne_share:.1f}",
    )
    first = f'<a href="#{escape(anchor)}">{escape(name)}</a>' if anchor else escape(name)
    style = "" if anchor else ' class="all"'
    return f"<tr{style}><td>{first}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _tag_key(clips: Sequence[Clip]) -> list[str]:
    """Return a legend with the seconds of each tag, longest first."""
    seconds: dict[str, float] = {}
    for clip in clips:
        for first, last, tag in segments_in(clip):
            seconds[tag] = seconds.get(tag, 0.0) + (last - first) / clip.fps
    ordered = sorted(seconds, key=lambda tag: -seconds[tag])
    return [
        f'<span style="background:{tag_background(tag)};color:{tag_text_colour(tag)}">{escape(tag)} {seconds[tag]:.0f} s</span>'
        for tag in ordered
    ]


def segments_in(clip: Clip) -> list[Segment]:
    return [(int(first), int(last), str(tag)) for first, last, tag in clip.metadata.get("segments", ())]


def _section(clip: Clip, frames: FrameMeasures, robot: Robot) -> str:
    feet = clip_feet(clip, robot)
    height = np.maximum(foot_clearance(feet, robot), 0.0)  # (T, 4) m
    highest = max(0.1, float(np.ceil(10 * height.max()) / 10))
    fastest = max(0.5, float(np.ceil(2 * frames.speed.max()) / 2))
    drawing = svg(
        [
            tag_band(segments_in(clip), len(clip)),
            lines(frames.speed[:, None], [INK], "m/s", 64, fastest),
            lines(height, LEG_COLOURS, "feet m", 84, highest),
            contact_rows(planted_feet(feet, robot, clip.fps), robot.leg_names),
            time_axis(clip.seconds),
        ]
    )
    facts = f"{clip.seconds:.1f} s; {', '.join(clip.tags)}; {clip.metadata.get('source', '')}"
    return f'<h2 id="{escape(clip.name)}">{escape(clip.name)}</h2><div class="quiet">{escape(facts)}</div>{drawing}'
