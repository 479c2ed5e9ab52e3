"""Report on a library as one HTML file: its quality figures, its tags, and plots of every clip."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from keystride.colours import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, SOFT, TEAL, tint
from keystride.files import write_atomically
from keystride.motion.clip import Clip
from keystride.motion.quality import Figures, FrameMeasures, Targets, figures, measure_clip, pool
from keystride.motion.signals import Flags, clip_feet, foot_clearance, planted_feet, stretches
from keystride.motion.tagging import Segment
from keystride.plotting import as_svg, styled_figure
from keystride.robot.description import Floats, Robot

MOST_POINTS = 430  # of a line; more would not be visible
TAG_LETTER_SHARE = 0.009  # of the plot's width

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


def draw_clip(clip: Clip, speed: Floats, height: Floats, planted: Flags, leg_names: Sequence[str]) -> Any:
    """Return the figure of a clip over time: its tags, its speed (T,) m/s, and height (T, 4) m and contact (T, 4) of the feet."""
    step = max(1, int(np.ceil(len(clip) / MOST_POINTS)))
    time = np.arange(0, len(clip), step) / clip.fps  # (T / step,) s
    with styled_figure(9.4, 2.9, {"left": 0.06, "right": 0.99, "top": 0.99, "bottom": 0.15}) as figure:
        tags, fast, feet, contacts = figure.subplots(
            4, 1, sharex=True, gridspec_kw={"height_ratios": (0.3, 1, 1.3, 0.8)}
        )
        _tag_band(tags, segments_in(clip), clip)
        fast.plot(time, speed[::step], color=INK, linewidth=1)
        fast.set_ylabel("m/s")
        fast.set_ylim(0, max(0.5, 1.05 * float(speed.max())))
        feet.set_prop_cycle(color=LEG_COLOURS)
        feet.plot(time, height[::step], linewidth=1)
        feet.set_ylabel("feet, m")
        feet.set_ylim(0, max(0.1, 1.05 * float(height.max())))
        for leg, colour in enumerate(LEG_COLOURS):
            spans = [(first / clip.fps, (last - first) / clip.fps) for first, last in stretches(planted[:, leg])]
            contacts.broken_barh(spans, (leg - 0.4, 0.8), color=colour)
        contacts.set_yticks(range(len(leg_names)), leg_names, fontsize=7)
        contacts.invert_yaxis()
        contacts.set_xlim(0, clip.seconds)
        contacts.set_xlabel("s")
        return figure


def _tag_band(axes: Any, segments: Sequence[Segment], clip: Clip) -> None:
    axes.axis("off")
    axes.set_ylim(0, 1)
    for first, last, tag in segments:
        axes.broken_barh([(first / clip.fps, (last - first) / clip.fps)], (0, 1), color=tag_background(tag))
        if (last - first) / len(clip) > TAG_LETTER_SHARE * len(tag):
            axes.text(first / clip.fps, 0.5, f" {tag}", va="center", fontsize=7, color=tag_text_colour(tag))


CLIP_HEADINGS = ("seconds", "m/s", "penetration mm", "slide m/s", "at limit %", "joint rad/s", "motor %", "airborne %")

PAGE_TEMPLATE = Template("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>$title</title>
<style>
body{font:14px/1.5 system-ui,sans-serif;color:$ink;margin:2rem auto;max-width:60rem;padding:0 1rem}
h1{font-size:1.5rem} h2{font-size:1rem;margin:2rem 0 .2rem} .quiet{color:$soft}
table{border-collapse:collapse;font-size:12px;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:right;padding:2px 8px;border-bottom:1px solid $grid} th:first-child,td:first-child{text-align:left}
tr.all td{font-weight:600} .key span{display:inline-block;padding:0 .5em;margin:0 .3em .3em 0;border-radius:3px}
.good{color:$good}.bad{color:$bad} a{color:inherit}
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
    planted = planted_feet(feet, robot, clip.fps)
    drawing = as_svg(draw_clip(clip, frames.speed, height, planted, robot.leg_names))
    facts = f"{clip.seconds:.1f} s; {', '.join(clip.tags)}; {clip.metadata.get('source', '')}"
    return f'<h2 id="{escape(clip.name)}">{escape(clip.name)}</h2><div class="quiet">{escape(facts)}</div>{drawing}'
