"""Plot one episode: the path from above, height, yaw, roll, pitch and every joint, with the keyframes marked.

`draw_recording` puts all panels on one sheet, `draw_panels` each on a figure of its own, for a narrow column.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from keystride import geometry
from keystride.colours import BLUE, GREEN, INK, ORANGE, RED, SOFT, outcome_colour
from keystride.evaluation.recording import Recording
from keystride.keyframes.goals import CONTROL_DT
from keystride.plotting import arrows, styled_figure
from keystride.robot.description import LEG_JOINTS, Floats

LEG_TITLES = ("front left", "front right", "rear left", "rear right")
JOINT_COLOURS = (BLUE, ORANGE, GREEN)
PANEL_INCHES = 4.4  # width of a panel on its own
ARROW_PERIOD = 0.4  # s between heading arrows


def draw_recording(recording: Recording) -> Any:
    """Return the figure of an episode; `plotting.save_figure` writes it."""
    with styled_figure(13.0, 8.6) as figure:
        rows = figure.add_gridspec(4, 4, height_ratios=(1.0, 1.0, 1.0, 1.5))
        _path(figure.add_subplot(rows[:3, :2]), recording)
        height = figure.add_subplot(rows[0, 2:])
        yaw = figure.add_subplot(rows[1, 2:], sharex=height)
        tilt = figure.add_subplot(rows[2, 2:], sharex=height)
        _height(height, recording)
        _yaw(yaw, recording)
        _tilt(tilt, recording)
        legs = figure.add_subplot(rows[3, 0], sharex=height)
        _joints(legs, recording, 0)
        for leg in range(1, 4):
            _joints(figure.add_subplot(rows[3, leg], sharex=height, sharey=legs), recording, leg)
        figure.legend(*legs.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.suptitle(_title(recording), x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
        return figure


def draw_panels(recording: Recording) -> list[Any]:
    """Return the panels as small figures of their own."""
    strips = [_panel(draw, recording, 1.9) for draw in (_height, _yaw, _tilt)]
    legs = [_panel(partial(_joints, leg=leg), recording, 2.2, legend=True) for leg in range(4)]
    return [_panel(_path, recording, 3.2), *strips, *legs]


def _panel(draw: Callable[[Any, Recording], None], recording: Recording, height: float, *, legend: bool = False) -> Any:
    margins = {"left": 0.12, "right": 0.97, "top": 1 - 0.36 / height, "bottom": (0.66 if legend else 0.46) / height}
    with styled_figure(PANEL_INCHES, height, margins) as figure:
        axes = figure.subplots()
        draw(axes, recording)
        if legend:
            figure.legend(*axes.get_legend_handles_labels(), loc="lower center", ncols=5, fontsize=6)
        return figure


def _title(recording: Recording) -> str:
    fall = "" if recording.fell_at is None else f", fell at {recording.fell_at:.2f} s"
    met = f"{int(recording.met.sum())} of {len(recording.met)} keyframes met"
    return f"{recording.title} · {recording.policy} · {met}{fall}"


def _path(axes: Any, recording: Recording) -> None:
    """Draw the path from above, with x to the right and y up."""
    x, y = recording.poses[:, 0], recording.poses[:, 1]
    axes.plot(x, y, color=BLUE, linewidth=2.2, zorder=2, label="base")
    some = slice(0, None, round(ARROW_PERIOD / CONTROL_DT))
    reach = max(np.ptp(x), np.ptp(y), 1.0)
    arrows(axes, recording.poses[some], recording.angles[some, 2], 0.05 * reach, BLUE, alpha=0.75)
    axes.plot(x[0], y[0], "o", color=INK, markersize=6, zorder=4)
    for k in np.flatnonzero(recording.goals.presence[0, :, 0]):
        _mark(axes, recording, int(k), 0.07 * reach)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    axes.set(title="path from above, arrows show the heading", xlabel="x, m", ylabel="y, m")
    axes.plot([], [], "o", markerfacecolor="none", color=outcome_colour(True), label="keyframe met")
    axes.plot([], [], "o", markerfacecolor="none", color=outcome_colour(False), label="missed")
    axes.legend(loc="best")


def _mark(axes: Any, recording: Recording, k: int, length: float) -> None:
    """Mark the position of a keyframe, with a line to where the robot was at that time."""
    colour, goals = outcome_colour(recording.met[k]), recording.goals
    x, y = goals.position[0, k, :2]
    there = recording.poses[min(int(recording.steps[k]), len(recording.poses) - 1)]
    axes.plot([x, there[0]], [y, there[1]], color=colour, linewidth=1.2, zorder=4)
    axes.plot(x, y, "o", color=colour, markersize=10, markerfacecolor="white", markeredgewidth=2, zorder=5)
    if goals.presence[0, k, 3]:
        arrows(axes, goals.position[0, k : k + 1], goals.angles[0, k : k + 1, 2], length, colour, zorder=6)
    side = _yaw_when_due(recording, k) - np.pi / 2  # to the right of the path, clear of the arrows
    shift = 13 * np.cos(side), 13 * np.sin(side)
    align = {"ha": "left" if shift[0] > 0 else "right", "va": "center"}
    name = f"{k + 1}  {recording.labels[k]}".rstrip()
    back = {"facecolor": "white", "edgecolor": "none", "alpha": 0.6, "pad": 0.5}
    axes.annotate(
        name, (x, y), shift, textcoords="offset points", color=colour, fontsize=8, zorder=4, bbox=back, **align
    )


def _yaw_when_due(recording: Recording, k: int) -> float:
    """Return the robot's yaw when a keyframe is due, rad."""
    return float(recording.angles[min(int(recording.steps[k]), len(recording.poses) - 1), 2])


