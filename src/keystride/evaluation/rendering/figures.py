"""Draw the figures of the report, one per function."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keystride import geometry
from keystride.colours import BLUE, INK, ORANGE, RED, SERIES, SOFT
from keystride.evaluation.episodes import METRICS, THRESHOLDS, EpisodeRollout
from keystride.evaluation.results import Row
from keystride.evaluation.suites import NEXT_ONLY
from keystride.evaluation.tables import METRIC_HEADINGS
from keystride.keyframes.goals import CONTROL_DT
from keystride.plotting import arrows, styled_figure
from keystride.robot.description import Floats

MAX_PATHS = 60  # more would only blacken the plot


def trajectories(rollouts: Mapping[str, EpisodeRollout]) -> Any:
    """Draw the paths of the base from above, one panel per course, with its keyframes."""
    with styled_figure(11.0, 4.6) as figure:
        for axes, (name, rollout) in zip(figure.subplots(1, len(rollouts)), rollouts.items(), strict=True):
            _paths(axes, rollout, BLUE)
            _spots(axes, rollout)
            _from_above(axes, name)
        return figure


def timing(rollouts: Mapping[str, EpisodeRollout]) -> Any:
    """Draw the same goal due at several times: the path, and the distance left."""
    with styled_figure(11.0, 4.4) as figure:
        above, left = figure.subplots(1, 2, width_ratios=(1, 1.3))
        for colour, (name, rollout) in zip(SERIES, rollouts.items(), strict=False):
            when = int(rollout.goals.step[0, 0])
            path = rollout.trace.position[: when + 1]  # (T, E, 3)
            above.plot(path[:, 0, 0], path[:, 0, 1], color=colour, linewidth=1.8, label=f"in {name}")
            gap = np.linalg.norm(path[..., :2] - rollout.goals.position[:, 0, :2], axis=-1)  # (T, E)
            _band(left, CONTROL_DT * np.arange(when + 1, dtype=np.float64), gap, colour, f"in {name}")
            left.axvline(when * CONTROL_DT, color=colour, linewidth=0.8, alpha=0.6)
        _spots(above, next(iter(rollouts.values())))
        _from_above(above, "one goal, several times")
        above.legend(loc="upper left")
        left.set(title="distance to the goal over the ground, m", xlabel="s", ylim=(0, None), xlim=(0, None))
        return figure


def histograms(rollouts: Mapping[str, EpisodeRollout]) -> Any:
    """Draw histograms of the errors at keyframes, one panel per metric."""
    present = [m for m in range(len(METRICS)) if any(_finite(rollout, m).size for rollout in rollouts.values())]
    with styled_figure(min(4.2 * len(present), 15.0), 3.4) as figure:
        panels = figure.subplots(1, len(present), squeeze=False)[0]
        for axes, m in zip(panels, present, strict=True):
            top = max(np.percentile(_finite(r, m), 98) for r in rollouts.values())
            edges = np.linspace(0.0, max(top, getattr(THRESHOLDS, METRICS[m])), 36)
            for colour, (name, rollout) in zip(SERIES, rollouts.items(), strict=False):
                values = np.minimum(_finite(rollout, m), edges[-1])
                share = np.full(len(values), 100.0 / len(values))
                axes.hist(values, edges, weights=share, histtype="step", linewidth=1.7, color=colour, label=name)
            axes.axvline(getattr(THRESHOLDS, METRICS[m]), color=SOFT, linestyle=":", linewidth=1.2)
            axes.set(title=METRIC_HEADINGS[METRICS[m]])
        panels[0].set_ylabel("% of keyframes (last bin: all beyond)")
        panels[0].legend(loc="upper right")
        return figure


def anticipation_figure(rollouts: Mapping[str, EpisodeRollout], scenario: str = "turn") -> Any:
    """Draw paths and yaw at the first goal: a policy that sees both goals turns towards the second early."""
    pair = {"aware of all goals": scenario, "aware of the next goal": scenario + NEXT_ONLY}
    pair = {label: rollouts[name] for label, name in pair.items() if name in rollouts}
    with styled_figure(12.0, 4.4) as figure:
        *paths, angles = figure.subplots(1, len(pair) + 1)
        for axes, colour, (label, rollout) in zip(paths, (BLUE, ORANGE), pair.items(), strict=False):
            _paths(axes, rollout, colour)
            _headings(axes, rollout)
            _spots(axes, rollout)
            _from_above(axes, f"{scenario}: {label}")
        _yaw_at_first(angles, rollouts)
        return figure


def robustness_figure(rows: Sequence[Row]) -> Any:
    """Draw the distance at keyframes and the falls under each randomized factor."""
    chosen = [row for row in rows if row.metric == "distance_m"]
    names = [row.scenario for row in chosen]
    with styled_figure(9.0, 3.2) as figure:
        error, falls = figure.subplots(1, 2, sharey=True)
        error.barh(names, [row.mean for row in chosen], color=BLUE, height=0.6)
        error.set(title="distance at keyframes, m")
        falls.barh(names, [100 * row.falls / row.episodes for row in chosen], color=RED, height=0.6)
        falls.set(title="episodes with a fall, %")
        error.invert_yaxis()
        for axes in (error, falls):
            axes.grid(axis="y", visible=False)
            axes.bar_label(axes.containers[0], fmt="%.3g", padding=3, fontsize=8, color=SOFT)
            axes.margins(x=0.15)
        return figure


def learning_curve(curve: Mapping[str, Any]) -> Any:
    """Draw the learning curve of a bundle."""
    training, evaluation = curve["training"], curve["evaluation"]
    with styled_figure(12.0, 3.4) as figure:
        rewards, errors, life = figure.subplots(1, 3)
        for name in (n for n in training if n.startswith("reward/")):
            _curve(rewards, training, name, name.removeprefix("reward/"))
        for name in (n for n in evaluation if n.endswith("/position")):
            _curve(errors, evaluation, name, f"{name.removesuffix('/position')} keyframes", marker=".")
        for name in ("survival", "met"):
            _curve(life, training, name, name)
        rewards.set(title="reward per control step", xlabel="million control steps")
        errors.set(title="distance at keyframes, m", xlabel="million control steps", ylim=(0, None))
        life.set(title="survival; keyframes within 0.2 m", xlabel="million control steps", ylim=(0, 1.02))
        for axes in (rewards, errors, life):
            axes.legend(loc="best")
        return figure


def compared_curves(curves: Mapping[str, Mapping[str, Any]]) -> Any:
    """Draw the learning curves of several runs over equal sample counts."""
    with styled_figure(12.0, 3.4) as figure:
        panels = figure.subplots(1, 3)
        for axes, kind in zip(panels, ("dataset", "random"), strict=False):
            for name, curve in curves.items():
                _curve(axes, curve["evaluation"], f"{kind}/position", name, marker=".")
            axes.set(title=f"distance at {kind} keyframes, m", ylim=(0, None))
        for name, curve in curves.items():
            _curve(panels[2], curve["training"], "reward/style", name)
        panels[2].set(title="style reward per control step")
        for axes in panels:
            axes.set(xlabel="million control steps")
            axes.legend(loc="best")
        return figure


def _curve(axes: Any, columns: Mapping[str, Any], name: str, label: str, marker: str = "") -> None:
    if name not in columns:
        return
    steps = np.array(columns["steps"]) / 1e6
    values = np.array([np.nan if value is None else value for value in columns[name]], dtype=float)
    axes.plot(steps, values, label=label, linewidth=1.5, marker=marker)


def _paths(axes: Any, rollout: EpisodeRollout, colour: str) -> None:
    for e in range(min(len(rollout.end), MAX_PATHS)):
        path = rollout.trace.position[: _last(rollout, e) + 1, e]
        axes.plot(path[:, 0], path[:, 1], color=colour, linewidth=0.9, alpha=0.3)


def _last(rollout: EpisodeRollout, e: int) -> int:
    """Return the control step of the last keyframe; after it, robots only come to rest."""
    return int(rollout.goals.step[e].max())


def _spots(axes: Any, rollout: EpisodeRollout) -> None:
    used = rollout.goals.presence[0].any(axis=-1)
    x, y = rollout.goals.position[0, used, :2].T
    axes.plot(0, 0, "o", color=INK, markersize=5)
    axes.plot(x, y, "o", color=RED, markersize=8, markerfacecolor="white", markeredgewidth=2, zorder=5)
    for k, (x_k, y_k) in enumerate(zip(x, y, strict=True), start=1):
        axes.annotate(str(k), (x_k, y_k), (7, 7), textcoords="offset points", color=RED, fontweight="bold")


def _headings(axes: Any, rollout: EpisodeRollout) -> None:
    """Draw the headings at the first goal as arrows."""
    some = slice(0, MAX_PATHS)
    at = rollout.trace.position[rollout.goals.step[some, 0], np.arange(len(rollout.end))[some]]
    arrows(axes, at, _first_yaw(rollout)[some], 0.22, INK, alpha=0.35, width=0.006)


def _first_yaw(rollout: EpisodeRollout) -> Floats:
    """Return the yaw (E,) at the first goal, rad."""
    rows = np.arange(len(rollout.end))
    return geometry.yaw_of(rollout.trace.orientation[rollout.goals.step[:, 0], rows])


def _yaw_at_first(axes: Any, rollouts: Mapping[str, EpisodeRollout]) -> None:
    yaws = [np.degrees(_first_yaw(rollout)) for rollout in rollouts.values()]
    boxes = axes.boxplot(
        yaws, orientation="horizontal", widths=0.55, patch_artist=True, showfliers=False, medianprops={"color": INK}
    )
    for box, name in zip(boxes["boxes"], rollouts, strict=True):
        box.set(facecolor=ORANGE if name.endswith(NEXT_ONLY) else BLUE, alpha=0.75, edgecolor="none")
    axes.set_yticklabels([name.replace(NEXT_ONLY, "\n(next goal only)") for name in rollouts])
    axes.invert_yaxis()
    axes.set(title="yaw at the first goal, degrees")


def _band(axes: Any, times: Floats, values: Floats, colour: str, label: str) -> None:
    low, middle, high = np.percentile(values, (5, 50, 95), axis=1)
    axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(times, middle, color=colour, linewidth=1.8, label=label)


def _from_above(axes: Any, title: str) -> None:
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.set(title=title, xlabel="x, m", ylabel="y, m")


def _finite(rollout: EpisodeRollout, metric: int) -> Floats:
    values = rollout.errors[..., metric]
    return values[~np.isnan(values)]
