"""A page about a library: its figures, what happens in it, and plots of every clip. One file, nothing to load."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from keystride.colours import GREEN, GRID, INK, RED, SOFT
from keystride.files import write_atomically
from keystride.motion.clip import Clip
from keystride.motion.plots import LEG_COLOURS, contact_rows, ink_on, lines, paper_of, svg, tag_band, time_axis
from keystride.motion.quality import Figures, FrameMeasures, Targets, figures, measure_clip, pool
from keystride.motion.signals import clip_feet, foot_clearance, planted_feet
from keystride.motion.tagging import Segment
from keystride.robot.description import Robot

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
    """Seconds by tag, longest first."""
    seconds: dict[str, float] = {}
    for clip in clips:
        for first, last, tag in segments_in(clip):
            seconds[tag] = seconds.get(tag, 0.0) + (last - first) / clip.fps
    ordered = sorted(seconds, key=lambda tag: -seconds[tag])
    return [
        f'<span style="background:{paper_of(tag)};color:{ink_on(tag)}">{escape(tag)} {seconds[tag]:.0f} s</span>'
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
