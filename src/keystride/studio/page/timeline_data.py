"""What the timeline shows, as plain data made from plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.errors import THRESHOLDS
from keystride.keyframes.goals import COMPONENTS
from keystride.keyframes.script import Keyframe
from keystride.robot.description import Floats
from keystride.studio.document.draft import Draft
from keystride.studio.page import palette

Odds = Mapping[int, float]  # by key: the share of roll-outs that met the keyframe
Warnings = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class Caption:
    """What is told about a ghost: its state gives the colour."""

    text: str
    state: str


def keyframe_states(steps: Sequence[int], met: Sequence[bool | None]) -> list[str]:
    """`met` is None where the play head has not come yet; the first of these is active."""
    coming = [row for row in np.argsort(steps) if met[row] is None]
    active = coming[0] if coming else None
    words = {None: "coming", True: "met", False: "missed"}
    return ["active" if row == active else words[verdict] for row, verdict in enumerate(met)]


def misses(errors: Floats) -> list[str]:
    """By how much the median roll-out is over each threshold, in words; (6,) errors in the units of METRICS."""
    found = []
    for name, error, limit in zip((*COMPONENTS, "height"), errors.tolist(), astuple(THRESHOLDS), strict=True):
        unit = ".2f} m" if name in ("position", "height") else ".1f}°"
        if error > limit:
            found.append(f"{name} " + ("{:" + unit).format(error - limit) + " over")
    return found


def marks(
    draft: Draft, states: Mapping[int, str], odds: Odds, warnings: Warnings, errors: Mapping[int, Floats] | None = None
) -> list[dict[str, Any]]:
    limits, errors = np.array(astuple(THRESHOLDS)), errors or {}
    return [
        {
            "key": mark.key,
            "number": number,
            "time": mark.keyframe.time,
            "label": mark.keyframe.label or "",
            "state": states[mark.key],
            "colour": palette.css(palette.KEYFRAME_COLOURS[states[mark.key]]),
            "odds": round(100 * odds[mark.key]) if mark.key in odds else None,
            "oddsColour": palette.css(palette.likelihood(odds[mark.key])) if mark.key in odds else None,
            "asks": asks(mark.keyframe),
            "parts": [getattr(mark.keyframe, component) is not None for component in COMPONENTS],
            "over": _over(errors[mark.key] > limits) if mark.key in errors else [],
            "misses": misses(errors[mark.key]) if mark.key in errors else [],
            "warnings": list(warnings.get(mark.key, ())),
        }
        for number, mark in enumerate(draft.marks, start=1)
    ]


def _over(over: NDArray[np.bool_]) -> list[bool]:
    """For each component; the height, which is the last of (6,), belongs to the position."""
    return [bool(over[0] or over[-1]), *over[1:-1].tolist()]


def captions(draft: Draft, states: Mapping[int, str], odds: Odds, warnings: Warnings) -> dict[int, Caption]:
    return {
        mark.key: Caption(_caption(number, odds.get(mark.key), mark.key in warnings), states[mark.key])
        for number, mark in enumerate(draft.marks, start=1)
    }


def asks(keyframe: Keyframe) -> str:
    """The components, in words."""
    present = [component for component in COMPONENTS if getattr(keyframe, component) is not None]
    return ", ".join(present)


def _caption(number: int, odds: float | None, doubtful: bool) -> str:
    chance = "" if odds is None else f"  {round(100 * odds)}%"
    return f"{number}{chance}{'  !' if doubtful else ''}"