def _height(axes: Any, recording: Recording) -> None:
    axes.plot(recording.times, recording.poses[:, 2], color=BLUE, linewidth=1.6)
    wanted = recording.goals.height[0]
    _targets(axes, recording, wanted, recording.goals.position[0, :, 2])
    axes.set_title("height of the base, m", pad=14)  # leaves room for the keyframe numbers
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.15), max(high, 0.4))
    _moments(axes, recording, labels=True)


def _yaw(axes: Any, recording: Recording) -> None:
    yaw = recording.angles[:, 2]
    axes.plot(recording.times, np.degrees(yaw), color=BLUE, linewidth=1.6)
    there = yaw[np.minimum(recording.steps, len(yaw) - 1)]
    wanted = there + geometry.wrap(
        recording.goals.angles[0, :, 2] - there
    )  # the equivalent angle nearest to the robot's
    _targets(axes, recording, recording.goals.presence[0, :, 3], np.degrees(wanted))
    axes.set(title="yaw, degrees")
    _moments(axes, recording)


def _tilt(axes: Any, recording: Recording) -> None:
    for i, (name, colour) in enumerate((("roll", ORANGE), ("pitch", BLUE))):
        axes.plot(recording.times, np.degrees(recording.angles[:, i]), color=colour, linewidth=1.4, label=name)
        wanted = recording.goals.presence[0, :, 1 + i]
        _targets(axes, recording, wanted, np.degrees(recording.goals.angles[0, :, i]))
    axes.set(title="roll and pitch, degrees")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -8), max(high, 8))
    axes.legend(loc="upper left", ncols=2)
    _moments(axes, recording)


def _joints(axes: Any, recording: Recording, leg: int) -> None:
    """Draw joint angles as lines, motor targets as thin dashes and keyframe postures as dots."""
    for i, (name, colour) in enumerate(zip(LEG_JOINTS, JOINT_COLOURS, strict=True)):
        joint = 3 * leg + i
        angles = np.degrees(recording.poses[:, 7 + joint])
        axes.plot(recording.times, angles, color=colour, linewidth=1.3, label=name)
        axes.plot(
            recording.times[:-1], np.degrees(recording.joint_targets[:, joint]), "--", color=colour, lw=0.7, alpha=0.6
        )
        _targets(
            axes, recording, recording.goals.presence[0, :, 4], np.degrees(recording.goals.posture[0, :, joint]), 4
        )
    axes.set(title=f"{LEG_TITLES[leg]}, degrees", xlabel="s")
    axes.plot([], [], "--", color=SOFT, lw=0.9, label="motor target")
    axes.plot([], [], "o", color=SOFT, markersize=4, markerfacecolor="white", label="keyframe posture")
    _moments(axes, recording)


def _targets(axes: Any, recording: Recording, wanted: Any, values: Floats, size: float = 6) -> None:
    for met in (True, False):
        shown = wanted & (recording.met == met)
        axes.plot(
            recording.steps[shown] * CONTROL_DT,
            values[shown],
            "o",
            color=outcome_colour(met),
            markersize=size,
            markerfacecolor="white",
            markeredgewidth=1.6,
            zorder=5,
        )


def _moments(axes: Any, recording: Recording, *, labels: bool = False) -> None:
    """Draw a thin line at the time of every keyframe, and shade the time after a fall."""
    for met in (True, False):
        due = recording.steps[recording.met == met] * CONTROL_DT
        line = {"colors": outcome_colour(met), "linewidth": 0.8, "alpha": 0.5, "zorder": 1}
        axes.vlines(due, 0, 1, transform=axes.get_xaxis_transform(), **line)
    if labels:
        for k, step in enumerate(recording.steps):
            place = (step * CONTROL_DT, 1.0)
            axes.annotate(
                str(k + 1),
                place,
                (0, 2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=outcome_colour(recording.met[k]),
            )
    if recording.fell_at is not None:
        axes.axvspan(recording.fell_at, recording.times[-1], color=RED, alpha=0.08, zorder=0)
    axes.set_xlim(0, recording.times[-1])
