"""What the timeline shows, as plain data made from plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keystride.keyframes.goals import COMPONENTS
from keystride.keyframes.script import Keyframe
from keystride.studio import palette
from keystride.studio.draft import Draft
from keystride.studio.ghost_scene import Caption

Odds = Mapping[int, float]  # by key: the share of roll-outs that met the keyframe
Warnings = Mapping[int, Sequence[str]]


def keyframe_states(steps: Sequence[int], met: Sequence[bool | None]) -> list[str]:
    """`met` is None where the play head has not come yet; the first of these is active."""
    coming = [row for row in np.argsort(steps) if met[row] is None]
    active = coming[0] if coming else None
    words = {None: "coming", True: "met", False: "missed"}
    return ["active" if row == active else words[verdict] for row, verdict in enumerate(met)]


def marks(draft: Draft, states: Mapping[int, str], odds: Odds, warnings: Warnings) -> list[dict[str, Any]]:
    return [
        {
            "key": mark.key,
            "number": number,
            "time": mark.keyframe.time,
            "label": mark.keyframe.label or "",
            "state": states[mark.key],
            "colour": palette.css(palette.STATES[states[mark.key]]),
            "odds": round(100 * odds[mark.key]) if mark.key in odds else None,
            "oddsColour": palette.css(palette.likelihood(odds[mark.key])) if mark.key in odds else None,
            "asks": asks(mark.keyframe),
            "parts": [getattr(mark.keyframe, component) is not None for component in COMPONENTS],
            "warnings": list(warnings.get(mark.key, ())),
        }
        for number, mark in enumerate(draft.marks, start=1)
    ]


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
